package retrymode

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Cases from public bug reports about other clients. The number is the row in the project's list.

// O-27: the adaptive mode of an older SDK never gave retry tokens back. Once they were spent, nothing was retried until the process restarted.
func TestBugO27_RetryTokensComeBackWithSuccess(t *testing.T) {
	for _, mode := range []Mode{Standard, Adaptive} {
		t.Run(mode.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := withBreaker(standard(1))
				o.Mode = mode
				r := newRetryer(t, o, seed(1))
				healthy := untilStopped(1, 503, "")
				c := newClient(r, healthy)
				sick := newClient(r, always(500, ""))
				for range 600 {
					require.Error(t, put(t.Context(), sick))
				}
				require.Less(t, r.Stats().Breaker.Quota, uint(14), "spent")

				healthy.seen = make([]sighting, 1) // past its one refusal
				for done := 0; done < 600; {
					if put(t.Context(), c) == nil {
						done++
					} else {
						time.Sleep(time.Second) // the breaker is open until its probe
					}
				}
				require.Greater(t, r.Stats().Breaker.Quota, uint(490))
				healthy.seen = nil
				require.NoError(t, put(t.Context(), c))
				assert.Equal(t, 2, healthy.attempts(), "one 503, retried")
			})
		})
	}
}

// O-28: with all calls failing, the empty quota ended every call at once, nobody backed off, and the callers' loops hammered the store.
func TestBugO28_RateFallsWhileEverythingFails(t *testing.T) {
	for _, on := range []bool{false, true} {
		t.Run(fmt.Sprintf("breaker %t", on), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := standard(10)
				o.CircuitBreaker = on
				r := newRetryer(t, o, seed(2))
				w := always(503, "")
				w.latency = 10 * time.Millisecond
				c := newClient(r, w)
				start := time.Now()
				var wg sync.WaitGroup
				for range 64 {
					wg.Go(func() {
						for time.Since(start) < 10*time.Second {
							_ = put(t.Context(), c)
							time.Sleep(200 * time.Millisecond) // a caller that does not spin; refused calls cost no time
						}
					})
				}
				wg.Wait()
				var perSecond [10]int
				for _, s := range w.seen {
					if i := int(s.at.Sub(start).Seconds()); i < 10 {
						perSecond[i]++
					}
				}
				for i := 2; i < 10; i++ {
					assert.Less(t, perSecond[i], perSecond[0]/2, "second %d of %v", i, perSecond)
				}
				if on { // probes only: at least 0.5, 1, 2, 4 s apart
					assert.LessOrEqual(t, perSecond[4]+perSecond[5]+perSecond[6]+perSecond[7]+perSecond[8]+perSecond[9], 4)
				}
			})
		})
	}
}

// O-29: a retry was impossible because the body could not be rewound. Bodies in memory are sent again in full.
func TestBugO29_EveryPartIsSentAgainWithTheSameBytes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		refused := map[string]bool{}
		var mu sync.Mutex
		w := &wire{latency: 10 * time.Millisecond}
		w.answer = func(_ int, req *http.Request, _ []byte) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			number := req.URL.Query().Get("partNumber")
			if !refused[number] {
				refused[number] = true
				return reply(503, ""), nil
			}
			return success(req), nil
		}
		c := newClient(newRetryer(t, standard(3)), w)
		part := func(number int32) []byte { return bytes.Repeat([]byte{byte(number)}, 10_000+int(number)) }
		var wg sync.WaitGroup
		for number := range int32(8) {
			wg.Go(func() { assert.NoError(t, uploadPart(t.Context(), c, number+1, part(number+1))) })
		}
		wg.Wait()
		sent := map[string]int{}
		for _, s := range w.seen {
			sent[string(s.body)]++
		}
		require.Len(t, sent, 8)
		for number := range int32(8) {
			assert.Equal(t, 2, sent[string(part(number+1))])
		}
	})
}

// O-29, the other half: where a body cannot be rewound the SDK forgets to release the attempt, and the slot would be lost for ever.
func TestBugO29_BodyThatCannotBeRewoundLosesNoSlot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := standard(3)
		o.MaxInFlight = 2
		r := newRetryer(t, o)
		w := always(503, "")
		c := newClient(r, w)
		for i := range 10 {
			err := unseekable(t.Context(), c)
			require.ErrorContains(t, err, "rewind")
			assert.Equal(t, 1, AttemptsOf(err))
			assert.Equal(t, i+1, w.attempts())
		}
		s := r.Stats()
		assert.Zero(t, s.InFlight)
		assert.EqualValues(t, 10, s.Total.Attempts)
		assert.EqualValues(t, 10, s.Total.Abandoned)
	})
}

// O-30: two retry layers multiplied. Attempts have one owner: what http.Client and the transport do is no second one.
func TestBugO30_LayersOfRetriesDoNotMultiply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := &wire{answer: func(int, *http.Request, []byte) (*http.Response, error) {
			return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
		}}
		require.Error(t, uploadPart(t.Context(), newClient(newRetryer(t, standard(4)), w), 1, []byte("part")))
		assert.Equal(t, 5, w.attempts())
	})
}

