package checkpoint

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
)

// barrier lets many steps run side by side and stops them all at once for a capture.
//
// Running steps are counted in shards, each on its own cache line, so that the fast path of a step is two uncontended
// additions. A step first counts itself and then looks at the state; raise first changes the state and then looks at the counts.
// Go's atomics are sequentially consistent, so at least one of the two sees the other.
//
// All waiting is on channels: that makes it cancellable, and durable blocking for testing/synctest.
type barrier struct {
	state  atomic.Uint32 // bits below, changed under mu; 0 = open
	shards []shard
	mask   uint32
	// drained gets a token from every step that ends while the state is not 0. One receiver at a time, which looks at all
	// counts again after each token; a token too many is harmless.
	drained chan struct{}
	stopped chan struct{} // closed by the first stop

	mu      sync.Mutex // never held across a wait
	change  chan struct{}
	stopErr error
}

const (
	bitFresh   = 1 << iota // never opened
	bitPending             // a barrier is up
	bitStopped             // stopErr is set
)

const maxShards = 64

// shard is padded to two cache lines, since hardware prefetches pairs.
type shard struct {
	running atomic.Int64
	_       [120]byte
}

func newBarrier() *barrier {
	n := 1
	for n < runtime.GOMAXPROCS(0) && n < maxShards {
		n *= 2
	}
	b := &barrier{
		shards: make([]shard, n), mask: uint32(n - 1),
		drained: make(chan struct{}, 1), stopped: make(chan struct{}), change: make(chan struct{}),
	}
	b.state.Store(bitFresh)
	return b
}

// enter counts a step in, after waiting for a barrier that is up. The caller leaves the returned shard.
func (b *barrier) enter(ctx context.Context) (*shard, error) {
	for {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("step: %w", context.Cause(ctx))
		}
		s := &b.shards[rand.Uint32()&b.mask]
		s.running.Add(1)
		if b.state.Load() == 0 {
			return s, nil
		}
		b.leave(s)
		if err := b.await(ctx); err != nil {
			return nil, err
		}
	}
}

// leave counts a step out.
func (b *barrier) leave(s *shard) {
	s.running.Add(-1)
	if b.state.Load() != 0 {
		select {
		case b.drained <- struct{}{}:
		default:
		}
	}
}

// await waits until the state may have become open.
func (b *barrier) await(ctx context.Context) error {
	b.mu.Lock()
	state, change, stopErr := b.state.Load(), b.change, b.stopErr
	b.mu.Unlock()
	switch {
	case state&bitStopped != 0:
		return stopErr
	case state&bitFresh != 0:
		return ErrNotRestored
	case state == 0:
		return nil
	}
	select {
	case <-change:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("step: %w", context.Cause(ctx))
	}
}

// open lets the first steps in.
func (b *barrier) open() { b.set(0, bitFresh) }

// raise puts the barrier up. The caller drains and lowers it, one barrier at a time.
func (b *barrier) raise() { b.set(bitPending, 0) }

// lower lets waiting steps go on.
func (b *barrier) lower() { b.set(0, bitPending) }

// stop ends everything with err. The first reason stays, except that ErrClosed wins over all.
func (b *barrier) stop(err error) {
	b.mu.Lock()
	switch {
	case b.stopErr == nil:
		b.stopErr = err
		close(b.stopped)
	case err == ErrClosed:
		b.stopErr = err
	}
	b.mu.Unlock()
	b.set(bitStopped, 0)
}

func (b *barrier) set(on, off uint32) {
	b.mu.Lock()
	b.state.Store(b.state.Load()&^off | on)
	close(b.change)
	b.change = make(chan struct{})
	b.mu.Unlock()
}

// err says why no checkpoint can be taken: nil when open.
func (b *barrier) err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch state := b.state.Load(); {
	case state&bitStopped != 0:
		return b.stopErr
	case state&bitFresh != 0:
		return ErrNotRestored
	}
	return nil
}

// drain waits for running steps. The state is not 0, so no step begins meanwhile. It gives up when ctx ends or stop, which may
// be nil, is closed.
func (b *barrier) drain(ctx context.Context, stop <-chan struct{}) error {
	for i := range b.shards {
		for b.shards[i].running.Load() != 0 {
			select {
			case <-b.drained:
			case <-stop:
				return b.err()
			case <-ctx.Done():
				return fmt.Errorf("%d steps still running: %w", b.running(), context.Cause(ctx))
			}
		}
	}
	return nil
}

func (b *barrier) running() (n int64) {
	for i := range b.shards {
		n += b.shards[i].running.Load()
	}
	return n
}
