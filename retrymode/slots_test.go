package retrymode

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func slow(latency time.Duration) *wire {
	return &wire{latency: latency, answer: func(_ int, req *http.Request, _ []byte) (*http.Response, error) { return success(req), nil }}
}

func TestNeverMoreAttemptsInFlightThanSlots(t *testing.T) {
	for _, n := range []int{1, 3, 50} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := standard(3)
				o.MaxInFlight = n
				w, r := slow(100*time.Millisecond), newRetryer(t, o)
				c := newClient(r, w)
				start := time.Now()
				var wg sync.WaitGroup
				for range 100 {
					wg.Go(func() { assert.NoError(t, get(t.Context(), c)) })
				}
				wg.Wait()
				assert.Equal(t, n, w.peak)
				rounds := (100 + n - 1) / n
				assert.Equal(t, time.Duration(rounds)*100*time.Millisecond, time.Since(start))
				assert.Zero(t, r.Stats().InFlight)
			})
		})
	}
}

// The slot is released with the attempt: a call that backs off holds none.
func TestCallThatBacksOffHoldsNoSlot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := standard(1)
		o.MaxInFlight = 1
		w := untilStopped(1, 503, "")
		r := newRetryer(t, o, WithRandom(half{}))
		c := newClient(r, w)
		done := make(chan error, 1)
		go func() { done <- get(t.Context(), c) }()
		synctest.Wait() // the first call waits 0.5 s
		start := time.Now()
		require.NoError(t, put(t.Context(), c))
		assert.Zero(t, time.Since(start))
		require.NoError(t, <-done)
	})
}

// blockingLimiter holds one operation back until it is opened.
type blockingLimiter struct {
	held string
	open chan struct{}
}

func (l *blockingLimiter) Wait(ctx context.Context, a attempt) (permit, error) {
	if a.operation == l.held {
		select {
		case <-l.open:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return unlimited{}, nil
}

func (l *blockingLimiter) Holds() bool { return false }

func TestCallThatWaitsInTheLimiterHoldsNoSlot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := standard(0)
		o.MaxInFlight = 1
		r := newRetryer(t, o)
		l := &blockingLimiter{held: "PutObject", open: make(chan struct{})}
		r.limiter = l
		c := newClient(r, slow(time.Second))
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { assert.NoError(t, put(t.Context(), c)) })
		}
		synctest.Wait()
		assert.Zero(t, r.Stats().InFlight)
		assert.Equal(t, 5, r.Stats().WaitingLimiter)
		start := time.Now()
		require.NoError(t, get(t.Context(), c))
		assert.Equal(t, time.Second, time.Since(start), "nothing in front of it")
		close(l.open)
		wg.Wait()
		assert.Equal(t, 5*time.Second, r.Stats().Operations["PutObject"].LimiterWait, "five calls waited for one second each")
	})
}

func TestPriorityLanePassesAFullMainLane(t *testing.T) {
	for _, op := range operations() {
		for _, marked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s marked %t", op.name, marked), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					o := standard(0)
					o.MaxInFlight, o.PriorityInFlight = 2, 1
					c := newClient(newRetryer(t, o), slow(time.Second))
					var wg sync.WaitGroup
					for range 6 {
						wg.Go(func() { assert.NoError(t, get(t.Context(), c)) })
					}
					synctest.Wait() // two in flight, four waiting: three seconds of work
					ctx := t.Context()
					if marked {
						ctx = WithPriority(ctx)
					}
					start := time.Now()
					require.NoError(t, op.do(ctx, c))
					want := 4 * time.Second // at the end of the queue
					switch op.name {
					case "CompleteMultipartUpload", "HeadObject", "AbortMultipartUpload":
						want = time.Second
					}
					if marked {
						want = time.Second
					}
					assert.Equal(t, want, time.Since(start))
					wg.Wait()
				})
			})
		}
	}
}

func TestPriorityCallsUseTheMainLaneWhenItIsFree(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := standard(0)
		o.MaxInFlight, o.PriorityInFlight = 6, 2
		w := slow(time.Second)
		c := newClient(newRetryer(t, o), w)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() { assert.NoError(t, head(t.Context(), c)) })
		}
		wg.Wait()
		assert.Equal(t, 8, w.peak)
	})
}

func TestCancelWhileWaitingForASlotTakesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := standard(3)
		o.MaxInFlight = 1
		w, r := slow(10*time.Second), newRetryer(t, o)
		c := newClient(r, w)
		done := make(chan error, 1)
		go func() { done <- get(t.Context(), c) }()
		synctest.Wait()

		reason := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(reason) })
		start := time.Now()
		err := get(ctx, c)
		assert.Equal(t, time.Second, time.Since(start))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, reason)
		we, ok := errors.AsType[*WaitError](err)
		require.True(t, ok)
		assert.Equal(t, WaitError{Operation: "GetObject", For: "slot", Waited: time.Second, Err: context.Canceled, Cause: reason}, *we)
		assert.EqualError(t, we, "GetObject waited 1s for slot: shutting down")
		assert.Equal(t, Canceled, Classify(err))
		assert.Zero(t, AttemptsOf(err))

		dctx, dcancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer dcancel()
		err = get(dctx, c)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 3*time.Second, time.Since(start))

		require.NoError(t, <-done)
		assert.Equal(t, 1, w.attempts())
		s := r.Stats()
		assert.Zero(t, s.InFlight)
		assert.EqualValues(t, 1, s.Total.Calls)
		assert.EqualValues(t, 2, s.Total.Abandoned)
		assert.Equal(t, 3*time.Second, s.Total.SlotWait)
		require.NoError(t, get(t.Context(), c), "the slot is free again")
	})
}

// Waiters come and go in crowds; nobody loses a slot.
func TestSlotsSurviveCancelledWaiters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSlots(3, 2)
		var wg sync.WaitGroup
		for g := range 200 {
			wg.Go(func() {
				for i := range 20 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration((g*31+i*17)%40)*time.Millisecond)
					if lane, err := s.acquire(ctx, g%3 == 0); err == nil {
						assert.LessOrEqual(t, s.inFlight(), 5)
						time.Sleep(time.Millisecond)
						s.release(lane)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		assert.Zero(t, s.inFlight())
	})
}
