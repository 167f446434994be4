package quotafront

import (
	"sync"
	"time"
)

// Bucket is a token bucket with the rule of nginx's limit_req with nodelay: the
// bucket leaks at the rate, every request that passes adds one to it, and a
// request that would make it hold more than the burst is refused and adds
// nothing. One request passes on top of the burst, because the first one of a
// quiet time adds nothing either. Safe for concurrent use.
type Bucket struct {
	rate  float64 // per second
	burst float64

	mu   sync.Mutex
	used bool
	held float64
	at   time.Time // of held
}

// NewBucket returns an empty bucket. A rate that is not positive lets everything
// pass.
func NewBucket(rate float64, burst int) *Bucket {
	return &Bucket{rate: rate, burst: float64(burst)}
}

// Take says whether a request at this time passes. Times that go back count as
// no time.
func (b *Bucket) Take(now time.Time) bool {
	if b.rate <= 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.used {
		b.used, b.at = true, now
		return true
	}
	passed := max(0, now.Sub(b.at).Seconds())
	held := max(0, b.held-b.rate*passed+1)
	if held > b.burst {
		return false
	}
	b.held = held
	if now.After(b.at) {
		b.at = now
	}
	return true
}
