package s3store

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs/s3test"
)

// dieAt kills the process at request op.
func (p *proc) dieAt(op int, how *s3test.Reply) {
	p.on(func(n int, _ s3test.Request) *s3test.Reply {
		if n != op {
			return nil
		}
		p.die()
		return how
	})
}

// A process can die before the store has done what it was asked for, or after that, with nobody left to hear of it. To die after one request is the
// same for those who come later as to die before the next one, so half of the cases will do.
func TestCrash_AtEveryRequest_LosesNoSavedCheckpoint(t *testing.T) {
	cleanAWS(t)
	for first, how := range []*s3test.Reply{s3test.ResetBefore(), s3test.ResetAfter()} {
		t.Run([]string{"before", "after"}[first], func(t *testing.T) {
			for op, last := first, false; !last; op += 2 {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, s3test.Options{NoTrace: true})
					defer w.end()
					p := w.start()
					p.dieAt(op, how)
					err := p.script(3)
					if last = p.count() <= op; last {
						require.NoError(t, err, "the script does not even work without a crash")
					}
					require.NoError(t, w.goOn(), "crash at request %d", op)
				})
			}
		})
	}
}

// A crash in the restart itself, at each of its requests, after a first run that died in the middle of its second checkpoint.
func TestCrash_DuringTheRestart_LosesNoSavedCheckpoint(t *testing.T) {
	cleanAWS(t)
	for _, first := range []int{12, 20} {
		for op, last := 0, false; !last; op++ {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, s3test.Options{NoTrace: true})
				defer w.end()
				p := w.start()
				p.dieAt(first, s3test.ResetAfter())
				require.Error(t, p.script(3))
				q := w.start()
				q.dieAt(op, s3test.ResetAfter())
				_, _, err := q.run(2)
				last = err == nil
				require.NoError(t, w.goOn(), "crash at request %d, then at request %d of the restart", first, op)
			})
		}
	}
}

// A request that fails for good costs at most a restart, and the error says what it was.
func TestFault_AtAnyRequest_CostsAtMostARestart(t *testing.T) {
	cleanAWS(t)
	for op, last := 0, false; !last; op += 2 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, s3test.Options{NoTrace: true})
			defer w.end()
			p := w.start()
			p.on(func(n int, _ s3test.Request) *s3test.Reply {
				if n == op {
					return s3test.Status(403, "AccessDenied")
				}
				return nil
			})
			err := p.script(3)
			if last = p.count() <= op; last {
				require.NoError(t, err)
			}
			if err != nil {
				require.ErrorContains(t, err, "AccessDenied", "request %d", op)
			}
			require.NoError(t, w.goOn(), "refused at request %d", op)
		})
	}
}

func TestFault_ThatPasses_IsNotNoticed(t *testing.T) {
	for name, r := range map[string]*s3test.Reply{
		"SlowDown": s3test.SlowDown(), "empty 503": s3test.EmptyBody503(), "500": s3test.Status(500, "InternalError"),
		"500 after the effect": s3test.Status(500, "InternalError").WithEffect(), "reset": s3test.ResetBefore(), "lost answer": s3test.ResetAfter(),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				p := w.start()
				p.on(func(n int, _ s3test.Request) *s3test.Reply {
					if n%3 == 2 {
						return r
					}
					return nil
				})
				j, _, err := p.run(1)
				require.NoError(t, err)
				require.NoError(t, j.checkpoints(4))
				require.NoError(t, j.finish())
			})
		})
	}
}

func TestCrash_OfACoordinatorThatIsCancelled_LeavesWhatItHadSaved(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.start()
		j, _, err := p.run(1)
		require.NoError(t, err)
		require.NoError(t, j.checkpoints(2))
		require.NoError(t, j.write(1))
		p.kill(errKilled)
		_, err = j.c.Trigger(p.ctx)
		require.True(t, errors.Is(err, errKilled), "%v", err)
		require.NoError(t, w.goOn())
	})
}
