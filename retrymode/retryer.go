package retrymode

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/sluice-go/sluice/retrymode/gate"
)

// Retryer owns the attempts of all calls of one S3 client: see the package comment for what it guarantees. It is safe for concurrent use
// and runs no goroutines, so it needs no Close. Install it with [Retryer.Apply].
type Retryer struct {
	options  Options
	backoff  backoff
	limiter  limiter
	gates    *gateLimiter // the limiter, when it is the gate
	params   gate.Params  // of the gates
	slots    *slots
	breakers *breakers // nil = off
	recorder recorder
	sdk      *retry.Standard // only asked whether an attempt is the first of its call
}

var _ aws.RetryerV2 = (*Retryer)(nil)

// Option is a dependency of a [Retryer] that no configuration file can hold.
type Option func(*Retryer)

// WithRandom draws all jitter from src, which makes waits repeatable when calls are made one after the other. Without it they come from the
// automatically seeded generator of math/rand/v2. src is used under a lock and must not be used elsewhere.
func WithRandom(src rand.Source) Option {
	return func(r *Retryer) { r.backoff.random = seededRandom(src) }
}

// New returns a retryer for one client. The error lists every problem of o (see [Options.Validate]).
func New(o Options, opts ...Option) (*Retryer, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r := &Retryer{
		options: o,
		backoff: backoff{base: o.BaseDelay, throttle: o.ThrottleBaseDelay, max: o.MaxBackoff, random: rand.Float64},
		limiter: unlimited{},
		slots:   newSlots(o.MaxInFlight, o.PriorityInFlight),
		sdk:     retry.NewStandard(func(s *retry.StandardOptions) { s.RateLimiter = firstMarker{} }),
	}
	if o.Mode == Adaptive {
		switch o.Limiter {
		case LimiterSDK:
			r.limiter = newSDKLimiter()
		default:
			r.params = gate.Defaults(o.ThrottleBaseDelay, o.MaxBackoff)
			r.gates = newGateLimiter(r.params)
			r.limiter = r.gates
		}
	}
	for _, opt := range opts {
		opt(r)
	}
	if o.CircuitBreaker {
		r.breakers = newBreakers(r.backoff)
	}
	return r, nil
}

// Apply makes every S3 client built from cfg use r, whatever the environment and the shared configuration say about retries. Clients
// of other services must be built from a copy taken before: they would share r's limits.
func (r *Retryer) Apply(cfg *aws.Config) {
	cfg.Retryer = func() aws.Retryer { return r }
	cfg.RetryMaxAttempts = 0 // any other value, AWS_MAX_ATTEMPTS for one, overrules the retryer
	cfg.RetryMode = ""
	cfg.APIOptions = append(cfg.APIOptions[:len(cfg.APIOptions):len(cfg.APIOptions)], r.Middleware())
}

// MaxAttempts returns retries + 1.
func (r *Retryer) MaxAttempts() int { return r.options.MaxRetries + 1 }

// IsErrorRetryable reports whether an attempt that failed with err may be followed by another one.
func (r *Retryer) IsErrorRetryable(err error) bool { return Classify(err).Retryable() }

// RetryDelay returns the wait after failed attempt number n (1, 2, ...), or a [DeadlineError] if the retry could not start before the
// deadline of the call.
//
// A hint of the server (Retry-After, x-amz-retry-after) is a lower bound. Where nothing else bounds the wait, because the call has no
// deadline or the middleware is not installed, the hint counts for MaxBackoff at most; the SDK itself then adds up to 5 s for a longer x-amz-retry-after.
func (r *Retryer) RetryDelay(n int, err error) (time.Duration, error) {
	now := time.Now()
	hint := hintOf(err, now)
	var deadline time.Time
	if ae, ok := errors.AsType[*AttemptError](err); ok {
		deadline = ae.deadline
		if ae.call != nil && r.limiter.Holds() && (ae.Class == Throttle || isRefusal(err)) {
			return 0, r.holdBack(ae, n, hint, now)
		}
	}
	if deadline.IsZero() {
		return r.backoff.delay(n, Classify(err), min(hint, r.options.MaxBackoff)), nil
	}
	wait, left := r.backoff.delay(n, Classify(err), hint), deadline.Sub(now)
	if wait >= left {
		return 0, &DeadlineError{Wait: wait, Left: left, Err: err}
	}
	return wait, nil
}

