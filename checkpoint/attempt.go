package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// attempt is one try at a checkpoint. It ends durable or abandoned.
type attempt struct {
	c     *Coordinator
	info  Info
	snaps []Snapshot
	blobs BlobWriter
	// unsure: Save was lost to another run or its outcome is not known. The blobs stay then: a manifest may name them. The
	// Prune of whoever goes on removes them if not.
	unsure bool
}

// checkpoint takes one checkpoint. The caller has the turn. Its commit follows the outstanding ones: within this call, or, when
// inBackground, in a goroutine of its own, for which the caller has a reservation.
func (c *Coordinator) checkpoint(ctx context.Context, inBackground bool) (ID, error) {
	a := &attempt{c: c, info: Info{ID: c.last + 1, Epoch: c.epoch, Started: time.Now()}}
	c.mu.Lock()
	c.lastStart = a.info.Started
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.lastEnd = time.Now()
		c.mu.Unlock()
	}()
	tell(c.opts.Observer.Begun, a.info)
	if err := a.makeDurable(ctx); err != nil {
		if inBackground {
			c.behind.cancel()
		}
		a.abandon(err)
		return 0, err
	}
	c.last = a.info.ID
	c.countDurable(a.info)
	tell(c.opts.Observer.Durable, a.info)
	if inBackground {
		c.behind.run(func(ctx context.Context) error { return c.publish(ctx, a.info) })
		return a.info.ID, nil
	}
	if err := c.behind.idle(ctx); err != nil {
		return a.info.ID, &CommitError{ID: a.info.ID, Participant: "earlier checkpoints", Err: err}
	}
	return a.info.ID, c.publish(ctx, a.info)
}

// publish commits a durable checkpoint and deletes old ones.
func (c *Coordinator) publish(ctx context.Context, info Info) error {
	err := c.commit(ctx, &info)
	return join(err, c.prune(ctx, info))
}

// makeDurable runs the phases up to the saved manifest, within the timeout.
func (a *attempt) makeDurable(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, a.c.opts.Timeout, ErrTimeout)
	defer cancel()
	if err := a.capture(ctx); err != nil {
		return err
	}
	tell(a.c.opts.Observer.Captured, a.info)
	begin := time.Now()
	states, err := a.store(ctx)
	a.info.Store = time.Since(begin)
	if err != nil {
		return err
	}
	begin = time.Now()
	err = a.save(ctx, states)
	a.info.Save = time.Since(begin)
	a.info.Total = time.Since(a.info.Started)
	return err
}

// capture takes all snapshots at one point of the data flow.
func (a *attempt) capture(ctx context.Context) error {
	begin := time.Now()
	a.c.gate.raise()
	defer a.c.gate.lower()
	for _, p := range a.c.parts {
		if b, ok := p.(BarrierAware); ok {
			b.BarrierPending(true)
			defer b.BarrierPending(false)
		}
	}
	err := a.c.gate.drain(ctx, a.c.gate.stopped)
	if err == nil {
		err = a.c.gate.err() // the last of the steps may have broken off, or Close came
	}
	a.info.Barrier = time.Since(begin)
	if err != nil {
		return a.fail("barrier", "", err)
	}
	begin = time.Now()
	defer func() { a.info.Capture = time.Since(begin) }()
	for _, p := range a.c.parts {
		s, err := p.Capture(a.info.ID)
		if err == nil && s == nil {
			err = errors.New("no snapshot")
		}
		if err != nil {
			return a.fail("capture", p.Name(), err)
		}
		a.snaps = append(a.snaps, s)
	}
	return nil
}

// store stores all snapshots in parallel and syncs their blobs. The first failure cancels the others.
func (a *attempt) store(ctx context.Context) ([]NamedState, error) {
	w, err := a.c.store.Blobs(ctx, a.info.ID)
	if err != nil {
		return nil, a.fail("store", "", within(ctx, err))
	}
	a.blobs = w
	counted := &countedBlobs{Blobs: w}
	defer func() { a.info.BlobBytes = counted.bytes.Load() }()

	all, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	states := make([]NamedState, len(a.snaps))
	var first error
	var once sync.Once
	var wg sync.WaitGroup
	for i, s := range a.snaps {
		wg.Go(func() {
			name := a.c.parts[i].Name()
			state, refs, err := s.Store(all, counted)
			if err != nil {
				once.Do(func() { first = a.fail("store", name, within(ctx, err)) })
				cancel(fmt.Errorf("%s could not be stored: %w", name, err))
				return
			}
			if state == nil {
				state = []byte{} // nil means a fresh start to Restore
			}
			states[i] = NamedState{Name: name, State: state, Refs: slices.Clone(refs)}
		})
	}
	wg.Wait()
	if first != nil {
		return nil, first
	}
	err = w.Sync(ctx)
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, a.fail("sync blobs", "", within(ctx, err))
	}
	return states, nil
}

