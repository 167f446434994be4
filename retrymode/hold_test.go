package retrymode

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rounding is what the gate's timer adds to a wait.
const rounding = 5 * time.Microsecond

// assertGaps checks the times between attempts, up to the rounding of the gate's timer.
func assertGaps(t *testing.T, want, got []time.Duration) {
	t.Helper()
	if !assert.Len(t, got, len(want)) {
		return
	}
	for i := range want {
		assert.InDelta(t, want[i], got[i], float64(rounding), "wait %d of %v", i+1, got)
	}
}

// With a random number of one half, a throttled call is held for half of a tenth of the throttle base, then half of half of it. Two throttles are no
// evidence, so the gate is off all the while.
func TestHoldsFollowTheThrottleBase(t *testing.T) {
	for _, base := range []time.Duration{100 * time.Millisecond, time.Second, 4 * time.Second} {
		for _, op := range operations() {
			t.Run(fmt.Sprintf("%s %s", base, op.name), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					o := adaptive(3)
					o.ThrottleBaseDelay = base
					w := untilStopped(2, 503, "")
					r := newRetryer(t, o, WithRandom(half{}))
					require.NoError(t, op.do(t.Context(), newClient(r, w)))
					assertGaps(t, []time.Duration{base / 20, base / 4}, w.gaps())
					assert.InDelta(t, base/20+base/4, r.Stats().Total.BackoffWait, float64(2*rounding))
					assert.Zero(t, r.Stats().Total.LimiterWait)
				})
			})
		}
	}
}

func TestHoldsAreCappedByMaxBackoff(t *testing.T) {
	o := adaptive(3)
	o.ThrottleBaseDelay, o.MaxBackoff = 3*time.Second, 5*time.Second
	p := newRetryer(t, o).params
	for n, bound := range map[int]time.Duration{1: 300 * time.Millisecond, 2: 1500 * time.Millisecond, 3: 3 * time.Second, 4: 5 * time.Second, 50: 5 * time.Second} {
		assert.Equal(t, bound/2, p.HoldFor(n, 0.5), "after attempt %d", n)
	}
}

// Other errors than throttles have the waits of standard mode, once: the gate does not hold them as well.
func TestErrorsThatAreNoRefusalsAreNotHeldByTheGate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := always(500, xmlError("InternalError"))
		r := newRetryer(t, adaptive(4), WithRandom(half{}))
		require.Error(t, get(t.Context(), newClient(r, w)))
		const ms = time.Millisecond
		assert.Equal(t, []time.Duration{50 * ms, 100 * ms, 200 * ms, 400 * ms}, w.gaps())
		assert.Equal(t, 750*ms, r.Stats().Total.BackoffWait)

		// A 500 after a 503 is not held for the 503 once more.
		w = &wire{answer: func(n int, req *http.Request, _ []byte) (*http.Response, error) {
			switch n {
			case 1, 3:
				return reply(503, ""), nil
			case 2, 4:
				return reply(500, ""), nil
			}
			return success(req), nil
		}}
		require.NoError(t, get(t.Context(), newClient(newRetryer(t, adaptive(4), WithRandom(half{})), w)))
		assertGaps(t, []time.Duration{50 * ms, 100 * ms, 500 * ms, 400 * ms}, w.gaps())
	})
}

// The same table as that of standard mode. With a random number of one half, the hold without a hint is 50 ms, and a hint is spread by half of
// the throttle base. The SDK sleeps up to five seconds of x-amz-retry-after itself; the gate does not repeat them.
func TestHoldsHonourTheHintsOfTheStore(t *testing.T) {
	epoch := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // where a bubble's clock starts
	date := func(d time.Duration) string { return epoch.Add(d).Format(http.TimeFormat) }
	const s, hold = time.Second, 50 * time.Millisecond
	for _, tt := range []struct {
		name    string
		headers []string
		want    time.Duration
	}{
		{"none", nil, hold},
		{"seconds", []string{"Retry-After", "3"}, 3*s + s/2},
		{"zero", []string{"Retry-After", "0"}, hold},
		{"date", []string{"Retry-After", date(4 * s)}, 4*s + s/2},
		{"date by a server whose clock is an hour ahead", []string{"Retry-After", date(time.Hour + 4*s), "Date", date(time.Hour)}, 4*s + s/2},
		{"date by a server whose clock is an hour behind", []string{"Retry-After", date(-time.Hour + 4*s), "Date", date(-time.Hour)}, 4*s + s/2},
		{"date in the past", []string{"Retry-After", date(-time.Hour)}, hold},
		{"milliseconds", []string{"X-Amz-Retry-After", "3000"}, 3*s + s/2},
		{"milliseconds, more than the SDK sleeps", []string{"X-Amz-Retry-After", "8000"}, 8*s + s/2},
		{"the longer of both", []string{"X-Amz-Retry-After", "3000", "Retry-After", "5"}, 5*s + s/2},
		{"the longer of both, the other way round", []string{"X-Amz-Retry-After", "5000", "Retry-After", "3"}, 5*s + s/2},
		{"longer than max-backoff, within the deadline", []string{"Retry-After", "60"}, 60*s + s/2},
		{"malformed", []string{"Retry-After", "soon"}, hold},
		{"fraction", []string{"Retry-After", "3.5"}, hold},
		{"negative", []string{"Retry-After", "-3", "X-Amz-Retry-After", "-3000"}, hold},
		{"empty", []string{"Retry-After", "  "}, hold},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, status := range []int{503, 429} {
				bubble(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
					defer cancel()
					w := untilStopped(1, status, "", tt.headers...)
					r := newRetryer(t, adaptive(1), WithRandom(half{}))
					require.NoError(t, get(ctx, newClient(r, w)))
					assertGaps(t, []time.Duration{tt.want}, w.gaps())
					assert.InDelta(t, tt.want, r.Stats().Total.BackoffWait, float64(rounding), "all of it is backoff")
					assert.Zero(t, r.Stats().Total.LimiterWait)
					nothingLeft(t, r)
				})
			}
		})
	}
}

