package checkpoint

import (
	"context"
	"sync"
)

// behind runs the commits of durable checkpoints while the next ones are taken: in order, one at a time, and never more
// outstanding than Options.CommitBacklog.
type behind struct {
	slots chan struct{} // a token for each commit that is outstanding
	// life ends when Close cannot wait any longer. It is kept because commits outlive the call that took their checkpoint.
	life context.Context
	end  context.CancelCauseFunc

	running sync.WaitGroup
	wake    chan struct{} // gets a token when a commit has failed

	mu     sync.Mutex
	tail   chan struct{} // closed when the newest commit has ended
	failed []error       // not yet seen by Run
}

func newBehind(backlog int) *behind {
	b := &behind{slots: make(chan struct{}, backlog), wake: make(chan struct{}, 1), tail: make(chan struct{})}
	close(b.tail)
	b.life, b.end = context.WithCancelCause(context.Background())
	return b
}

// reserve waits until one more commit may be outstanding. The reservation ends with the commit, or by cancel.
func (b *behind) reserve(ctx context.Context, stop <-chan struct{}) error {
	select {
	case b.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-stop:
		return ErrClosed
	}
}

func (b *behind) cancel() { <-b.slots }

// run commits in the background, behind the commits that are outstanding.
func (b *behind) run(commit func(context.Context) error) {
	b.mu.Lock()
	before, done := b.tail, make(chan struct{})
	b.tail = done
	b.mu.Unlock()
	b.running.Go(func() {
		defer close(done)
		defer b.cancel()
		<-before
		if err := commit(b.life); err != nil {
			b.mu.Lock()
			b.failed = append(b.failed, err)
			b.mu.Unlock()
			select {
			case b.wake <- struct{}{}:
			default:
			}
		}
	})
}

// idle waits until no commit is outstanding: a commit of this goroutine's own may follow.
func (b *behind) idle(ctx context.Context) error {
	b.mu.Lock()
	tail := b.tail
	b.mu.Unlock()
	select {
	case <-tail:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// failure returns the oldest failed commit that was not returned yet.
func (b *behind) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.failed) == 0 {
		return nil
	}
	err := b.failed[0]
	b.failed = b.failed[1:]
	return err
}

// close waits for the outstanding commits, and cancels them when ctx ends.
func (b *behind) close(ctx context.Context) {
	_ = b.idle(ctx) // the error says that ctx has ended, and then they are cancelled
	b.end(ErrClosed)
	b.running.Wait()
}
