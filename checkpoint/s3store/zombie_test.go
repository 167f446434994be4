package s3store

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

// zombie runs a script that is held up before request op takes effect. Meanwhile its successor, which takes it for dead, restores, takes
// checkpoints, prunes the older ones, and goes on. fenced says that the zombie noticed, held what it was doing, "" when the script ended
// before. The error is the first violation.
func (w *world) zombie(op, successorCheckpoints int) (fenced bool, held string, err error) {
	p := w.start()
	var successorErr error
	p.on(func(n int, r s3test.Request) *s3test.Reply {
		if n == op {
			held = fmt.Sprintf("%s %s%s", r.Op, r.Key, r.Query.Get("prefix"))
			successorErr = w.successor(successorCheckpoints)
		}
		return nil
	})
	err = p.script(2)
	if fenced = errors.Is(err, checkpoint.ErrFenced); err != nil && !fenced {
		return false, held, fmt.Errorf("zombie: %w", err)
	}
	if successorErr != nil {
		return fenced, held, fmt.Errorf("successor: %w", successorErr)
	}
	// A third run finds one line of history, and the unfinished business of both.
	j, _, err := w.start().run(2)
	if err == nil {
		err = j.finish()
	}
	return fenced, held, err
}

// successor takes over. It may lose the number of its first checkpoint to the zombie, never a later one.
func (w *world) successor(checkpoints int) error {
	j, _, err := w.start().run(1)
	if err != nil {
		return err
	}
	for i := range checkpoints {
		if err := j.checkpoints(1); err != nil {
			if i == 0 && errors.Is(err, checkpoint.ErrFenced) {
				return nil
			}
			return err
		}
	}
	return nil
}

func TestZombie_HeldUpAnywhere_NeverPublishesWhatItsSuccessorDoes(t *testing.T) {
	cleanAWS(t)
	for checkpoints, step := range map[int]int{0: 4, 1: 1, 3: 4} {
		t.Run(fmt.Sprint(checkpoints), func(t *testing.T) {
			lost := 0
			for op, last := 0, false; !last; op += step {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, s3test.Options{NoTrace: true})
					defer w.end()
					fenced, held, err := w.zombie(op, checkpoints)
					require.NoError(t, err, "held up at request %d, %s", op, held)
					if last = held == ""; fenced {
						lost++
					}
				})
			}
			require.Positive(t, lost, "the zombie was never fenced off")
		})
	}
}

// What the package comment says about stores without conditional PUT: a manifest can be overwritten by a zombie that was held up between the look
// and the write for a whole checkpoint of its successor. Nothing else differs.
func TestZombie_WithoutConditionalPut_IsDangerousAtTheManifestOnly(t *testing.T) {
	cleanAWS(t)
	dangerous := -1
	for op, last := 0, false; !last; op++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, s3test.Options{NoTrace: true})
			w.unconditional = true
			defer w.end()
			_, held, err := w.zombie(op, 1)
			if err != nil && strings.HasPrefix(held, "PutObject "+dir+manifestPrefix) {
				dangerous = op
				return
			}
			require.NoError(t, err, "held up at request %d, %s", op, held)
			last = held == "" || dangerous >= 0 && op > dangerous+5 // the next checkpoint is like the first
		})
	}
	require.Positive(t, dangerous, "the package comment says too much")
}

func TestZombie_ThatWakesUpAfterASuccessorClaimed_IsFencedAndPublishesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		zombie, _, err := w.start().run(1)
		require.NoError(t, err)
		require.NoError(t, zombie.checkpoints(1))
		heir, id, err := w.start().run(1)
		require.NoError(t, err)
		require.EqualValues(t, 1, id)
		require.NoError(t, zombie.write(5))
		id, err = zombie.c.Trigger(t.Context())
		require.ErrorIs(t, err, checkpoint.ErrFenced)
		require.Zero(t, id)
		require.ErrorIs(t, zombie.write(1), checkpoint.ErrFenced, "it would work for nothing")
		require.ErrorIs(t, zombie.c.Run(t.Context()), checkpoint.ErrFenced)
		require.NoError(t, heir.checkpoints(1))
		require.NoError(t, heir.finish())
		require.NoError(t, zombie.close())
		// What the zombie could not save is gone after its successor's next Prune.
		next, _, err := w.start().run(1)
		require.NoError(t, err)
		require.NoError(t, next.finish())
		require.Empty(t, w.blobNames())
	})
}

// Two runs at full speed, and answers that take any time from none to a second. One of them ends with the claim, and the history is that of both.
func TestTwoRuns_AtTheSameTime_ContinueOneLine(t *testing.T) {
	cleanAWS(t)
	for seed := range 6 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, s3test.Options{NoTrace: true})
			defer w.end()
			var wg sync.WaitGroup
			errs := make([]error, 2)
			for i := range errs {
				p := w.start()
				p.on(func(n int, _ s3test.Request) *s3test.Reply {
					x := uint32(seed*7919+i*104729+n) * 2654435761
					return s3test.Delay(time.Duration(x>>22) * time.Millisecond)
				})
				wg.Go(func() {
					time.Sleep(time.Duration(i*seed) * 700 * time.Millisecond)
					errs[i] = p.script(4)
				})
			}
			wg.Wait()
			lost := 0
			for _, err := range errs {
				if err != nil {
					require.ErrorIs(t, err, checkpoint.ErrFenced)
					lost++
				}
			}
			require.LessOrEqual(t, lost, 2)
			require.NoError(t, w.goOn(), "seed %d", seed)
		})
	}
}
