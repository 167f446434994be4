package s3fs

import (
	"context"
	"time"
)

// call describes one S3 call for its deadline and its errors.
type call struct {
	op         string
	path       Path
	uploadID   string
	part       int32
	size       int64  // bytes that move with the call itself
	write      bool   // it has an effect
	permission string // what an account needs for it, "" when unknown
}

// begin checks that a call may start: a call with an ended context or on a
// closed file system has no effect at all. The returned context ends with the
// caller's, with the file system, and after the call timeout; done must be
// called when the call has ended.
func (f *FS) begin(ctx context.Context, c call) (_ context.Context, done func(), _ error) {
	if err := f.enter(ctx, c); err != nil {
		return nil, nil, err
	}
	limit := f.CallTimeout(c.size)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &CallTimeoutError{After: limit})
	ctx, end := f.bind(ctx)
	return ctx, func() { end(); cancel(); f.leave() }, nil
}

// enter counts a call in, or refuses it.
func (f *FS) enter(ctx context.Context, c call) error {
	if ctx.Err() != nil {
		return explain(ctx, c, context.Cause(ctx))
	}
	if err := c.path.Validate(); err != nil {
		return &OpError{Op: c.op, Path: c.path, Class: permanent, Err: err}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return &OpError{Op: c.op, Path: c.path, Class: permanent, Err: ErrClosed}
	}
	f.active++
	return nil
}

// leave counts a call out.
func (f *FS) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active--
	if f.closed && f.active == 0 {
		close(f.idle)
	}
}

// bind makes ctx end with the file system as well.
func (f *FS) bind(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(f.life, func() { cancel(context.Cause(f.life)) })
	return ctx, func() { stop(); cancel(nil) }
}

// invoke runs one call of the SDK.
func invoke[O any](ctx context.Context, f *FS, c call, fn func(context.Context) (O, error)) (O, error) {
	callCtx, done, err := f.begin(ctx, c)
	if err != nil {
		var none O
		return none, err
	}
	defer done()
	out, err := fn(callCtx)
	if err != nil {
		return out, explain(callCtx, c, err)
	}
	return out, nil
}

// answerContext ends at a deadline until its answer has begun. A read has to
// begin in time; how long its body takes is up to the reader, with the progress
// timeout of the connection as the only limit.
type answerContext struct {
	context.Context
	deadline time.Time
	timer    *time.Timer
	cancel   context.CancelCauseFunc
}

func newAnswerContext(ctx context.Context, limit time.Duration) *answerContext {
	deadline := time.Now().Add(limit)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() { cancel(&CallTimeoutError{After: limit}) })
	return &answerContext{Context: ctx, deadline: deadline, timer: timer, cancel: cancel}
}

// Deadline tells the retryer by when the answer has to begin, so that it does
// not start a wait that cannot end in time.
func (c *answerContext) Deadline() (time.Time, bool) { return c.deadline, true }

// answered takes the deadline away.
func (c *answerContext) answered() { c.timer.Stop() }

// close ends the context.
func (c *answerContext) close() {
	c.timer.Stop()
	c.cancel(nil)
}

// sleep waits, unless one of the contexts ends first.
func sleep(ctx, life context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-life.Done():
		return context.Cause(life)
	}
}
