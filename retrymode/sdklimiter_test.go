package retrymode

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// burst makes n calls of op from g goroutines.
func burst(t *testing.T, c *s3.Client, op func(context.Context, *s3.Client) error, n, g int) (failed int) {
	t.Helper()
	work := make(chan struct{}, n)
	for range n {
		work <- struct{}{}
	}
	close(work)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range g {
		wg.Go(func() {
			for range work {
				if err := op(t.Context(), c); err != nil {
					mu.Lock()
					failed++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return failed
}

func TestAdaptiveWaitsForNothingUntilTheFirstThrottle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := slow(100*time.Millisecond), newRetryer(t, sdkAdaptive(3))
		start := time.Now()
		assert.Zero(t, burst(t, newClient(r, w), get, 320, 32))
		assert.Equal(t, time.Second, time.Since(start))
		assert.Zero(t, r.Stats().Total.LimiterWait)
	})
}

// After one throttle the SDK's limiter paces all calls of the client; every kind of 503 is one, HEAD and the codes of other vendors included. An
// error that is no throttle, and any error in standard mode, paces nothing.
func TestLimiterLearnsFromEveryThrottleAndFromNothingElse(t *testing.T) {
	for _, tt := range []struct {
		name   string
		o      Options
		op     func(context.Context, *s3.Client) error
		status int
		body   string
		paced  bool
	}{
		{"SlowDown", sdkAdaptive(3), get, 503, xmlError("SlowDown"), true},
		{"SlowDownWrite", sdkAdaptive(3), put, 503, xmlError("SlowDownWrite"), true},
		{"HEAD", sdkAdaptive(3), head, 503, "", true},
		{"empty body", sdkAdaptive(3), get, 503, "", true},
		{"HTML", sdkAdaptive(3), get, 503, "<html>busy</html>", true},
		{"429", sdkAdaptive(3), get, 429, "", true},
		{"inside a 200", sdkAdaptive(3), complete, 200, xmlError("SlowDown"), true},
		{"500", sdkAdaptive(3), get, 500, xmlError("InternalError"), false},
		{"404", sdkAdaptive(3), get, 404, xmlError("NoSuchKey"), false},
		{"standard", standard(3), get, 503, xmlError("SlowDown"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := untilStopped(1, tt.status, tt.body)
				w.latency = 100 * time.Millisecond
				r := newRetryer(t, tt.o, seed(1))
				c := newClient(r, w)
				_ = tt.op(t.Context(), c)
				assert.Zero(t, burst(t, c, tt.op, 20, 4))
				assert.Equal(t, tt.paced, r.Stats().Total.LimiterWait > time.Second, "%s", r.Stats().Total.LimiterWait)
			})
		})
	}
}

// The SDK's own wait rounds down to nothing and then spins for ever in virtual time. Also the floor of the rate, 0.5 calls a second: a client
// whose very first answer is a throttle has measured nothing yet and starts there.
func TestLimiterDoesNotSpinInVirtualTime(t *testing.T) {
	for phase := range 10 {
		t.Run(fmt.Sprint(phase), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				time.Sleep(time.Duration(phase) * 100 * time.Millisecond) // the limiter's half seconds follow the clock
				w := untilStopped(1, 503, "")
				w.latency = 100 * time.Millisecond
				r := newRetryer(t, sdkAdaptive(3), WithRandom(half{}))
				c := newClient(r, w)
				for range 5 {
					require.NoError(t, get(t.Context(), c))
				}
				assert.Equal(t, 6, w.attempts())
				for _, gap := range w.gaps() {
					assert.LessOrEqual(t, gap, 100*time.Millisecond+500*time.Millisecond+2*time.Second+pollInterval)
				}
			})
		})
	}
}

// Callers are served in the order in which they came, so the slowest of n waits for n tokens and not for as long as it happens to lose.
func TestLimiterServesCallersInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, sdkAdaptive(0))
		require.Error(t, get(t.Context(), newClient(r, always(503, "")))) // 0.5 calls a second from now on
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				permit, err := r.limiter.Wait(t.Context(), attempt{})
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				permit.Done(outcome{})
			})
		}
		start := time.Now()
		wg.Wait()
		assert.IsIncreasing(t, order)
		assert.Len(t, order, 20)
		assert.InDelta(t, 40, time.Since(start).Seconds(), 4)
	})
}

func TestCancelWhileWaitingInTheLimiter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, sdkAdaptive(0))
		w := always(503, "")
		c := newClient(r, w)
		require.Error(t, get(t.Context(), c))
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 30 {
			wg.Go(func() {
				d := time.Duration(1+i) * 10 * time.Millisecond // a token takes 2 s
				ctx, cancel := context.WithTimeout(t.Context(), d)
				defer cancel()
				err := get(ctx, c)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, Canceled, Classify(err))
				assert.Equal(t, d, time.Since(start))
			})
		}
		wg.Wait()
		s := r.Stats()
		assert.Equal(t, 1, w.attempts())
		assert.EqualValues(t, 30, s.Total.Abandoned)
		assert.Zero(t, s.WaitingLimiter)
		assert.Zero(t, s.InFlight)

		w.answer = func(_ int, req *http.Request, _ []byte) (*http.Response, error) { return success(req), nil }
		require.NoError(t, get(t.Context(), c), "the queue still moves")
	})
}

// What the limiter hands out comes back with its outcome exactly once, also when the SDK forgets about it.
func TestLimiterHearsOfEveryAttemptExactlyOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		rec := &recordingLimiter{}
		r := newRetryer(t, standard(1), seed(1))
		r.limiter = rec
		c := newClient(r, untilStopped(1, 503, ""))
		require.NoError(t, get(t.Context(), c))
		require.Error(t, unseekable(t.Context(), newClient(r, always(503, ""))))
		require.Error(t, get(t.Context(), newClient(r, &wire{answer: func(int, *http.Request, []byte) (*http.Response, error) {
			return nil, errBoom
		}})))
		got, wrote := scope{bucket: "b", kind: kindRead}, scope{bucket: "b", kind: kindWrite}
		assert.Equal(t, []attempt{
			{operation: "GetObject", scope: got, first: true}, {operation: "GetObject", scope: got},
			{operation: "PutObject", scope: wrote, first: true}, {operation: "PutObject", scope: wrote},
			{operation: "GetObject", scope: got, first: true}, {operation: "GetObject", scope: got},
		}, rec.attempts)
		assert.Equal(t, []outcome{
			{sent: true, class: Throttle}, {sent: true, served: true},
			{sent: true, class: Throttle}, {}, // the body could not be rewound
			{sent: true, class: Transient, lost: true}, {sent: true, class: Transient, lost: true},
		}, rec.outcomes)
	})
}

type recordingLimiter struct {
	attempts []attempt
	outcomes []outcome
}

func (l *recordingLimiter) Wait(_ context.Context, a attempt) (permit, error) {
	l.attempts = append(l.attempts, a)
	return recordingPermit{to: l}, nil
}

func (l *recordingLimiter) Holds() bool { return false }

type recordingPermit struct {
	unlimited
	to *recordingLimiter
}

func (p recordingPermit) Done(o outcome) { p.to.outcomes = append(p.to.outcomes, o) }