func (a *attempt) save(ctx context.Context, states []NamedState) error {
	for _, s := range states {
		a.info.StateBytes += int64(len(s.State))
	}
	err := a.c.store.Save(ctx, Manifest{
		Version: ManifestVersion, ID: a.info.ID, Epoch: a.info.Epoch, CreatedAt: a.info.Started,
		Config: a.c.opts.Config, States: states,
	})
	if err == nil {
		return nil
	}
	if err = a.fail("save", "", within(ctx, err)); errors.Is(err, ErrFenced) || errors.Is(err, ErrAmbiguous) {
		a.unsure = true
		a.c.gate.stop(err)
	}
	return err
}

// abandon gives the work of the attempt back to the participants.
func (a *attempt) abandon(err error) {
	for _, s := range a.snaps {
		s.Discard()
	}
	if a.blobs != nil && !a.unsure {
		if err := a.blobs.Abort(); err != nil {
			a.c.cleanupFailed(a.info, &Error{Op: "delete blobs", ID: a.info.ID, Err: err})
		}
	}
	a.info.Err = err
	a.info.Total = time.Since(a.info.Started)
	a.c.mu.Lock()
	a.c.stats.Abandoned++
	a.c.mu.Unlock()
	tell(a.c.opts.Observer.Failed, a.info)
}

func (a *attempt) fail(op, participant string, err error) error {
	return &Error{Op: op, ID: a.info.ID, Participant: participant, Err: err}
}

// commit lets all participants publish checkpoint info.ID. One that fails does not keep the others from it.
func (c *Coordinator) commit(ctx context.Context, info *Info) error {
	begin := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, c.opts.CommitTimeout, ErrTimeout)
	defer cancel()
	var errs []error
	for _, p := range c.parts {
		if err := p.Commit(ctx, info.ID); err != nil {
			errs = append(errs, &CommitError{ID: info.ID, Participant: p.Name(), Err: within(ctx, err)})
		}
	}
	info.Commit = time.Since(begin)
	info.Total = time.Since(info.Started)
	info.Err = join(errs...)
	c.mu.Lock()
	if info.Err == nil {
		c.stats.Committed++
		c.stats.LastCommitted = info.ID
		c.stats.ConsecutiveFailure = 0
	} else {
		c.stats.CommitFailures++
	}
	c.mu.Unlock()
	if info.Err == nil {
		tell(c.opts.Observer.Committed, *info)
	} else {
		tell(c.opts.Observer.Failed, *info)
	}
	return info.Err
}

// prune deletes what is not needed any more. Only the news of another run is an error: the rest is tried again after the next
// checkpoint, and goes to the observer, the log and a counter.
func (c *Coordinator) prune(ctx context.Context, info Info) error {
	err := c.store.Prune(ctx, c.opts.Retain)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrFenced):
		err = &Error{Op: "prune", ID: info.ID, Err: err}
		c.gate.stop(err)
		return err
	}
	c.cleanupFailed(info, &Error{Op: "prune", ID: info.ID, Err: err})
	return nil
}

func (c *Coordinator) cleanupFailed(info Info, err error) {
	c.mu.Lock()
	c.stats.CleanupFailures++
	c.mu.Unlock()
	info.Err = err
	c.opts.Logger.Warn("old checkpoint data stays for now", "error", err)
	tell(c.opts.Observer.Cleanup, info)
}

func (c *Coordinator) countDurable(info Info) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Durable++
	c.stats.LastDurable = info.ID
	c.stats.BlobBytes += info.BlobBytes
	c.stats.StateBytes += info.StateBytes
	c.stats.Last = info
}

// within adds the reason why ctx ended to an error that is due to it, since "deadline exceeded" alone does not say whose.
func within(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}

// join is errors.Join, but leaves a single error as it is.
func join(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// countedBlobs counts what was put.
type countedBlobs struct {
	Blobs
	bytes atomic.Int64
}

func (b *countedBlobs) Put(ctx context.Context, r io.Reader, size int64) (string, error) {
	ref, err := b.Blobs.Put(ctx, r, size)
	if err == nil {
		b.bytes.Add(size)
	}
	return ref, err
}