// holdBack leaves the wait before the retry that follows a refused attempt to the limiter.
func (r *Retryer) holdBack(ae *AttemptError, n int, hint time.Duration, now time.Time) error {
	hold := r.params.HoldFor(n, r.backoff.random())
	if ae.deadline.IsZero() {
		hint = min(hint, r.options.MaxBackoff)
	}
	if hint > 0 {
		hint += scale(r.backoff.random(), r.backoff.throttle) // those who were told the same time do not come back together
	}
	if !ae.deadline.IsZero() {
		left := ae.deadline.Sub(now)
		if hint >= left {
			return &DeadlineError{Wait: hint, Left: left, Err: ae}
		}
		hold = min(hold, left/2) // a hold may end early: what is left is worth a try
	}
	ae.call.hold, ae.call.notBefore, ae.call.heldSince = hold, hint, now
	return nil
}

// GetRetryToken is asked for permission before a retry. It refuses when the breaker of the call's scope does, with a [BreakerOpenError].
func (r *Retryer) GetRetryToken(ctx context.Context, err error) (func(error) error, error) {
	operation := awsmiddleware.GetOperationName(ctx)
	counters := r.recorder.of(operation)
	class := Classify(err)
	c := callOf(ctx)
	if c == nil && ClassifyCall(operation, false, err) == Ambiguous {
		return nil, errAmbiguous // IsErrorRetryable was not told the operation
	}
	now := time.Now()
	refund, refused := r.breakers.of(c.scopeOf(), now).pay(ctx, class, now)
	if refused != nil {
		if errors.Is(refused, ErrBreakerOpen) {
			counters.refusals.Add(1)
		}
		return nil, refused
	}
	if c != nil {
		c.backoffSince = now
	}
	return func(err error) error {
		if class == Throttle {
			counters.afterThrottle.Add(1)
		} else {
			counters.afterTransient.Add(1)
		}
		if err == nil {
			refund()
		}
		return nil
	}, nil
}

// GetInitialToken does nothing; the SDK calls [Retryer.GetAttemptToken] instead.
func (r *Retryer) GetInitialToken() func(error) error {
	return func(error) error { return nil }
}

// GetAttemptToken blocks until an attempt may be sent: first the limiter, then an in-flight slot. It fails with a [WaitError] when ctx ends
// first and with a [BreakerOpenError] when the breaker of its scope holds first attempts back. The returned function ends the attempt.
func (r *Retryer) GetAttemptToken(ctx context.Context) (func(error) error, error) {
	c := callOf(ctx)
	g := &grant{r: r}
	var operation string
	if c != nil {
		operation, g.first, g.counters = c.operation, c.attempts == 0, c.countersOf(r)
		c.endBackoff(g.counters)
	} else {
		operation, g.first = awsmiddleware.GetOperationName(ctx), r.isFirst(ctx)
		g.counters = r.recorder.of(operation)
	}
	start := time.Now()
	g.breaker = r.breakers.of(c.scopeOf(), start)
	if err := g.breaker.admit(g.first, start); err != nil {
		g.counters.refusals.Add(1)
		g.counters.abandoned.Add(1)
		return nil, err
	}
	priority := hasPriority(ctx, operation)
	a := attempt{operation: operation, scope: c.scopeOf(), first: g.first, priority: priority}
	a.hold, a.notBefore = c.takeHold(start)
	if err := g.waitLimiter(ctx, operation, a, start); err != nil {
		return nil, err
	}
	if err := g.waitSlot(ctx, operation, priority); err != nil {
		return nil, err
	}
	c.sent(g)
	return g.release, nil
}

// isFirst reports whether ctx belongs to the first attempt of a call. The SDK keeps the attempt number in a context value of its own; the one
// public way to see it is that the standard retryer's token pays into the quota on first attempts only. With the middleware the call knows it.
func (r *Retryer) isFirst(ctx context.Context) bool {
	release, err := r.sdk.GetAttemptToken(ctx)
	return err == nil && errors.Is(release(nil), errFirst)
}

// firstMarker is a quota that answers a payment by an error, which tells [Retryer.isFirst] that there was one.
type firstMarker struct{}

var errFirst = errors.New("first attempt")

func (firstMarker) GetToken(context.Context, uint) (func() error, error) {
	return func() error { return nil }, nil
}
func (firstMarker) AddTokens(uint) error { return errFirst }