func TestHoldBeyondTheDeadlineEndsTheCallAtOnce(t *testing.T) {
	for _, headers := range [][]string{
		{"Retry-After", "86400"}, {"Retry-After", "99999999999999999999"}, {"X-Amz-Retry-After", "9223372036854775807"},
	} {
		bubble(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			start := time.Now()
			w := always(503, "", headers...)
			r := newRetryer(t, adaptive(3))
			err := get(ctx, newClient(r, w))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			de, ok := errors.AsType[*DeadlineError](err)
			require.True(t, ok)
			assert.Equal(t, 10*time.Minute, de.Left)
			assert.Greater(t, de.Wait, 10*time.Minute)
			assert.Zero(t, time.Since(start))
			assert.Equal(t, 1, w.attempts())
			assert.Equal(t, Throttle, Classify(err))
			nothingLeft(t, r)
		})
	}
}

// A hold of its own making never outlasts the deadline: half of what is left is enough for another try.
func TestHoldLeavesTimeForTheRetryBeforeTheDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := adaptive(1)
		o.ThrottleBaseDelay, o.MaxBackoff = time.Minute, time.Minute
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		w := untilStopped(1, 503, "")
		require.NoError(t, get(ctx, newClient(newRetryer(t, o, WithRandom(half{})), w))) // 3 s without a deadline
		assertGaps(t, []time.Duration{2 * time.Second}, w.gaps())
	})
}

// Without a deadline a hint counts for max-backoff at most, and those who were told the same do not come back together.
func TestHintWithoutADeadlineIsCappedAndSpread(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, adaptive(1), seed(1))
		w := untilStopped(2, 503, "", "Retry-After", "86400") // two are no evidence: the gate stays off
		c := newClient(r, w)
		var wg sync.WaitGroup
		start := time.Now()
		for range 2 {
			wg.Go(func() { assert.NoError(t, get(context.Background(), c)) })
		}
		wg.Wait()
		require.Len(t, w.seen, 4)
		first, second := w.seen[2].at.Sub(start), w.seen[3].at.Sub(start)
		assert.GreaterOrEqual(t, first, 20*time.Second)
		assert.Less(t, second, 21*time.Second+rounding)
		assert.Greater(t, second-first, time.Millisecond)
	})
}

// The gate pays no attention to what others hear while the store has asked one call to stay away.
func TestHintHoldsOneCallAndNotTheOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, adaptive(3), seed(1))
		w := untilStopped(1, 503, "", "Retry-After", "30")
		w.latency = 10 * time.Millisecond
		c := newClient(r, w)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			start := time.Now()
			assert.NoError(t, get(ctx, c))
			assert.GreaterOrEqual(t, time.Since(start), 30*time.Second)
		})
		time.Sleep(time.Millisecond)
		for range 50 {
			start := time.Now()
			require.NoError(t, get(ctx, c))
			assert.Equal(t, 10*time.Millisecond, time.Since(start))
		}
		assert.Equal(t, 1, gateOf(r, reads).Held)
		wg.Wait()
		nothingLeft(t, r)
	})
}

func TestCancelEndsAHoldAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := adaptive(3)
		o.ThrottleBaseDelay, o.MaxBackoff = time.Minute, time.Minute
		w := always(503, "")
		r := newRetryer(t, o, WithRandom(half{})) // 3 s
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(200*time.Millisecond, cancel)
		start := time.Now()
		err := get(ctx, newClient(r, w))
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, 200*time.Millisecond, time.Since(start))
		assert.Equal(t, Canceled, Classify(err))
		assert.Equal(t, 1, AttemptsOf(err))
		s := r.Stats().Total
		assert.Equal(t, 200*time.Millisecond, s.BackoffWait+s.LimiterWait, "waits are measured, not planned")
		nothingLeft(t, r)
	})
}
