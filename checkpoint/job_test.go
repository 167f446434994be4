package checkpoint_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/checkpoint/crashfs"
	"github.com/sluice-go/sluice/checkpoint/internal/flow"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// job is one process that runs two flows.
type job struct {
	c     *checkpoint.Coordinator
	store *checkpoint.DirStore
	flows []*flow.Flow
}

func openStore(p *crashfs.Process) (*checkpoint.DirStore, error) {
	return checkpoint.OpenDirFS(p, "base", "job-1", "0-of-1")
}

// startJob restores a new run on the file system of p.
func startJob(ctx context.Context, p *crashfs.Process, w *flow.Output, o checkpoint.Options, fail func(phase string, id checkpoint.ID) error) (*job, checkpoint.ID, error) {
	store, err := openStore(p)
	if err != nil {
		return nil, 0, err
	}
	j := &job{store: store}
	var ps []checkpoint.Participant
	for _, name := range []string{"left", "right"} {
		f := flow.New(name, w)
		f.Fail = fail
		j.flows = append(j.flows, f)
		ps = append(ps, f)
	}
	if j.c, err = checkpoint.NewCoordinator(w.Watch(store), o, ps...); err != nil {
		return nil, 0, err
	}
	id, err := j.c.Restore(ctx)
	return j, id, err
}

// write lets each flow produce n rows.
func (j *job) write(ctx context.Context, n int) error {
	for range n {
		for _, f := range j.flows {
			if err := j.c.Step(ctx, f.Write); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish takes checkpoints until everything is published, and closes.
func (j *job) finish(ctx context.Context) error {
	for range 2 { // every second barrier closes the open file
		if _, err := j.c.Trigger(ctx); err != nil {
			return err
		}
	}
	return errors.Join(j.c.Close(ctx), j.store.Close())
}

// check says whether exactly the rows that were produced are published.
func (j *job) check() error {
	var errs []error
	for _, f := range j.flows {
		errs = append(errs, f.Check())
	}
	return errors.Join(errs...)
}
