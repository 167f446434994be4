package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
	"unicode/utf8"
)

// Coordinator takes checkpoints of its participants. Create it with NewCoordinator, call Restore once, then run the data flow
// inside Step, and Run or Trigger beside it; Close ends it. A Coordinator serves one run: after a failure the
// participants and the Coordinator are made anew, with the same Store if it is still open.
//
// All methods are safe for concurrent use. The Store is the caller's: the Coordinator does not close it.
type Coordinator struct {
	store Store
	opts  Options
	parts []Participant
	gate  *barrier

	// turn is held by whoever restores, takes a checkpoint or closes. It guards epoch, last and touched. It is a channel because
	// it is held across I/O, and waiting for it has to be cancellable.
	turn    chan struct{}
	epoch   int64
	last    ID   // the newest saved checkpoint
	touched bool // participants have been restored, or were about to be
	behind  *behind

	mu        sync.Mutex
	stats     Stats
	lastStart time.Time // of the last attempt
	lastEnd   time.Time
	cancel    context.CancelCauseFunc // of the attempt or restore that is going on
}

// NewCoordinator checks o and the participants' names, which must be different and not empty. Order matters: Capture, Commit
// and Restore are called in this order. It does no I/O.
func NewCoordinator(s Store, o Options, ps ...Participant) (*Coordinator, error) {
	errs := []error{o.Validate()}
	if s == nil {
		errs = append(errs, errors.New("no store"))
	}
	names := make(map[string]bool, len(ps))
	for _, p := range ps {
		switch name := p.Name(); {
		case name == "":
			errs = append(errs, errors.New("participant without a name"))
		case !utf8.ValidString(name):
			errs = append(errs, fmt.Errorf("participant name %q is not UTF-8", name))
		case names[name]:
			errs = append(errs, fmt.Errorf("two participants are named %q", name))
		default:
			names[name] = true
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("checkpoint options: %w", err)
	}
	return &Coordinator{
		store: s, opts: o.withDefaults(), parts: append([]Participant(nil), ps...),
		gate: newBarrier(), turn: make(chan struct{}, 1), behind: newBehind(o.CommitBacklog),
	}, nil
}

// Restore claims the next epoch, gives every participant its state of the newest checkpoint, in order, and commits that checkpoint
// again, since the run that saved it may have died before it had. It returns the id of the restored checkpoint, 0 for a fresh start.
//
// It fails when the newest checkpoint is damaged (*DamagedError: nothing falls back by itself), when another run holds the store
// (ErrEpochTaken), or when the checkpoint has state of a participant that does not exist: that state would be lost with the
// next checkpoint. Before it has touched a participant it can be called again. A *CommitError means that everything is
// restored and the flow may run, but that old output is still pending; the caller decides.
func (c *Coordinator) Restore(ctx context.Context) (ID, error) {
	if err := c.gate.err(); err != nil && !errors.Is(err, ErrNotRestored) {
		return 0, err
	}
	ctx, done, err := c.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	if c.touched {
		return 0, fmt.Errorf("second restore: %w", ErrNotRestored)
	}
	start := time.Now()
	epoch, m, err := c.load(ctx)
	if err != nil {
		return 0, err
	}
	c.touched = true
	if err := c.restoreAll(ctx, epoch, m); err != nil {
		c.gate.stop(err)
		return 0, err
	}
	c.epoch, c.last = epoch, m.ID
	c.mu.Lock()
	c.stats.Epoch, c.stats.Restored, c.stats.LastDurable = epoch, m.ID, m.ID
	c.lastStart, c.lastEnd = time.Now(), time.Now()
	c.mu.Unlock()
	info := Info{ID: m.ID, Epoch: epoch, Started: start, Total: time.Since(start)}
	c.opts.Logger.Info("restored", "checkpoint", int64(m.ID), "epoch", epoch, "written in epoch", m.Epoch)
	tell(c.opts.Observer.Restored, info)
	if m.ID != 0 {
		err = c.commit(ctx, &info)
	}
	c.gate.open()
	return m.ID, err
}

// load claims the epoch and reads the newest checkpoint. A zero manifest is a fresh start.
func (c *Coordinator) load(ctx context.Context) (int64, Manifest, error) {
	epoch, err := c.store.Claim(ctx)
	if err != nil {
		return 0, Manifest{}, &Error{Op: "claim", Err: err}
	}
	m, err := c.store.Latest(ctx)
	switch {
	case errors.Is(err, ErrNoCheckpoint):
		return epoch, Manifest{}, nil
	case err != nil:
		return 0, Manifest{}, &Error{Op: "restore", Err: err}
	case m.Epoch >= epoch:
		return 0, Manifest{}, &Error{
			Op: "restore", ID: m.ID,
			Err: fmt.Errorf("written in epoch %d, but this run was given epoch %d: %w", m.Epoch, epoch, ErrFenced),
		}
	}
	known := make(map[string]bool, len(c.parts))
	for _, p := range c.parts {
		known[p.Name()] = true
	}
	for _, s := range m.States {
		if !known[s.Name] {
			return 0, Manifest{}, &Error{
				Op: "restore", ID: m.ID, Participant: s.Name,
				Err: errors.New("the checkpoint has its state, but the job has no such participant"),
			}
		}
	}
	return epoch, m, nil
}

func (c *Coordinator) restoreAll(ctx context.Context, epoch int64, m Manifest) error {
	blobs := openOnly{c.store}
	for _, p := range c.parts {
		r := Restored{ID: m.ID, Epoch: epoch, State: m.state(p.Name()), Blobs: blobs}
		if err := p.Restore(ctx, r); err != nil {
			return &Error{Op: "restore", ID: m.ID, Participant: p.Name(), Err: err}
		}
	}
	return nil
}

// Step runs fn as one indivisible step of the data flow: for every checkpoint, either all its effects are part of it, or
// none. Many goroutines may be in a step at the same time; Step waits while a barrier is up, until ctx ends. It costs well under a
// microsecond. fn may block, but everybody else waits for it at the next barrier. fn must not call Step, Trigger or Close.
//
// If fn returns an error that is not marked by NoEffect, or panics, the step may be half done and no checkpoint can be taken
// any more: this and every later Step and Trigger return a *StepError. Step returns ErrClosed after Close.
func (c *Coordinator) Step(ctx context.Context, fn func() error) error {
	s, err := c.gate.enter(ctx)
	if err != nil {
		return err
	}
	whole := false
	defer func() {
		if !whole { // before leave: a barrier that waits for this step must see it
			c.gate.stop(&StepError{errors.New("panic")})
		}
		c.gate.leave(s)
	}()
	if err = fn(); err != nil {
		err = c.broken(err)
	}
	whole = true
	return err
}

// broken decides what the error of a step means.
func (c *Coordinator) broken(err error) error {
	if mark, ok := errors.AsType[*noEffect](err); ok {
		if err == error(mark) {
			return mark.err
		}
		return err
	}
	broken := &StepError{err}
	c.gate.stop(broken)
	return broken
}

// Trigger takes one checkpoint now, after the one that may be going on, and returns its id when it is committed, and all
// before it. After an error the checkpoint is
// abandoned and the id is 0, except that a *CommitError comes with the id of a durable checkpoint, part of which is
// still pending. ErrFenced, ErrAmbiguous and *StepError are final: every later call returns them too.
func (c *Coordinator) Trigger(ctx context.Context) (ID, error) {
	if err := c.gate.err(); err != nil {
		return 0, err
	}
	ctx, done, err := c.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	return c.checkpoint(ctx, false)
}

// Stats returns the counts so far.
func (c *Coordinator) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Close ends the Coordinator without taking a checkpoint; for a last one, call Trigger before. Waiting and later steps return
// ErrClosed, Run returns, a checkpoint that is past its barrier is finished. When ctx ends that checkpoint is abandoned.
// Close returns when nothing of this Coordinator runs any more, which it waits for in any case, and no step either; an error says
// that ctx ended while steps were still running. It is idempotent.
func (c *Coordinator) Close(ctx context.Context) error {
	c.gate.stop(ErrClosed)
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		c.mu.Lock()
		cancel := c.cancel
		c.mu.Unlock()
		if cancel != nil {
			cancel(ErrClosed)
		}
		c.turn <- struct{}{}
	}
	defer func() { <-c.turn }()
	c.behind.close(ctx)
	if err := c.gate.drain(ctx, nil); err != nil {
		return &Error{Op: "close", Err: err}
	}
	return nil
}

// begin takes the turn. done gives it back.
func (c *Coordinator) begin(ctx context.Context) (_ context.Context, done func(), err error) {
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	case <-c.gate.stopped:
		return nil, nil, c.gate.err()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done = func() {
		cancel(nil)
		<-c.turn
	}
	c.mu.Lock()
	c.cancel = cancel
	c.mu.Unlock()
	if err := c.gate.err(); err != nil && !errors.Is(err, ErrNotRestored) {
		done()
		return nil, nil, err
	}
	return ctx, done, nil
}

// openOnly is the Blobs of a restore.
type openOnly struct{ s Store }

func (openOnly) Put(context.Context, io.Reader, int64) (string, error) {
	return "", errors.New("blobs cannot be put during a restore: no checkpoint would name them")
}

func (b openOnly) Open(ctx context.Context, ref string) (io.ReadCloser, error) {
	return b.s.OpenBlob(ctx, ref)
}
