package retrymode

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
)

// The SDK's prices [aws/retry, StandardOptions]: a bucket of 500, 14 for a retry, 5 for one after a throttle, 1 back for a first attempt that succeeds.
const (
	quotaTokens   = 500
	quotaRetry    = 14
	quotaThrottle = 5
	quotaSuccess  = 1
)

// openAfter is how many retries in a row, without any success between them, an empty quota must refuse before first attempts are held
// back as well. A store that still answers most calls never gets there.
const openAfter = 10

// maxBreakers bounds the breakers of one client like [maxGates] its gates. Beyond it, breakers that know nothing are forgotten, and if there is none all further scopes
// share one.
const maxBreakers = maxGates

// breakers keeps one breaker for each scope, so that a store that refuses the calls of one does not end those of another: quota, opening and probes are
// the scope's own. A nil *breakers is off. Safe for concurrent use.
type breakers struct {
	backoff backoff

	mu   sync.RWMutex
	all  map[scope]*breaker
	full time.Time // when there was nothing to forget the last time
}

func newBreakers(b backoff) *breakers {
	return &breakers{backoff: b, all: make(map[scope]*breaker)}
}

// of returns the breaker of a scope, nil when breakers are off.
func (s *breakers) of(name scope, now time.Time) *breaker {
	if s == nil {
		return nil
	}
	s.mu.RLock()
	b := s.all[name]
	s.mu.RUnlock()
	if b != nil {
		return b
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[name] == nil && len(s.all) >= maxBreakers && !s.forget(now) {
		name = scope{} // shared by all that come too late
	}
	if b = s.all[name]; b == nil {
		b = newBreaker(s.backoff)
		s.all[name] = b
	}
	return b
}

// forget drops the breakers that are as good as new, and reports whether there is room for another one now. An attempt that still holds one
// of them reports to it, and it is not missed. Called with the lock held.
func (s *breakers) forget(now time.Time) bool {
	if !s.full.IsZero() && now.Sub(s.full) < fullFor {
		return false
	}
	for name, b := range s.all {
		if b.fresh() {
			delete(s.all, name)
		}
	}
	s.full = time.Time{}
	if len(s.all) < maxBreakers {
		return true
	}
	s.full = now
	return false
}

// stats sums all scopes up.
func (s *breakers) stats() BreakerStats {
	if s == nil {
		return BreakerStats{}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	sum := BreakerStats{Enabled: true, Quota: quotaTokens}
	for name, b := range s.all {
		open, quota := b.state()
		sum.Quota = min(sum.Quota, quota)
		if open {
			sum.Open = true
			sum.OpenScopes = append(sum.OpenScopes, name.String())
		}
	}
	slices.Sort(sum.OpenScopes)
	return sum
}

// breaker ends calls of one scope early when retries do not help. Retries are paid from the SDK's retry quota; when it is empty and nothing succeeds any
// more, the breaker opens: calls end at once, without an attempt, but for one probe per jittered, growing interval. The first answer that is not a
// failure closes it. A nil *breaker is off: it never refuses. Safe for concurrent use.
type breaker struct {
	quota   *ratelimit.TokenRateLimit
	backoff backoff

	mu      sync.Mutex
	refused int       // retries refused since the last success
	probes  int       // probes sent since it opened
	next    time.Time // when the next probe may go; zero = closed
}

func newBreaker(b backoff) *breaker {
	return &breaker{quota: ratelimit.NewTokenRateLimit(quotaTokens), backoff: b}
}

// admit lets an attempt through, or refuses it because the breaker is open and no probe is due. Retries have paid and pass.
func (b *breaker) admit(first bool, now time.Time) error {
	if b == nil || !first {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next.IsZero() {
		return nil
	}
	if wait := b.next.Sub(now); wait > 0 {
		return &BreakerOpenError{RetryIn: wait}
	}
	b.schedule(now)
	return nil
}

// schedule sets the time of the next probe, half of it jittered: a full jitter could allow a probe at once.
func (b *breaker) schedule(now time.Time) {
	b.probes++
	d := ceiling(b.backoff.throttle, b.probes, b.backoff.max)
	b.next = now.Add(d/2 + scale(b.backoff.random(), d/2))
}

// pay takes the price of a retry from the quota. The returned function gives it back and must be called if the retry succeeds.
func (b *breaker) pay(ctx context.Context, c Class, now time.Time) (refund func(), err error) {
	if b == nil {
		return func() {}, nil
	}
	price := uint(quotaRetry)
	if c == Throttle {
		price = quotaThrottle
	}
	giveBack, err := b.quota.GetToken(ctx, price)
	if err == nil {
		return func() { _ = giveBack() }, nil // a bucket does not refuse tokens
	}
	quota, ok := errors.AsType[ratelimit.QuotaExceededError](err)
	if !ok {
		return nil, err // the context ended
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refused++; b.next.IsZero() && b.refused >= openAfter {
		b.schedule(now)
	}
	return nil, &BreakerOpenError{Available: quota.Available, Needed: quota.Requested, quota: err}
}

// report tells what became of an attempt. Any answer but a failure of the store closes the breaker: a 404 shows that it works.
func (b *breaker) report(first bool, o outcome) {
	if b == nil || !o.sent || o.class != 0 && o.class != Permanent {
		return
	}
	if first && o.class == 0 {
		_ = b.quota.AddTokens(quotaSuccess) // never fails
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused, b.probes, b.next = 0, 0, time.Time{}
}

// state is a snapshot.
func (b *breaker) state() (open bool, quota uint) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.next.IsZero(), b.quota.Remaining()
}

// fresh reports whether the breaker knows nothing that a new one does not.
func (b *breaker) fresh() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.next.IsZero() && b.refused == 0 && b.quota.Remaining() == quotaTokens
}
