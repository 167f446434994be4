package retrymode

import (
	"math/rand/v2"
	"sync"
	"time"
)

// backoff computes the waits before retries: full jitter, two bases, cap applied before the jitter so that capped waits still spread.
type backoff struct {
	base     time.Duration
	throttle time.Duration
	max      time.Duration
	random   func() float64 // in [0,1); safe for concurrent use
}

// delay returns the wait before the retry that follows failed attempt number n (1, 2, ...).
//
// A server's hint is a lower bound. It is spread upwards by up to one base, so that the clients that were told the same time do not
// come back together.
func (b backoff) delay(n int, c Class, hint time.Duration) time.Duration {
	base := b.base
	if c == Throttle {
		base = b.throttle
	}
	u := b.random()
	wait := scale(u, ceiling(base, n, b.max))
	if hint > 0 {
		wait = max(wait, hint+scale(u, base))
	}
	return wait
}

// ceiling is min(base x 2^(n-1), limit) without overflow.
func ceiling(base time.Duration, n int, limit time.Duration) time.Duration {
	shift := max(n, 1) - 1
	// 2^shift x base > limit, asked the other way round: a right shift cannot overflow.
	if shift > 62 || base > limit>>shift {
		return limit
	}
	return base << shift
}

func scale(u float64, d time.Duration) time.Duration {
	return time.Duration(u * float64(d))
}

// seededRandom draws from one source under a lock: sources of math/rand/v2 are not safe for concurrent use.
func seededRandom(src rand.Source) func() float64 {
	var mu sync.Mutex
	r := rand.New(src)
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return r.Float64()
	}
}
