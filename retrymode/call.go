package retrymode

import (
	"context"
	"errors"
	"time"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// call is the state of one S3 call over its attempts. The SDK runs a call on one goroutine, so it needs no lock. The methods accept nil,
// the state of a call without the middleware.
type call struct {
	operation    string
	scope        scope
	attempts     int       // granted so far
	counters     *counters // of the operation; see countersOf
	conditional  bool      // the request carries If-Match or If-None-Match
	expired      bool      // an attempt was refused for expired credentials
	current      *grant    // of the attempt in flight
	backoffSince time.Time // zero when not waiting for a retry

	// What the limiter has to wait before the next attempt, from heldSince on.
	hold, notBefore time.Duration
	heldSince       time.Time
}

type callKey struct{}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// countersOf returns the counters of the call's operation, which are looked for once.
func (c *call) countersOf(r *Retryer) *counters {
	if c.counters == nil {
		c.counters = r.recorder.of(c.operation)
	}
	return c.counters
}

// scopeOf returns the call's scope: the one that everything shares when it is not known.
func (c *call) scopeOf() scope {
	if c == nil {
		return scope{}
	}
	return c.scope
}

func (c *call) sent(g *grant) {
	if c != nil {
		c.attempts++
		c.current = g
	}
}

// takeHold returns what is left of the hold before the next attempt, and forgets it.
func (c *call) takeHold(now time.Time) (hold, notBefore time.Duration) {
	if c == nil || c.heldSince.IsZero() {
		return 0, 0
	}
	passed := now.Sub(c.heldSince)
	hold, notBefore = max(c.hold-passed, 0), max(c.notBefore-passed, 0)
	c.hold, c.notBefore, c.heldSince = 0, 0, time.Time{}
	return hold, notBefore
}

func (c *call) endBackoff(to *counters) {
	if c == nil || c.backoffSince.IsZero() {
		return
	}
	to.backoffWait.Add(int64(time.Since(c.backoffSince)))
	c.backoffSince = time.Time{}
}

// end settles what the SDK left open. It may be called again.
func (c *call) end(r *Retryer) {
	if c.current != nil && c.current.forfeit() {
		c.attempts--
	}
	c.endBackoff(c.countersOf(r))
}

// classify is [ClassifyCall] with what only the call knows: a second refusal of credentials means that there are no fresh ones, and whatever
// failed without an answer after the context had ended failed because of that.
func (c *call) classify(ctx context.Context, err error) Class {
	class, code := ClassifyCall(c.operation, c.conditional, err), codeOf(err)
	switch {
	case ctx.Err() != nil && code == "" && statusOf(err) == 0:
		return Canceled
	case class == Transient && isExpired(code):
		if c.expired {
			return Permanent
		}
		c.expired = true
	}
	return class
}

// Middleware returns what [Retryer.Apply] adds to aws.Config.APIOptions; a client made by s3.New wants it in s3.Options.APIOptions. It tells
// the retryer what the SDK's retry interface does not: the operation, condition and deadline behind an error, the number of attempts of a failed
// call ([AttemptError]), and the end of an attempt that the SDK forgets to release (a body that cannot be rewound, a panic).
//
// Without it the retryer still makes the right number of attempts, but knows neither deadlines in advance nor conditional writes.
func (r *Retryer) Middleware() func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		if _, ok := stack.Finalize.Get("Retry"); !ok {
			return nil // nothing is sent (presigning), so nothing is retried
		}
		if err := stack.Initialize.Add(callMiddleware{r: r, operation: stack.ID()}, middleware.Before); err != nil {
			return err
		}
		return stack.Finalize.Insert(attemptMiddleware{}, "Retry", middleware.After)
	}
}

// callMiddleware spans a call.
type callMiddleware struct {
	r         *Retryer
	operation string
}

func (callMiddleware) ID() string { return "sluice/retrymode.Call" }

func (m callMiddleware) HandleInitialize(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	out middleware.InitializeOutput, metadata middleware.Metadata, err error,
) {
	c := &call{operation: m.operation, scope: m.r.options.scopeOf(m.operation, in.Parameters)}
	defer c.end(m.r) // also when next panics
	out, metadata, err = next.HandleInitialize(context.WithValue(ctx, callKey{}, c), in)
	c.end(m.r)
	if err == nil {
		return out, metadata, nil
	}
	// Errors of attempts are wrapped already; what is left ended the call between them.
	if ae, ok := errors.AsType[*AttemptError](err); !ok || ae.Operation != c.operation {
		err = &AttemptError{Operation: c.operation, Attempts: c.attempts, Class: c.classify(ctx, err), Err: err}
	}
	return out, metadata, err
}

// attemptMiddleware spans an attempt.
type attemptMiddleware struct{}

func (attemptMiddleware) ID() string { return "sluice/retrymode.Attempt" }

func (attemptMiddleware) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	out middleware.FinalizeOutput, metadata middleware.Metadata, err error,
) {
	c := callOf(ctx)
	if req, ok := in.Request.(*smithyhttp.Request); ok && c != nil {
		c.conditional = req.Header.Get("If-None-Match") != "" || req.Header.Get("If-Match") != ""
	}
	out, metadata, err = next.HandleFinalize(ctx, in)
	if err == nil || c == nil {
		return out, metadata, err
	}
	deadline, _ := ctx.Deadline()
	return out, metadata, &AttemptError{
		Operation: c.operation, Attempts: c.attempts, Class: c.classify(ctx, err), Err: err, deadline: deadline, call: c,
	}
}
