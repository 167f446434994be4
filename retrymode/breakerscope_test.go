package retrymode

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sick refuses the calls that refuse picks while down is set, and counts them.
type sick struct {
	wire
	refuse func(*http.Request) bool

	mu   sync.Mutex
	down bool
	at   []time.Time // of the attempts that refuse picked
}

func newSick(status int, refuse func(*http.Request) bool) *sick {
	s := &sick{refuse: refuse, down: true}
	s.latency = 10 * time.Millisecond
	s.answer = func(_ int, req *http.Request, _ []byte) (*http.Response, error) {
		if !s.refuse(req) {
			return success(req), nil
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.at = append(s.at, time.Now())
		if s.down {
			return reply(status, ""), nil
		}
		return success(req), nil
	}
	return s
}

// since returns when the picked attempts after t came.
func (s *sick) since(t time.Time) []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, _ := slices.BinarySearchFunc(s.at, t, time.Time.Compare)
	return slices.Clone(s.at[i:])
}

func (s *sick) recover() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = false
}

type do func(context.Context, *s3.Client) error

// drain makes calls until the breaker is open.
func drain(t *testing.T, r *Retryer, c *s3.Client, calls do) {
	t.Helper()
	for i := 0; !r.Stats().Breaker.Open; i++ {
		require.Less(t, i, 100, "it opens")
		require.Error(t, calls(t.Context(), c))
	}
}

// A store that refuses everything of one scope has its breaker opened; somebody else's calls go as if there were nothing, first attempts and retries.
func TestOpenBreakerEndsNoCallOfAnotherScope(t *testing.T) {
	for _, tt := range []struct {
		name          string
		scope         Scope
		noisy, victim do
		refuse        func(*http.Request) bool
		open          string
		shared        bool
	}{
		{"bucket from bucket", ScopeBucket, putKey("a", "k"), putKey("b", "k"), onPath("/a/"), "a/ write", false},
		{"reads from writes", ScopeBucket, getKey("b", "k"), putKey("b", "k"), onMethod("GET"), "b/ read", false},
		{"writes from reads", ScopeBucket, putKey("b", "k"), getKey("b", "k"), onMethod("PUT"), "b/ write", false},
		{"prefix from prefix", ScopePrefix, putKey("b", "hot/k"), putKey("b", "cold/k"), onPath("/b/hot/"), "b/hot/ write", false},
		{"prefix in its bucket", ScopeBucket, putKey("b", "hot/k"), putKey("b", "cold/k"), onPath("/b/hot/"), "b/ write", true},
		{"bucket on its endpoint", ScopeEndpoint, putKey("a", "k"), putKey("b", "k"), onPath("/a/"), "endpoint", true},
	} {
		for _, mode := range []Mode{Standard, Adaptive} {
			t.Run(fmt.Sprintf("%s, %s", tt.name, mode), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					o := withBreaker(standard(3))
					o.Mode, o.Scope = mode, tt.scope
					r := newRetryer(t, o, seed(1))
					w := newSick(503, tt.refuse)
					c := newClient(r, w)
					drain(t, r, c, tt.noisy)
					s := r.Stats()
					assert.Equal(t, []string{tt.open}, s.Breaker.OpenScopes)
					assert.Less(t, s.Breaker.Quota, uint(quotaRetry), "the lowest")
					if tt.shared {
						require.ErrorIs(t, tt.victim(t.Context(), c), ErrBreakerOpen)
						return
					}
					healthy(t, r, w, c, tt.noisy, tt.victim)
				})
			})
		}
	}
}

// healthy lets both call for three minutes, and then the sick one recover.
func healthy(t *testing.T, r *Retryer, w *sick, c *s3.Client, noisy, victim do) {
	t.Helper()
	start := time.Now()
	var wg sync.WaitGroup
	wg.Go(func() {
		for time.Since(start) < 3*time.Minute {
			assert.ErrorIs(t, noisy(t.Context(), c), ErrBreakerOpen)
			time.Sleep(500 * time.Millisecond)
		}
	})
	slowest := time.Duration(0)
	for time.Since(start) < 3*time.Minute {
		begun := time.Now()
		require.NoError(t, victim(t.Context(), c))
		slowest = max(slowest, time.Since(begun))
		time.Sleep(time.Second)
	}
	wg.Wait()
	assert.Equal(t, w.latency, slowest, "one attempt, sent at once")

	// Intervals of 1, 2, 4, 8, 16, 20, 20, ... s at most and of half of that at least.
	probes := w.since(start)
	assert.GreaterOrEqual(t, len(probes), 8)
	assert.LessOrEqual(t, len(probes), 5+(180-15)/10+1)
	if r.gates == nil { // which lets a probe wait for its own
		var gaps []time.Duration
		for i := 6; i < len(probes); i++ {
			gaps = append(gaps, probes[i].Sub(probes[i-1]))
		}
		assert.Greater(t, slices.Max(gaps)-slices.Min(gaps), time.Second, "jittered: %v", gaps)
	}

	w.recover()
	recovered := time.Now()
	for r.Stats().Breaker.Open {
		require.Less(t, time.Since(recovered), 21*time.Second)
		_ = noisy(t.Context(), c)
		time.Sleep(10 * time.Millisecond)
	}
	assert.Len(t, w.since(recovered), 1, "the first probe that is answered closes it")
	for range 50 {
		require.NoError(t, noisy(t.Context(), c))
	}
	assert.Empty(t, r.Stats().Breaker.OpenScopes)
	nothingLeft(t, r)
}

