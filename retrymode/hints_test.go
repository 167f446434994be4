package retrymode

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// With a random number of one half: the first wait is 0.5 s after a throttle, and a hint is spread by 0.5 s.
func TestHintsAreLowerBoundsOfTheWait(t *testing.T) {
	epoch := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // where a bubble's clock starts
	date := func(d time.Duration) string { return epoch.Add(d).Format(http.TimeFormat) }
	const s = time.Second
	for _, tt := range []struct {
		name    string
		headers []string
		want    time.Duration
	}{
		{"none", nil, s / 2},
		{"seconds", []string{"Retry-After", "3"}, 3*s + s/2},
		{"shorter than the jitter asks for", []string{"Retry-After", "0"}, s / 2},
		{"date", []string{"Retry-After", date(4 * s)}, 4*s + s/2},
		{"date by a server whose clock is an hour ahead", []string{"Retry-After", date(time.Hour + 4*s), "Date", date(time.Hour)}, 4*s + s/2},
		{"date in the past", []string{"Retry-After", date(-time.Hour)}, s / 2},
		{"milliseconds", []string{"X-Amz-Retry-After", "3000"}, 3*s + s/2},
		{"the longer of both", []string{"X-Amz-Retry-After", "3000", "Retry-After", "5"}, 5*s + s/2},
		{"longer than max-backoff, within the deadline", []string{"Retry-After", "60"}, 60*s + s/2},
		{"milliseconds, longer than max-backoff, within the deadline", []string{"X-Amz-Retry-After", "60000"}, 60*s + s/2},
		{"malformed", []string{"Retry-After", "soon"}, s / 2},
		{"fraction", []string{"Retry-After", "3.5"}, s / 2},
		{"negative", []string{"Retry-After", "-3", "X-Amz-Retry-After", "-3000"}, s / 2},
		{"signed", []string{"Retry-After", "+3"}, s / 2},
		{"empty", []string{"Retry-After", "  "}, s / 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, status := range []int{503, 429} {
				bubble(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
					defer cancel()
					w := untilStopped(1, status, "", tt.headers...)
					require.NoError(t, get(ctx, newClient(newRetryer(t, standard(1), WithRandom(half{})), w)))
					assert.Equal(t, []time.Duration{tt.want}, w.gaps())
				})
			}
		})
	}
}

func TestHintBeyondTheDeadlineEndsTheCallAtOnce(t *testing.T) {
	for _, headers := range [][]string{
		{"Retry-After", "86400"}, {"Retry-After", "99999999999999999999"}, {"X-Amz-Retry-After", "9223372036854775807"},
		{"Retry-After", "Fri, 31 Dec 2100 23:59:59 GMT"},
	} {
		bubble(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			start := time.Now()
			w := always(503, "", headers...)
			err := get(ctx, newClient(newRetryer(t, standard(3)), w))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Zero(t, time.Since(start))
			assert.Equal(t, 1, w.attempts())
		})
	}
}

// Without a deadline nothing else bounds the wait.
func TestHintWithoutADeadlineCountsForMaxBackoffAtMost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := untilStopped(1, 503, "", "Retry-After", "86400")
		require.NoError(t, get(context.Background(), newClient(newRetryer(t, standard(1), WithRandom(half{})), w)))
		assert.Equal(t, []time.Duration{20*time.Second + time.Second/2}, w.gaps())

		w = untilStopped(1, 503, "", "X-Amz-Retry-After", "86400000")
		require.NoError(t, get(context.Background(), newClient(newRetryer(t, standard(1), WithRandom(half{})), w)))
		assert.Equal(t, []time.Duration{25*time.Second + time.Second/2}, w.gaps(), "the SDK adds its five seconds")
	})
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"3", "-1", "1e9", "99999999999999999999999", "Sat, 01 Jan 2000 00:00:04 GMT", "Sat, 01 Jan 0000 00:00:00 GMT", ""} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, hint, date string) {
		d := retryAfter(http.Header{"Retry-After": {hint}, "Date": {date}}, time.Unix(0, 0))
		if d < 0 || d > maxHint {
			t.Errorf("Retry-After %q, Date %q: %s", hint, date, d)
		}
	})
}
