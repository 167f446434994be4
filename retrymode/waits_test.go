package retrymode

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// With a random number of exactly one half, the waits are half of base x 2^(n-1): 0.5, 1, 2 s after throttles, 50, 100, 200 ms otherwise.
func TestWaitsGrowFromTheBaseOfTheirClass(t *testing.T) {
	throttled := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}
	other := []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond}
	const html = "<html><head><title>503</title></head><body>Service Temporarily Unavailable</body></html>"
	for _, tt := range []struct {
		name   string
		op     func(context.Context, *s3.Client) error
		status int
		body   string
		want   []time.Duration
	}{
		{"503 SlowDown", put, 503, xmlError("SlowDown"), throttled},
		{"503 SlowDownRead", get, 503, xmlError("SlowDownRead"), throttled},
		{"503 SlowDownWrite", put, 503, xmlError("SlowDownWrite"), throttled},
		{"503 ServiceUnavailable", get, 503, xmlError("ServiceUnavailable"), throttled},
		{"503 with a code nobody knows", get, 503, xmlError("XyzBusy"), throttled},
		{"503 HEAD", head, 503, "", throttled},
		{"503 without a body", get, 503, "", throttled},
		{"503 with an HTML body", get, 503, html, throttled},
		{"503 complete", complete, 503, "", throttled},
		{"429 without a body", get, 429, "", throttled},
		{"429 HEAD", head, 429, "", throttled},
		{"SlowDown inside a 200", complete, 200, xmlError("SlowDown"), throttled},
		{"500", get, 500, xmlError("InternalError"), other},
		{"500 HEAD", head, 500, "", other},
		{"InternalError inside a 200", complete, 200, xmlError("InternalError"), other},
		{"502 HTML", get, 502, html, other},
		{"504", put, 504, "", other},
		{"400 RequestTimeout", put, 400, xmlError("RequestTimeout"), other},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := always(tt.status, tt.body)
				r := newRetryer(t, standard(3), WithRandom(half{}))
				require.Error(t, tt.op(t.Context(), newClient(r, w)))
				assert.Equal(t, tt.want, w.gaps())
				assert.Equal(t, tt.want[0]+tt.want[1]+tt.want[2], r.Stats().Total.BackoffWait)
			})
		})
	}
}

// Without a fixed random number, each wait is below its bound, and over many calls they fill the range: full jitter.
func TestWaitsAreSpreadOverTheirWholeRange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var lowest, highest [3]time.Duration
		r := newRetryer(t, standard(3), seed(7))
		for range 300 {
			w := always(503, "")
			require.Error(t, head(t.Context(), newClient(r, w)))
			for i, gap := range w.gaps() {
				bound := time.Second << i
				require.Less(t, gap, bound)
				highest[i] = max(highest[i], gap)
				if lowest[i] == 0 || gap < lowest[i] {
					lowest[i] = gap
				}
			}
		}
		for i := range 3 {
			bound := time.Second << i
			assert.Greater(t, highest[i], bound*95/100) // missed by 300 even draws with a chance of 2e-7
			assert.Less(t, lowest[i], bound*5/100)
		}
	})
}

func TestWaitsAreCappedBeforeTheJitter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := standard(6)
		o.MaxBackoff = 5 * time.Second
		w := always(503, "")
		require.Error(t, get(t.Context(), newClient(newRetryer(t, o, WithRandom(half{})), w)))
		s := time.Second
		assert.Equal(t, []time.Duration{s / 2, s, 2 * s, 5 * s / 2, 5 * s / 2, 5 * s / 2}, w.gaps())
	})
}

func TestRetryThatCannotStartBeforeTheDeadlineIsRefusedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := always(503, xmlError("SlowDown"))
		r := newRetryer(t, standard(5), WithRandom(half{})) // waits 0.5, 1, 2 s: the fourth attempt would be at 3.5 s
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		err := put(ctx, newClient(r, w))
		assert.Equal(t, 1500*time.Millisecond, time.Since(start))
		assert.Equal(t, 3, w.attempts())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		de, ok := errors.AsType[*DeadlineError](err)
		require.True(t, ok)
		assert.Equal(t, 2*time.Second, de.Wait)
		assert.Equal(t, 1500*time.Millisecond, de.Left)
		assert.Equal(t, Throttle, Classify(err), "the class says why it failed")
		assert.Equal(t, 3, AttemptsOf(err))
		var api smithy.APIError
		require.ErrorAs(t, err, &api)
		assert.Equal(t, "SlowDown", api.ErrorCode())
		assert.Zero(t, r.Stats().InFlight)
	})
}

func TestCancelEndsABackoffAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := always(503, "")
		r := newRetryer(t, standard(3), WithRandom(half{}))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(200*time.Millisecond, cancel)
		start := time.Now()
		err := get(ctx, newClient(r, w))
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, 200*time.Millisecond, time.Since(start))
		assert.Equal(t, Canceled, Classify(err))
		assert.Equal(t, 1, AttemptsOf(err))
		assert.Equal(t, 200*time.Millisecond, r.Stats().Total.BackoffWait, "waits are measured, not planned")
	})
}

func TestCancelOfAnAttemptInFlightIsNotRetried(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := &wire{latency: time.Hour, answer: func(_ int, req *http.Request, _ []byte) (*http.Response, error) { return success(req), nil }}
		r := newRetryer(t, standard(3))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := put(ctx, newClient(r, w))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, Canceled, Classify(err))
		assert.Equal(t, 1, w.attempts())
		assert.Zero(t, r.Stats().InFlight)
	})
}