// grant is what one attempt holds: the limiter's permission and a slot. It is settled exactly once.
type grant struct {
	r        *Retryer
	counters *counters
	breaker  *breaker // nil = off
	permit   permit
	lane     chan struct{} // nil = no slot
	since    time.Time
	settled  atomic.Bool
	first    bool
}

func (g *grant) waitLimiter(ctx context.Context, operation string, a attempt, start time.Time) error {
	waiting := &g.r.recorder.waitingLimiter
	waiting.Add(1)
	p, err := g.r.limiter.Wait(ctx, a)
	waiting.Add(-1)
	waited := time.Since(start)
	if err != nil {
		g.counters.limiterWait.Add(int64(waited))
		g.counters.abandoned.Add(1)
		return waitError(ctx, operation, "limiter", waited, err)
	}
	held := p.Held()
	if held > 0 {
		g.counters.backoffWait.Add(int64(held))
	}
	g.counters.limiterWait.Add(int64(waited - held))
	g.permit, g.since = p, start.Add(waited)
	return nil
}

// atOnce is how long taking a slot that is free may take: nothing has happened to the rate since.
const atOnce = 100 * time.Microsecond

// waitSlot takes a slot. The rate may be cut while it waits for one; then the slot goes back and the attempt to its place at the limiter.
func (g *grant) waitSlot(ctx context.Context, operation string, priority bool) error {
	if operation == "CreateSession" {
		return nil // made inside an attempt that holds a slot, to sign it: waiting for another one could be for ever
	}
	if lane := g.r.slots.free(ctx, priority); lane != nil {
		g.lane = lane
		return nil
	}
	for {
		waiting := &g.r.recorder.waitingSlot
		waiting.Add(1)
		lane, err := g.r.slots.acquire(ctx, priority)
		waiting.Add(-1)
		waited := time.Since(g.since)
		g.counters.slotWait.Add(int64(waited))
		if err != nil {
			g.forfeit()
			return waitError(ctx, operation, "slot", waited, err)
		}
		g.since = g.since.Add(waited)
		if waited < atOnce || !g.permit.Stale() {
			g.lane = lane
			return nil
		}
		g.r.slots.release(lane)
		g.r.recorder.waitingLimiter.Add(1)
		err = g.permit.Again(ctx)
		g.r.recorder.waitingLimiter.Add(-1)
		waited = time.Since(g.since)
		g.counters.limiterWait.Add(int64(waited))
		if err != nil {
			g.settled.Store(true)
			g.counters.abandoned.Add(1)
			return waitError(ctx, operation, "limiter", waited, err)
		}
		g.since = g.since.Add(waited)
	}
}

func waitError(ctx context.Context, operation, what string, waited time.Duration, err error) *WaitError {
	cause := context.Cause(ctx)
	if cause == nil {
		cause = err // the context has not ended, it would have
	}
	return &WaitError{Operation: operation, For: what, Waited: waited, Err: err, Cause: cause}
}

// release ends an attempt that was sent.
func (g *grant) release(err error) error {
	class, status := Classify(err), statusOf(err)
	g.settle(outcome{
		sent: true, class: class,
		lost:   err != nil && class != Canceled && isRefusal(err),
		served: err == nil || class == Permanent && status != 0 || status/100 == 4 && class != Throttle && status != http.StatusRequestTimeout,
	})
	return nil // an error here would replace the attempt's own
}

// forfeit gives back an attempt that was never sent. It does nothing after release and says so by false.
func (g *grant) forfeit() bool { return g.settle(outcome{}) }

// settle gives everything back and reports whether this call was the one that did.
func (g *grant) settle(o outcome) bool {
	if g.settled.Swap(true) {
		return false
	}
	if g.lane != nil {
		g.r.slots.release(g.lane)
	}
	g.permit.Done(o)
	g.breaker.report(g.first, o)
	if !o.sent {
		g.counters.abandoned.Add(1)
		return true
	}
	g.counters.attempts.Add(1)
	g.counters.wire.Add(int64(time.Since(g.since)))
	if g.first {
		g.counters.calls.Add(1)
	}
	if o.class == Throttle {
		g.counters.throttles.Add(1)
	}
	if o.lost {
		g.counters.cutOff.Add(1)
	}
	return true
}
