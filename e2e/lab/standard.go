package lab

import "time"

// The waits of the SDK's standard mode: full jitter below an exponential, which starts at one base for throttling and another for
// everything else.
const (
	throttleBase = time.Second
	otherBase    = 100 * time.Millisecond
	maxBackoff   = 20 * time.Second
	// maxHint is how much a hint of the store may add to a wait.
	maxHint = 5 * time.Second
)

// Standard sends every attempt at once and backs off after refusals, as the SDKs do without an adaptive limiter. The retry quota is off.
func Standard(env Env, retries int) Policy { return &standard{env: env, retries: retries} }

type standard struct {
	env     Env
	retries int
}

func (s *standard) Acquire(_ *Call, grant func()) { grant() }

func (s *standard) Abandon(*Call) {}

func (s *standard) Release(*Call, Kind, time.Duration) {}

func (s *standard) Retry(c *Call, k Kind, retryAfter time.Duration) (time.Duration, bool) {
	if c.Number > s.retries {
		return 0, false
	}
	base := otherBase
	if k == Throttle {
		base = throttleBase
	}
	limit := maxBackoff
	if n := c.Number - 1; n < 10 && base<<n < maxBackoff {
		limit = base << n
	}
	wait := time.Duration(s.env.Rand().Float64() * float64(limit))
	if retryAfter > 0 {
		wait = min(max(retryAfter, wait), wait+maxHint)
	}
	return wait, true
}

func (s *standard) Rate() float64 { return 0 }

func (s *standard) Waiting() int { return 0 }
