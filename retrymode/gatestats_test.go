package retrymode

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every moment of every call is accounted for: on the wire, in the queue of the gate, held back or backed off, or in front of a slot.
func TestWaitsAddUpToTheTimeThatCallsTook(t *testing.T) {
	for name, o := range map[string]Options{"gate": adaptive(6), "sdk": sdkAdaptive(6), "standard": standard(6)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o.MaxInFlight = 8
				r := newRetryer(t, o, seed(1))
				w := wall(60*time.Millisecond, constant(30), func(req *http.Request) (*http.Response, error) {
					return reply(503, "", "Retry-After", "1"), nil
				})
				walled := w.answer
				w.answer = func(n int, req *http.Request, body []byte) (*http.Response, error) {
					if n%9 == 0 {
						return reply(500, ""), nil
					}
					return walled(n, req, body)
				}
				c := newClient(r, w)
				var mu sync.Mutex
				var took time.Duration
				ctx, stop := context.WithCancel(t.Context())
				time.AfterFunc(4*time.Second, stop) // waits that are cut short count as well
				var wg sync.WaitGroup
				for i := range 24 {
					wg.Go(func() {
						for ctx.Err() == nil {
							start := time.Now()
							_ = operations()[i%4].do(ctx, c)
							mu.Lock()
							took += time.Since(start)
							mu.Unlock()
						}
					})
				}
				wg.Wait()
				s := r.Stats().Total
				assert.InDelta(t, took.Seconds(), (s.LimiterWait + s.BackoffWait + s.SlotWait + s.Wire).Seconds(), 0.001)
				assert.Positive(t, s.BackoffWait)
				assert.Positive(t, s.SlotWait)
				if name != "standard" {
					assert.Positive(t, s.LimiterWait)
				}
				nothingLeft(t, r)
			})
		})
	}
}

func TestStatsShowTheGates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, adaptive(1))
		assert.Empty(t, r.Stats().Gates)
		pace(t, r, writes, 10)
		c := newClient(r, slow(50*time.Millisecond))
		require.NoError(t, get(t.Context(), c))
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { assert.NoError(t, put(t.Context(), c)) })
		}
		synctest.Wait()
		gates := r.Stats().Gates
		require.Len(t, gates, 2)
		read, write := gates[0], gates[1]
		assert.Equal(t, "b/ read", read.Scope)
		assert.False(t, read.On)
		assert.Zero(t, read.Rate)
		assert.Equal(t, "b/ write", write.Scope)
		assert.True(t, write.On)
		assert.InDelta(t, 10, write.Rate, 3)
		assert.Equal(t, 20, write.Waiting+write.InFlight)
		assert.Equal(t, r.Stats().WaitingLimiter, write.Waiting)
		assert.Positive(t, write.Waiting)

		text, err := json.Marshal(r.Stats())
		require.NoError(t, err)
		for _, want := range []string{`"scope":"b/ write"`, `"on":true`, `"rate":`, `"waiting":`, `"held":0`, `"in_flight":`, `"slow_start":`, `"shut":false`} {
			assert.Contains(t, string(text), want)
		}
		var back Stats
		require.NoError(t, json.Unmarshal(text, &back))
		assert.Equal(t, gates, back.Gates)
		wg.Wait()
		nothingLeft(t, r)
	})
}

// Modes without a gate have no line about gates.
func TestStatsWithoutAGateHaveNone(t *testing.T) {
	for _, o := range []Options{standard(1), sdkAdaptive(1)} {
		bubble(t, func(t *testing.T) {
			r := newRetryer(t, o)
			require.NoError(t, put(t.Context(), newClient(r, slow(0))))
			text, err := json.Marshal(r.Stats())
			require.NoError(t, err)
			assert.False(t, strings.Contains(string(text), "gates"))
		})
	}
}

// A wait at the gate is the gate's and a hold is backoff, to the microsecond.
func TestGateWaitAndHoldAreCountedApart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, adaptive(1), WithRandom(half{}))
		pace(t, r, reads, 10)
		w := untilStopped(1, 503, "")
		w.latency = 20 * time.Millisecond
		c := newClient(r, w)
		start := time.Now()
		require.NoError(t, get(t.Context(), c))
		took, s := time.Since(start), r.Stats().Total
		assert.Equal(t, 40*time.Millisecond, s.Wire)
		assert.LessOrEqual(t, s.BackoffWait, 50*time.Millisecond+rounding, "a hold may end early, when the store is back")
		assert.Equal(t, took, s.Wire+s.BackoffWait+s.LimiterWait)
		assert.InDelta(t, 0.2, s.LimiterWait.Seconds()+s.BackoffWait.Seconds(), 0.1, "two permissions at ten a second")
	})
}
