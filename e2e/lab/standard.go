package lab

import "time"

// The waits of the SDK's standard mode: full jitter below an exponential, which starts at one base for throttling and another for
// everything else.
const (
	throttleBase = time.Second
	otherBase    = 100 * time.Millisecond
	maxBackoff   = 20 * time.Second
)

// Backoff is the bounds of the waits before retries, as in s3.retry.*.
type Backoff struct {
	Base, Throttle, Max time.Duration
}

// DefaultBackoff is the defaults of s3.retry.*.
func DefaultBackoff() Backoff {
	return Backoff{Base: otherBase, Throttle: throttleBase, Max: maxBackoff}
}

// Standard sends every attempt at once and backs off after refusals, as s3.retry.mode standard does, and the SDKs without an adaptive limiter. The retry quota is off.
func Standard(env Env, retries int) Policy { return newStandard(env, retries) }

// StandardWith is Standard with other waits.
func StandardWith(b Backoff) NewPolicy {
	return func(env Env, retries int) Policy { return &standard{env: env, retries: retries, backoff: b} }
}

func newStandard(env Env, retries int) *standard {
	return &standard{env: env, retries: retries, backoff: DefaultBackoff()}
}

type standard struct {
	env     Env
	retries int
	backoff Backoff
}

func (s *standard) Acquire(_ *Call, grant func()) { grant() }

func (s *standard) Abandon(*Call) {}

func (s *standard) Release(*Call, Kind, time.Duration) {}

func (s *standard) Retry(c *Call, k Kind, retryAfter time.Duration) (time.Duration, bool) {
	if c.Number > s.retries {
		return 0, false
	}
	base := s.backoff.Base
	if k == Throttle {
		base = s.backoff.Throttle
	}
	limit := s.backoff.Max
	if n := c.Number - 1; n < 10 && base<<n < limit {
		limit = base << n
	}
	wait := time.Duration(s.env.Rand().Float64() * float64(limit))
	if retryAfter > 0 {
		wait = max(wait, s.spread(retryAfter, base))
	}
	return wait, true
}

// spread is a hint of the store as a client takes it: those who were told the same time do not come back together.
func (s *standard) spread(hint, base time.Duration) time.Duration {
	return min(hint, s.backoff.Max) + time.Duration(s.env.Rand().Float64()*float64(base))
}

func (s *standard) Rate() float64 { return 0 }

func (s *standard) Waiting() int { return 0 }
