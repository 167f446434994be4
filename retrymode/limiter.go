package retrymode

import (
	"context"
	"time"
)

// limiter paces attempts. It is the seam behind which adaptive mode keeps its algorithm: the retryer knows nothing else about it.
// Implementations are safe for concurrent use.
type limiter interface {
	// Wait blocks until the attempt may be sent. When ctx ends first, Wait returns an error that matches ctx's and has taken nothing.
	Wait(ctx context.Context, a attempt) (permit, error)
	// Holds reports whether the limiter keeps retries after refusals back itself (see attempt.hold), so that the retryer must not.
	Holds() bool
}

// permit is the permission to send one attempt. Exactly one Done ends it.
type permit interface {
	// Stale reports whether the permission, which waited for a slot and was not used yet, is worth nothing any more: the rate has been cut since.
	Stale() bool
	// Again gives a stale permission back and waits in its old place for another one. After an error nothing is held and Done must not be called.
	Again(ctx context.Context) error
	// Held is how much of the wait was the hold that the attempt asked for.
	Held() time.Duration
	// Done tells what became of the attempt.
	Done(o outcome)
}

// attempt describes one attempt that is about to be sent.
type attempt struct {
	operation string // SDK name, "PutObject"
	scope     scope
	first     bool // not a retry
	priority  bool // of the priority lane
	// hold keeps a retry back for a while, or until the store comes back; notBefore, what the store asked for, holds even then. Limiters that do not hold ignore both.
	hold, notBefore time.Duration
}

// outcome is what became of an attempt.
type outcome struct {
	sent  bool  // false: given up before it was sent (no slot in time, body not rewindable); nothing was learnt about the store
	class Class // 0 = success
	// lost: no answer came back (connection closed, reset or timed out). A store that sheds load this way never says 503.
	lost bool
	// served: an answer came that was neither an error of the store nor a refusal; a 404 is one.
	served bool
}

// refused reports whether the store did not take the attempt.
func (o outcome) refused() bool { return o.class == Throttle || o.lost }

// unlimited is the limiter of standard mode, and its permit.
type unlimited struct{}

var (
	_ limiter = unlimited{}
	_ permit  = unlimited{}
)

func (unlimited) Wait(ctx context.Context, _ attempt) (permit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return unlimited{}, nil
}

func (unlimited) Holds() bool                 { return false }
func (unlimited) Stale() bool                 { return false }
func (unlimited) Again(context.Context) error { return nil }
func (unlimited) Held() time.Duration         { return 0 }
func (unlimited) Done(outcome)                {}
