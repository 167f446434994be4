package sink_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

// restless is a checkpoint store in which something happens before and after everything that a sweep looks at.
type restless struct {
	sink.SweepStore
	happen func(when string) // "before List", "after List"
}

func (r restless) NewestEpoch(ctx context.Context) (int64, error) {
	r.happen("before NewestEpoch")
	defer r.happen("after NewestEpoch")
	return r.SweepStore.NewestEpoch(ctx)
}

func (r restless) Live(ctx context.Context) (bool, string, error) {
	r.happen("before Live")
	defer r.happen("after Live")
	return r.SweepStore.Live(ctx)
}

func (r restless) List(ctx context.Context) ([]checkpoint.ID, error) {
	r.happen("before List")
	defer r.happen("after List")
	return r.SweepStore.List(ctx)
}

func (r restless) Load(ctx context.Context, id checkpoint.ID) (checkpoint.Manifest, error) {
	r.happen("before Load")
	defer r.happen("after Load")
	return r.SweepStore.Load(ctx, id)
}

// life is a job that runs, checkpoints, dies and comes back.
type life struct {
	w       *world
	run     *run // nil while nothing runs
	options sink.Options
	next    int // first row that was not written
	durable int // first row that no checkpoint holds
}

func (l *life) start() {
	if l.run == nil {
		l.run = l.w.start(l.options)
		l.next = l.durable
	}
}

func (l *life) write(n int) {
	if l.run != nil {
		l.run.rows(l.next, l.next+n, 1023)
		l.next += n
	}
}

func (l *life) checkpoint() {
	if l.run != nil {
		l.run.checkpoint()
		l.durable = l.next
	}
}

func (l *life) crash() {
	if l.run != nil {
		l.run.crash()
		l.run = nil
	}
}

// act does something at random.
func (l *life) act(r *rand.Rand) {
	switch r.IntN(8) {
	case 0, 1:
		l.start()
		l.write(1 + r.IntN(150))
	case 2:
		l.checkpoint()
	case 3:
		l.crash()
	case 4:
		l.crash()
		l.start()
	case 5:
		synctest.Wait() // let the parts arrive
	default:
	}
}

// The job goes on between any two looks of a sweep that has no guard: no row may get lost, and at the end nothing may be left.
func TestSweep_BesideALifeOfRunsCheckpointsAndCrashesNoRowIsLostAndNothingStays(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				r := rand.New(rand.NewPCG(seed, 1))
				l := &life{w: w, options: options()}
				l.options.PartSize, l.options.Rolling.FileSize = 16<<10, 128<<10
				l.start()
				o := w.sweepOptions(l.options)
				o.Checkpoints = restless{o.Checkpoints, func(string) { l.act(r) }}
				aborted := 0
				for range 6 {
					for range r.IntN(4) {
						l.act(r)
					}
					aborted += w.sweep(o).Aborted.Uploads
				}
				l.start()
				l.write(1)
				l.run.finish()
				w.requireExactly(l.next)
				aborted += w.sweep(w.sweepOptions(l.options)).Aborted.Uploads
				require.Empty(t, w.uploads())
				t.Logf("%d rows, %d uploads aborted", l.next, aborted)
			})
		})
	}
}

// Checkpoints are pruned, and the run dies and comes back, between the two listings: what was created since is of a live epoch.
func TestSweep_AnUploadCreatedBetweenTheTwoListingsIsNotSeen(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l := &life{w: w, options: options()}
		l.start()
		l.write(300)
		synctest.Wait()
		l.crash()
		o := w.sweepOptions(l.options)
		created := 0
		o.Checkpoints = restless{o.Checkpoints, func(string) {
			if created > 0 {
				return
			}
			before := len(w.uploads())
			l.start()
			l.write(1100)
			synctest.Wait()
			created += len(w.uploads()) - before
			l.checkpoint()
		}}
		report := w.sweep(o)
		require.Equal(t, 2, report.Aborted.Uploads, "those of the run that died first")
		require.Len(t, report.Uploads, 2)
		require.Positive(t, created)
		l.run.finish()
		w.requireExactly(l.next)
	})
}

// The run saves a checkpoint that names everything and dies, right after the checkpoints were read: whether it is live has to be asked before.
func TestSweep_ARunThatDiesAfterTheCheckpointsWereReadLosesNothing(t *testing.T) {
	for _, when := range []string{"after Load", "after List", "before Load", "before List", "after Live", "before Live", "after NewestEpoch"} {
		bubble(t, func(t *testing.T, w *world) {
			l := &life{w: w, options: options()}
			l.start()
			l.checkpoint() // so that there is one to load
			l.write(300)
			synctest.Wait()
			o := w.sweepOptions(l.options)
			o.Checkpoints = restless{o.Checkpoints, func(now string) {
				if now == when {
					l.checkpoint()
					l.crash()
				}
			}}
			require.Zero(t, w.sweep(o).Aborted.Uploads, when)
			l.start()
			l.write(200)
			l.run.finish()
			w.requireExactly(500)
		})
	}
}

// All checkpoints that were listed have been pruned when they are read.
func TestSweep_CheckpointsThatGoAwayWhileTheyAreReadAreReadAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l := &life{w: w, options: options()}
		l.start()
		l.write(300)
		synctest.Wait()
		l.checkpoint()
		o := w.sweepOptions(l.options)
		n := 0
		o.Checkpoints = restless{o.Checkpoints, func(string) {
			if n++; n < 12 {
				l.checkpoint()
			}
		}}
		report := w.sweep(o)
		require.Zero(t, report.Aborted.Uploads)
		require.Len(t, report.Checkpoints, 1)
		require.Greater(t, int(report.Checkpoints[0]), 1)

		o.Checkpoints = restless{w.sweepOptions(l.options).Checkpoints, func(string) { l.checkpoint() }}
		_, err := sink.Sweep(t.Context(), w.openFS(), o)
		require.ErrorIs(t, err, sink.ErrSweepRefused)
		require.ErrorContains(t, err, "replaced faster than they can be read")
		l.run.finish()
		w.requireExactly(300)
	})
}

// Several sweeps at once, one of which is answered late, agree with each other.
func TestSweep_TwoAtOnceDoNotDisturbEachOther(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for range 3 {
			w.leave(options())
		}
		w.store.Control(s3test.Match{Op: s3test.AbortMultipartUpload, Every: 2}, s3test.Always(s3test.Delay(time.Second)))
		errs := make(chan error)
		for range 2 {
			go func() {
				_, err := sink.Sweep(t.Context(), w.openFS(), w.sweepOptions(options()))
				errs <- err
			}()
		}
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
		require.Empty(t, w.uploads())
	})
}
