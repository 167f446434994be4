package retrymode

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The slot comes after the gate: what waits at the gate holds none.
func TestAttemptThatWaitsAtTheGateHoldsNoSlot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := adaptive(0)
		o.MaxInFlight = 1
		r := newRetryer(t, o)
		pace(t, r, writes, 10)
		c := newClient(r, slow(time.Millisecond))
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { assert.NoError(t, put(t.Context(), c)) })
		}
		synctest.Wait()
		assert.Zero(t, r.Stats().InFlight)
		assert.Equal(t, 20, r.Stats().WaitingLimiter)
		assert.Equal(t, 20, gateOf(r, writes).Waiting)
		start := time.Now()
		require.NoError(t, get(t.Context(), c))
		assert.Equal(t, time.Millisecond, time.Since(start))
		wg.Wait()
		nothingLeft(t, r)
	})
}

// 64 callers share eight slots, and the gate has let all of them through when a wall of 20 a second appears in front of 160. What waits for
// a slot with a permission from before asks for a new one.
func TestPermissionThatBecameStaleInFrontOfASlotIsAskedForAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := adaptive(10)
		o.MaxInFlight = 8
		r := newRetryer(t, o, seed(1))
		start := time.Now()
		limit := func() int {
			if time.Since(start) < time.Second {
				return 1_000_000
			}
			return 20
		}
		w := wall(50*time.Millisecond, limit, slowDown)
		c := newClient(r, w)
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(4*time.Second, stop)
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				for ctx.Err() == nil {
					_ = put(ctx, c)
				}
			})
		}
		wg.Wait()
		sent := make([]int, 5)
		for _, s := range w.seen {
			sent[int(s.at.Sub(start)/time.Second)]++
		}
		t.Log(sent)
		assert.InDelta(t, 160, sent[0], 10)
		assert.Less(t, sent[1], 125, "most of those in front of the slots go back")
		assert.Less(t, sent[2]+sent[3], 80, "twice the limit; the slots alone would let 320 through")
		nothingLeft(t, r)
	})
}

// Whoever comes back to the gate from a slot is at the head of the queue there. That its deadline is too short for the whole queue does not matter.
func TestStalePermissionIsNotRefusedForTheQueueBehindIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := adaptive(0)
		o.MaxInFlight = 1
		r := newRetryer(t, o)
		w := &wire{answer: func(n int, req *http.Request, _ []byte) (*http.Response, error) {
			if n == 1 {
				time.Sleep(1500 * time.Millisecond)
			}
			return success(req), nil
		}}
		c := newClient(r, w)
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, put(t.Context(), c)) })
		synctest.Wait()
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			assert.NoError(t, put(ctx, c)) // through the gate, waits for the slot
		})
		synctest.Wait()
		pace(t, r, writes, 10)
		ctx, stop := context.WithCancel(t.Context())
		for range 300 {
			wg.Go(func() { _ = put(ctx, c) })
		}
		time.AfterFunc(4*time.Second, stop)
		wg.Wait()
		nothingLeft(t, r)
	})
}

func TestPublishingCallsGoAheadAtTheGate(t *testing.T) {
	marked := func(ctx context.Context, c *s3.Client) error { return put(WithPriority(ctx), c) }
	for name, op := range map[string]func(context.Context, *s3.Client) error{
		"CompleteMultipartUpload": complete, "HeadObject": head, "PutObject with priority": marked, "PutObject": put, "GetObject": get,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRetryer(t, adaptive(0))
				pace(t, r, writes, 10)
				pace(t, r, reads, 10)
				c := newClient(r, slow(10*time.Millisecond))
				var wg sync.WaitGroup
				for range 30 {
					wg.Go(func() { assert.NoError(t, put(t.Context(), c)) })
					wg.Go(func() { assert.NoError(t, get(t.Context(), c)) })
				}
				synctest.Wait()
				start := time.Now()
				require.NoError(t, op(t.Context(), c))
				took := time.Since(start)
				if name == "PutObject" || name == "GetObject" {
					assert.Greater(t, took, time.Second, "behind the others")
				} else {
					assert.Less(t, took, 250*time.Millisecond)
				}
				wg.Wait()
			})
		})
	}
}

// A retry has waited already: it goes before first attempts that came earlier.
func TestRetriesGoAheadAtTheGate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, adaptive(0))
		pace(t, r, writes, 10)
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				permit, err := r.limiter.Wait(t.Context(), attempt{scope: writes, first: i < 7})
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				permit.Done(outcome{sent: true, served: true})
			})
			synctest.Wait()
		}
		wg.Wait()
		assert.Equal(t, []int{7, 8, 9, 0, 1, 2, 3, 4, 5, 6}, order)
	})
}