// A retry is paid from the quota of its own scope, and a store that is down for two scopes is probed for each of them.
func TestEachScopeHasAQuotaAndProbesOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, withBreaker(standard(3)), seed(2))
		w := newSick(503, func(req *http.Request) bool { return !onPath("/b/")(req) })
		c := newClient(r, w)
		drain(t, r, c, putKey("c", "k"))
		for len(r.Stats().Breaker.OpenScopes) < 2 {
			require.Error(t, putKey("a", "k")(t.Context(), c))
		}
		assert.Equal(t, []string{"a/ write", "c/ write"}, r.Stats().Breaker.OpenScopes)

		start := time.Now()
		var wg sync.WaitGroup
		for _, name := range []string{"a", "c"} {
			wg.Go(func() {
				for time.Since(start) < time.Minute {
					assert.ErrorIs(t, putKey(name, "k")(t.Context(), c), ErrBreakerOpen)
					time.Sleep(200 * time.Millisecond)
				}
			})
		}
		wg.Wait()
		probes := len(w.since(start)) // 1, 2, 4, 8, 16, 20, ... s apart at most, for each of the two
		assert.GreaterOrEqual(t, probes, 2*5)
		assert.LessOrEqual(t, probes, 2*(5+(60-15)/10+1))

		once := false
		good := w.answer
		w.answer = func(n int, req *http.Request, body []byte) (*http.Response, error) {
			if onPath("/b/")(req) && !once {
				once = true
				return reply(503, ""), nil
			}
			return good(n, req, body)
		}
		require.NoError(t, putKey("b", "k")(t.Context(), c), "by its retry")
		assert.True(t, once)
	})
}

func nth(i int) scope { return scope{bucket: "b", prefix: fmt.Sprintf("p%d/", i), kind: kindWrite} }

func someBreakers() *breakers {
	return newBreakers(backoff{base: time.Second, throttle: time.Second, max: time.Minute, random: rand.Float64})
}

// There may be as many prefixes as there are keys. Breakers that know nothing are forgotten for new ones.
func TestNumberOfBreakersIsBounded(t *testing.T) {
	s, now := someBreakers(), time.Now()
	for i := range 5000 {
		b := s.of(nth(i), now)
		require.Same(t, b, s.of(nth(i), now))
		require.LessOrEqual(t, len(s.all), maxBreakers)
		refund, err := b.pay(t.Context(), Throttle, now)
		require.NoError(t, err)
		refund()
	}
	assert.NotContains(t, s.all, scope{}, "nobody had to share")
}

// A breaker that has given retries away, refused one or is open is not forgotten; scopes that come too late share one, until there is room again.
func TestScopesThatComeTooLateShareABreaker(t *testing.T) {
	s, now := someBreakers(), time.Now()
	for i := range maxBreakers {
		_, err := s.of(nth(i), now).pay(t.Context(), Throttle, now)
		require.NoError(t, err)
	}
	open := s.of(nth(0), now)
	for !s.stats().Open {
		_, _ = open.pay(t.Context(), Throttle, now)
	}
	require.NoError(t, open.quota.AddTokens(quotaTokens), "its retries succeeded, and it is open all the same")

	shared := s.of(nth(maxBreakers), now)
	assert.Same(t, shared, s.of(nth(maxBreakers+1), now))
	assert.Same(t, shared, s.of(scope{}, now))
	assert.Len(t, s.all, maxBreakers+1)
	assert.NoError(t, shared.admit(true, now), "and it is closed")

	// As soon as one has its quota back there is room again.
	for range quotaThrottle {
		s.of(nth(1), now).report(true, outcome{sent: true})
	}
	_, err := shared.pay(t.Context(), Throttle, now)
	require.NoError(t, err)
	assert.Same(t, shared, s.of(nth(maxBreakers), now), "not looked for all the time")
	now = now.Add(2 * fullFor)
	assert.Same(t, shared, s.of(nth(maxBreakers), now), "one has left, but the shared one came")
	for range quotaThrottle {
		s.of(nth(2), now).report(true, outcome{sent: true})
	}
	now = now.Add(2 * fullFor)
	assert.NotSame(t, shared, s.of(nth(maxBreakers), now))
	assert.Same(t, open, s.of(nth(0), now))
	assert.True(t, s.stats().Open)
	assert.LessOrEqual(t, len(s.all), maxBreakers+1)
}

func TestBreakersComeAndGoConcurrently(t *testing.T) {
	s, now := someBreakers(), time.Now()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 1500 {
				b := s.of(nth((g*700+i)%4000), now)
				_ = b.admit(true, now)
				refund, err := b.pay(t.Context(), Throttle, now)
				if assert.NoError(t, err) {
					refund()
				}
				b.report(true, outcome{sent: true})
				if i%500 == 0 {
					_ = s.stats()
				}
			}
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, len(s.all), maxBreakers+1)
}

// Without the option there is nothing to pay for.
func TestBreakersThatAreOffCostNothing(t *testing.T) {
	var off *breakers
	now := time.Now()
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		b := off.of(scope{bucket: "b"}, now)
		_ = b.admit(true, now)
		b.report(true, outcome{sent: true})
	}))
	assert.Equal(t, BreakerStats{}, off.stats())
}
