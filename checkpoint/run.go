package checkpoint

import (
	"context"
	"errors"
	"time"
)

// Run takes checkpoints by Interval and MinPause, the first one an interval after Restore, until ctx ends or Close is called: it
// returns nil then. A checkpoint that is going on when ctx ends is abandoned, or stays uncommitted; a Trigger with another context
// takes the last one. Checkpoints that others trigger count for the intervals.
//
// With CommitBacklog, commits go on behind it: Run does not wait for them when it ends, Close and Trigger do.
//
// It returns a *FailuresError after more failed checkpoints or commits in a row than are tolerable, and at once what is
// final for the run: ErrFenced, ErrAmbiguous, *StepError.
func (c *Coordinator) Run(ctx context.Context) error {
	if err := c.gate.err(); err != nil {
		return c.runEnded(err)
	}
	for {
		if !c.sleep(ctx) {
			return c.runEnded(c.gate.err())
		}
		err := c.behind.failure()
		if err == nil {
			var due bool
			if due, err = c.takeDue(ctx); !due && err != nil {
				return c.runEnded(c.gate.err())
			}
		}
		if err == nil {
			continue
		}
		if final := c.gate.err(); final != nil || ctx.Err() != nil {
			return c.runEnded(final)
		}
		c.mu.Lock()
		c.stats.ConsecutiveFailure++
		failures := c.stats.ConsecutiveFailure
		c.mu.Unlock()
		if failures > c.opts.TolerableFailures {
			return &FailuresError{Consecutive: failures, Tolerable: c.opts.TolerableFailures, Err: err}
		}
		c.opts.Logger.Warn("checkpoint failure tolerated", "in a row", failures, "error", err)
	}
}

// takeDue takes the checkpoint that is due. due is false when there is none after all: somebody else's was faster, or, with an
// error, Run is over.
func (c *Coordinator) takeDue(ctx context.Context) (due bool, err error) {
	inBackground := c.opts.CommitBacklog > 0
	if inBackground {
		if err := c.behind.reserve(ctx, c.gate.stopped); err != nil {
			return false, err
		}
	}
	turn, done, err := c.begin(ctx)
	if err != nil || c.untilDue() > 0 {
		if inBackground {
			c.behind.cancel()
		}
		if err == nil {
			done()
		}
		return false, err
	}
	defer done()
	_, err = c.checkpoint(turn, inBackground)
	return true, err
}

// runEnded turns an ordinary end into nil.
func (c *Coordinator) runEnded(err error) error {
	if errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}

// sleep waits until the next checkpoint is due. It returns false when Run is over.
func (c *Coordinator) sleep(ctx context.Context) bool {
	var due <-chan time.Time // never, without an interval
	if c.opts.Interval > 0 {
		timer := time.NewTimer(c.untilDue())
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-c.gate.stopped:
		return false
	case <-due:
		return ctx.Err() == nil
	case <-c.behind.wake: // a commit has failed
		return ctx.Err() == nil
	}
}

func (c *Coordinator) untilDue() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(nextStart(c.lastStart, c.lastEnd, c.opts.Interval, c.opts.MinPause))
}

// nextStart is when the checkpoint after the one from start to end is due: an interval after its start, but not before the
// pause after its end is over. A time that has passed means at once, however many intervals ago it was.
func nextStart(start, end time.Time, interval, pause time.Duration) time.Time {
	next := start.Add(interval)
	if rested := end.Add(pause); rested.After(next) {
		return rested
	}
	return next
}
