package retrymode

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func withBreaker(o Options) Options {
	o.CircuitBreaker = true
	return o
}

// 500 tokens: 100 retries at 5 after throttles, 35 at 14 after other errors. Then calls end with their first attempt, and after ten of
// those without a success they are not sent at all.
func TestBreakerEndsCallsWhenTheQuotaIsUsedUp(t *testing.T) {
	for _, tt := range []struct {
		code   string
		status int
		want   int
	}{{"SlowDown", 503, 100}, {"InternalError", 500, 35}} {
		for _, mode := range []Mode{Standard, Adaptive} {
			t.Run(fmt.Sprintf("%s %s", tt.code, mode), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					o := withBreaker(standard(10))
					o.Mode = mode
					r := newRetryer(t, o)
					w := always(tt.status, xmlError(tt.code))
					c := newClient(r, w)
					var wg sync.WaitGroup
					for range 20 {
						wg.Go(func() { assert.Error(t, put(t.Context(), c)) })
					}
					wg.Wait()
					s := r.Stats()
					assert.EqualValues(t, tt.want, s.Total.RetriesAfterThrottle+s.Total.RetriesAfterTransient)
					assert.Equal(t, 20+tt.want, w.attempts())
				})
			})
		}
	}
}

func TestBreakerErrorIsTyped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, withBreaker(standard(1000)))
		w := always(500, xmlError("InternalError"))
		c := newClient(r, w)
		err := put(t.Context(), c)
		require.ErrorIs(t, err, ErrBreakerOpen)
		be, ok := errors.AsType[*BreakerOpenError](err)
		require.True(t, ok)
		assert.EqualValues(t, 10, be.Available)
		assert.EqualValues(t, 14, be.Needed)
		assert.Zero(t, be.RetryIn)
		assert.EqualError(t, be, "circuit breaker open: retry quota used up, 10 tokens left, 14 needed")
		var quota ratelimit.QuotaExceededError
		require.ErrorAs(t, err, &quota)
		var api smithy.APIError
		require.ErrorAs(t, err, &api, "the store's answer is not lost")
		assert.Equal(t, Transient, Classify(err))
		assert.Equal(t, 36, AttemptsOf(err))
		assert.Equal(t, 36, w.attempts())

		for range openAfter { // the tenth opens it, this one included
			err = put(t.Context(), c)
		}
		require.ErrorIs(t, err, ErrBreakerOpen)
		be, _ = errors.AsType[*BreakerOpenError](err)
		assert.Positive(t, be.RetryIn)
		assert.LessOrEqual(t, be.RetryIn, time.Second)
		assert.Equal(t, Transient, Classify(err))
		assert.Zero(t, AttemptsOf(err))
		assert.Equal(t, 36+openAfter-1, w.attempts())
		s := r.Stats()
		assert.Equal(t, BreakerStats{Enabled: true, Open: true, OpenScopes: []string{"b/ write"}, Quota: 10}, s.Breaker)
		assert.EqualValues(t, 1+openAfter, s.Total.BreakerRefusals)
	})
}

func TestOpenBreakerProbesAndClosesWithTheFirstAnswer(t *testing.T) {
	for name, recovery := range map[string]func(*http.Request) *http.Response{
		"success": success,
		"404":     func(*http.Request) *http.Response { return reply(404, xmlError("NoSuchKey")) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRetryer(t, withBreaker(standard(3)))
				down := true
				w := &wire{answer: func(_ int, req *http.Request, _ []byte) (*http.Response, error) {
					if down {
						return reply(500, ""), nil
					}
					return recovery(req), nil
				}}
				c := newClient(r, w)
				for !r.Stats().Breaker.Open {
					require.Error(t, get(t.Context(), c))
				}
				before, start := w.attempts(), time.Now()
				for time.Since(start) < 5*time.Minute {
					require.ErrorIs(t, get(t.Context(), c), ErrBreakerOpen)
					time.Sleep(200 * time.Millisecond)
				}
				// Intervals of 1, 2, 4, 8, 16, 20, 20, ... s at most, of half of that at least, and seen up to 0.2 s late.
				probes := w.attempts() - before
				assert.GreaterOrEqual(t, probes, 5+(300-31-1)*10/202)
				assert.LessOrEqual(t, probes, 5+(300-15)/10+1)

				down = false
				for r.Stats().Breaker.Open {
					_ = get(t.Context(), c)
					time.Sleep(10 * time.Millisecond)
				}
				assert.NotErrorIs(t, get(t.Context(), c), ErrBreakerOpen)
			})
		})
	}
}

// A store that throttles a good part of the calls but answers the others is not cut off.
func TestBreakerStaysClosedWhileCallsSucceed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, withBreaker(standard(3)), seed(5))
		w := &wire{latency: 10 * time.Millisecond}
		w.answer = func(n int, req *http.Request, _ []byte) (*http.Response, error) {
			if n%2 == 0 {
				return reply(503, ""), nil
			}
			return success(req), nil
		}
		failed := burst(t, newClient(r, w), get, 800, 8)
		assert.False(t, r.Stats().Breaker.Open)
		assert.Positive(t, failed, "the quota does run out")
		assert.EqualValues(t, 800, r.Stats().Total.Calls, "but every call is sent")
	})
}

func TestBreakerTakesNothingForACancelledCall(t *testing.T) {
	b := newBreaker(backoff{throttle: time.Second, max: time.Second, random: half01})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.pay(ctx, Throttle, time.Now())
	require.ErrorIs(t, err, context.Canceled)
	assert.NotErrorIs(t, err, ErrBreakerOpen)
	open, quota := b.state()
	assert.False(t, open)
	assert.EqualValues(t, 500, quota)
}

func half01() float64 { return 0.5 }

func TestNoBreakerByDefault(t *testing.T) {
	assert.False(t, DefaultOptions().CircuitBreaker)
	assert.Equal(t, BreakerStats{}, newRetryer(t, DefaultOptions()).Stats().Breaker)
}
