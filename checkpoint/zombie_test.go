package checkpoint_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/checkpoint/crashfs"
	"github.com/sluice-go/sluice/checkpoint/internal/flow"
)

// The lock is broken in these tests: the second run begins while the first one, which it takes for dead, is only slow. It is held up before
// each of its file operations in turn; meanwhile the second run restores, takes checkpoints, prunes the older ones, and
// ends or goes on. However they interleave, every row must be published exactly once.
func TestZombie_HeldUpAnywhere_NeverPublishesWhatItsSuccessorDoes(t *testing.T) {
	t.Parallel()
	for _, checkpoints := range []int{0, 1, 3} {
		lost := 0
		for op, last := 0, false; !last; op++ {
			m, w := crashfs.New("base"), flow.NewOutput()
			m.LockBroken = true
			p := m.Process()
			last = true
			p.Hook = func(n int, _, _ string) error {
				if n == op {
					last = false
					if err := successor(t.Context(), m, w, checkpoints); err != nil {
						t.Errorf("successor with %d checkpoints at operation %d: %v", checkpoints, op, err)
					}
				}
				return nil
			}
			err := script(t.Context(), p, w, 2)
			switch {
			case errors.Is(err, checkpoint.ErrFenced) || errors.Is(err, checkpoint.ErrEpochTaken):
				lost++
			case err != nil:
				t.Errorf("zombie held up at operation %d: %v", op, err)
			}
			// A third run finds one line of history, and the unfinished business of both.
			j, _, err := startJob(t.Context(), m.Process(), w, checkpoint.Options{}, nil)
			if err == nil {
				err = j.finish(t.Context())
			}
			if err == nil {
				err = j.check()
			}
			if err != nil {
				t.Errorf("zombie held up at operation %d by %d checkpoints: %v", op, checkpoints, err)
			}
		}
		if lost == 0 {
			t.Errorf("%d checkpoints: the zombie was never fenced off", checkpoints)
		}
	}
}

// successor takes over. It may lose the number of its first checkpoint to the zombie, never a later one.
func successor(ctx context.Context, m *crashfs.Disk, w *flow.Output, checkpoints int) error {
	j, _, err := startJob(ctx, m.Process(), w, checkpoint.Options{Retain: 1}, nil)
	if err != nil {
		return err
	}
	for i := range checkpoints {
		if err := j.write(ctx, 2); err != nil {
			return err
		}
		if _, err := j.c.Trigger(ctx); err != nil {
			if i == 0 && errors.Is(err, checkpoint.ErrFenced) {
				return nil
			}
			return err
		}
	}
	return nil
}

// Two runs take turns, each believing in itself: as soon as the second has claimed, the first cannot save any more.
func TestZombie_ThatWakesUpAfterASuccessorClaimed_IsFencedAndPublishesNothing(t *testing.T) {
	ctx := t.Context()
	m, w := crashfs.New("base"), flow.NewOutput()
	m.LockBroken = true
	zombie, _, err := startJob(ctx, m.Process(), w, checkpoint.Options{}, nil)
	must(t, err)
	must(t, zombie.write(ctx, 3))
	_, err = zombie.c.Trigger(ctx)
	must(t, err)

	heir, id, err := startJob(ctx, m.Process(), w, checkpoint.Options{}, nil)
	must(t, err)
	if id != 1 {
		t.Fatalf("restored checkpoint %d, want 1", id)
	}
	must(t, zombie.write(ctx, 5))
	if id, err := zombie.c.Trigger(ctx); id != 0 || !errors.Is(err, checkpoint.ErrFenced) {
		t.Fatalf("Trigger of the zombie = %d, %v, want ErrFenced", id, err)
	}
	if err := zombie.write(ctx, 1); !errors.Is(err, checkpoint.ErrFenced) {
		t.Errorf("Step of the zombie = %v, want ErrFenced: it would work for nothing", err)
	}
	if err := zombie.c.Run(ctx); !errors.Is(err, checkpoint.ErrFenced) {
		t.Errorf("Run of the zombie = %v, want ErrFenced", err)
	}
	must(t, heir.write(ctx, 2))
	must(t, heir.finish(ctx))
	must(t, heir.check())
}