// O-31: after an SDK upgrade calls failed with "quota exceeded" although attempts were left. Off means never.
func TestBugO31_BreakerOffNeverEndsACallEarly(t *testing.T) {
	for mode, retries := range map[Mode]int{Standard: 3, Adaptive: 1} {
		t.Run(mode.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := standard(retries)
				o.Mode = mode
				r := newRetryer(t, o)
				w := always(503, "")
				c := newClient(r, w)
				var wg sync.WaitGroup
				for range 200 {
					wg.Go(func() {
						err := put(t.Context(), c)
						assert.NotErrorIs(t, err, ErrBreakerOpen)
						assert.Equal(t, retries+1, AttemptsOf(err))
					})
				}
				wg.Wait()
				assert.Equal(t, 200*(retries+1), w.attempts())
			})
		})
	}
}

// O-32: switching to adaptive made a run three times as long, and nothing said why. The gate has no such price, and what the SDK's limiter
// costs is a number.
func TestBugO32_AdaptiveCostsNothingAndThePriceOfTheSDKsLimiterIsVisible(t *testing.T) {
	run := func(t *testing.T, o Options) (took time.Duration, s Stats) {
		bubble(t, func(t *testing.T) {
			w := &wire{latency: 100 * time.Millisecond}
			w.answer = func(n int, req *http.Request, _ []byte) (*http.Response, error) {
				if n == 100 { // at 0.3 s
					return reply(503, ""), nil
				}
				return success(req), nil
			}
			r := newRetryer(t, o, seed(1))
			start := time.Now()
			assert.Zero(t, burst(t, newClient(r, w), put, 500, 32))
			took, s = time.Since(start), r.Stats()
		})
		return took, s
	}
	plain, stats := run(t, standard(3))
	assert.Zero(t, stats.Total.LimiterWait)

	gated, stats := run(t, adaptive(3))
	assert.LessOrEqual(t, gated, plain)
	assert.Zero(t, stats.Total.LimiterWait)
	assert.LessOrEqual(t, stats.Total.BackoffWait, 100*time.Millisecond)

	slow, stats := run(t, sdkAdaptive(3))
	assert.Greater(t, slow, 3*plain/2)
	// All 32 callers are delayed by the difference, and the limiter's wait accounts for it.
	assert.InDelta(t, (slow-plain).Seconds()*32, stats.Total.LimiterWait.Seconds(), 0.25*stats.Total.LimiterWait.Seconds())
}

// O-36: requests were signed, sat in a queue, and arrived too old. Here the queue is in front of the signature.
func TestBugO36_RequestsAreSignedAfterTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := &wire{}
		w.answer = func(_ int, req *http.Request, _ []byte) (*http.Response, error) {
			signed, err := time.Parse("20060102T150405Z", req.Header.Get("X-Amz-Date"))
			if err != nil || time.Since(signed) > 2*time.Second {
				return reply(403, xmlError("RequestTimeTooSkewed")), nil
			}
			time.Sleep(time.Second)
			return success(req), nil
		}
		o := standard(0)
		o.MaxInFlight = 1
		c := newClient(newRetryer(t, o), w)
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() { assert.NoError(t, put(t.Context(), c)) })
		}
		synctest.Wait()
		wg.Wait()
	})
}

// O-37: a 400 was never retried, whatever its code said.
func TestBugO37_RequestTimeoutIsRetriedAlthoughItIsA400(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := untilStopped(1, 400, xmlError("RequestTimeout"))
		require.NoError(t, put(t.Context(), newClient(newRetryer(t, standard(3)), w)))
		assert.Equal(t, 2, w.attempts())
	})
}

// halfReader breaks the connection after half of the request body.
type halfReader struct {
	mu   sync.Mutex
	seen [][]byte
}

func (h *halfReader) RoundTrip(req *http.Request) (*http.Response, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	limit := req.ContentLength
	if len(h.seen) == 0 {
		limit /= 2
	}
	body, _ := io.ReadAll(io.LimitReader(req.Body, limit))
	_ = req.Body.Close()
	h.seen = append(h.seen, body)
	if len(h.seen) == 1 {
		return nil, &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.ECONNRESET)}
	}
	return success(req), nil
}

// O-38: a connection reset while a part was being sent was final.
func TestBugO38_PartIsSentAgainInFullAfterAResetInTheMiddle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := &halfReader{}
		part := bytes.Repeat([]byte("0123456789"), 1000)
		require.NoError(t, uploadPart(t.Context(), newClient(newRetryer(t, standard(3)), h), 1, part))
		require.Len(t, h.seen, 2)
		assert.Len(t, h.seen[0], 5000)
		assert.Equal(t, part, h.seen[1])
	})
}
