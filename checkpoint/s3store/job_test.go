package s3store

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/checkpoint/internal/flow"
)

// job is a run of the flow in a process.
type job struct {
	p     *proc
	c     *checkpoint.Coordinator
	store *Store
	flow  *flow.Flow
}

// run restores a job in a process.
func (p *proc) run(retain int) (*job, checkpoint.ID, error) {
	j := &job{p: p, store: p.open(), flow: flow.New("flow", p.w.out)}
	var err error
	j.c, err = checkpoint.NewCoordinator(p.w.out.Watch(j.store), checkpoint.Options{Retain: retain}, j.flow)
	if err != nil {
		return nil, 0, err
	}
	id, err := j.c.Restore(p.ctx)
	return j, id, err
}

// write produces n rows.
func (j *job) write(n int) error {
	for range n {
		if err := j.c.Step(j.p.ctx, j.flow.Write); err != nil {
			return err
		}
	}
	return nil
}

// checkpoints writes two rows and takes a checkpoint, n times.
func (j *job) checkpoints(n int) error {
	for range n {
		if err := j.write(2); err != nil {
			return err
		}
		if _, err := j.c.Trigger(j.p.ctx); err != nil {
			return err
		}
	}
	return nil
}

// close ends the run without a checkpoint.
func (j *job) close() error { return errors.Join(j.c.Close(context.Background()), j.store.Close()) }

// finish takes checkpoints until everything is published, closes, and checks the output.
func (j *job) finish() error {
	for range 2 { // every second barrier closes the open file
		if _, err := j.c.Trigger(j.p.ctx); err != nil {
			return err
		}
	}
	if err := j.close(); err != nil {
		return err
	}
	return j.flow.Check()
}

// script is a run of n checkpoints. It returns at the first error.
func (p *proc) script(n int) error {
	j, _, err := p.run(2)
	if err == nil {
		err = j.checkpoints(n)
	}
	if err != nil {
		return err
	}
	return j.close()
}

// goOn restarts after a crash, runs on, and checks that every row was published once.
func (w *world) goOn() error {
	durable, published := w.out.Newest()
	j, id, err := w.start().run(2)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if id < durable || id > durable+1 || id < published {
		return fmt.Errorf("restored checkpoint %d where %d was saved and %d was published", id, durable, published)
	}
	if err := j.write(2); err != nil {
		return err
	}
	return j.finish()
}
