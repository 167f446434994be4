package retrymode

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStatsCountARepeatedCallOnce(t *testing.T) {
	for _, withMiddleware := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			r := newRetryer(t, standard(3), WithRandom(half{}))
			w := &wire{latency: 100 * time.Millisecond}
			w.answer = func(n int, req *http.Request, _ []byte) (*http.Response, error) {
				switch n {
				case 1, 2:
					return reply(503, ""), nil // waits 0.5 and 1 s
				case 3:
					return reply(500, ""), nil // waits 0.2 s
				case 5:
					return reply(404, ""), nil
				}
				return success(req), nil
			}
			c := newClient(r, w, func(o *s3.Options) {
				if !withMiddleware {
					o.APIOptions = nil
				}
			})
			require.NoError(t, put(t.Context(), c))
			require.Error(t, head(t.Context(), c))
			require.NoError(t, get(t.Context(), c))

			backoff := 1700 * time.Millisecond
			if !withMiddleware {
				backoff = 0
			}
			once := OperationStats{Calls: 1, Attempts: 1, Wire: 100 * time.Millisecond}
			want := Stats{
				Mode: Standard,
				Operations: map[string]OperationStats{
					"PutObject": {
						Calls: 1, Attempts: 4, Throttles: 2, RetriesAfterThrottle: 2, RetriesAfterTransient: 1,
						BackoffWait: backoff, Wire: 400 * time.Millisecond,
					},
					"HeadObject": once,
					"GetObject":  once,
				},
				Total: OperationStats{
					Calls: 3, Attempts: 6, Throttles: 2, RetriesAfterThrottle: 2, RetriesAfterTransient: 1,
					BackoffWait: backoff, Wire: 600 * time.Millisecond,
				},
			}
			assert.Equal(t, want, r.Stats())

			text, err := json.Marshal(r.Stats())
			require.NoError(t, err)
			assert.Contains(t, string(text), `"mode":"standard"`)
			var back Stats
			require.NoError(t, json.Unmarshal(text, &back))
			assert.Equal(t, want, back)
		})
	}
}

// What the client counts is what the store saw.
func TestStatsAgreeWithTheStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, adaptive(10), seed(4))
		w := &wire{latency: 50 * time.Millisecond}
		throttled := 0
		var mu sync.Mutex
		w.answer = func(n int, req *http.Request, _ []byte) (*http.Response, error) {
			if n%20 == 0 {
				mu.Lock()
				defer mu.Unlock()
				throttled++
				return reply(503, ""), nil
			}
			return success(req), nil
		}
		assert.Zero(t, burst(t, newClient(r, w), put, 200, 16))
		s := r.Stats()
		assert.EqualValues(t, 200, s.Total.Calls)
		assert.EqualValues(t, w.attempts(), s.Total.Attempts)
		assert.EqualValues(t, throttled, s.Total.Throttles)
		assert.EqualValues(t, throttled, s.Total.RetriesAfterThrottle)
		assert.Equal(t, time.Duration(w.attempts())*50*time.Millisecond, s.Total.Wire)
	})
}

// A store that sheds load by closing connections never says 503: what it cuts off is counted in every mode, and is no throttle.
func TestStatsCountAttemptsThatGotNoAnswer(t *testing.T) {
	op := func(o string, err error) error { return &net.OpError{Op: o, Net: "tcp", Err: err} }
	for _, tt := range []struct {
		name string
		wire *wire
		want int64 // of three attempts
	}{
		{"reset", fails(op("read", syscall.ECONNRESET)), 3},
		{"closed", fails(io.EOF), 3},
		{"not let in", fails(op("dial", syscall.ECONNREFUSED)), 3},
		{"nothing in time", fails(op("read", os.ErrDeadlineExceeded)), 3},
		{"no such host", fails(op("dial", &net.DNSError{Err: "no such host", Name: "store.example"})), 0},
		{"503", always(503, ""), 0},
		{"500", always(500, ""), 0},
		{"200", always(200, ""), 0},
	} {
		for name, o := range map[string]Options{"gate": adaptive(2), "sdk": sdkAdaptive(2), "standard": standard(2)} {
			t.Run(tt.name+" "+name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					r := newRetryer(t, o, seed(1))
					_ = get(t.Context(), newClient(r, tt.wire))
					s := r.Stats()
					assert.Equal(t, tt.want, s.Operations["GetObject"].CutOff)
					assert.Equal(t, tt.want, s.Total.CutOff)
					if tt.want > 0 {
						assert.Zero(t, s.Total.Throttles)
						assert.Equal(t, tt.want, s.Total.Attempts)
					}
					text, err := json.Marshal(s.Total)
					require.NoError(t, err)
					assert.Contains(t, string(text), fmt.Sprintf(`"cut_off":%d`, tt.want))
				})
			})
		}
	}
}

// Who gives up before the answer was not cut off by the store.
func TestStatsCountNoAttemptThatItsCallerGaveUpAsCutOff(t *testing.T) {
	for _, o := range []Options{adaptive(2), standard(2)} {
		bubble(t, func(t *testing.T) {
			r := newRetryer(t, o)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.Error(t, get(ctx, newClient(r, slow(time.Minute))))
			assert.EqualValues(t, 1, r.Stats().Total.Attempts)
			assert.Zero(t, r.Stats().Total.CutOff)
		})
	}
}
