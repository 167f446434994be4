package retrymode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// More cases from public bug reports about other clients, those in which the gate matters.

// O-28, with the gate: everything fails, and a loop of callers does not hammer the store.
func TestBugO28_GateLetsNextToNothingThroughWhileEverythingFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, adaptive(10), seed(2))
		w := always(503, "")
		w.latency = 10 * time.Millisecond
		c := newClient(r, w)
		start := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, stop)
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				for ctx.Err() == nil {
					_ = put(ctx, c)
				}
			})
		}
		wg.Wait()
		var perSecond [11]int
		for _, s := range w.seen {
			perSecond[int(s.at.Sub(start).Seconds())]++
		}
		for i := 2; i < 10; i++ {
			assert.Less(t, perSecond[i], 64, "second %d of %v: less than one attempt of each caller", i, perSecond)
		}
		nothingLeft(t, r)
	})
}

// O-33: a 503 while a job recovered was fatal: it crashed, restarted and came back as a burst. Recovery calls are retried like all others, and what
// follows the outage is no burst.
func TestBugO33_RecoveryOutlastsAnOutageAndStartsGently(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const outage = 5 * time.Second
		r := newRetryer(t, adaptive(10), seed(1))
		start := time.Now()
		w := &wire{latency: 50 * time.Millisecond}
		w.answer = func(_ int, req *http.Request, _ []byte) (*http.Response, error) {
			if time.Since(start) < outage {
				return slowDown(req)
			}
			return success(req), nil
		}
		c := newClient(r, w)
		recovery := []string{"GetObject", "HeadObject", "ListParts", "ListObjectsV2", "CompleteMultipartUpload", "AbortMultipartUpload"}
		var wg sync.WaitGroup
		for i := range 48 {
			for _, op := range operations() {
				if op.name == recovery[i%len(recovery)] {
					wg.Go(func() { assert.NoError(t, op.do(t.Context(), c), op.name) })
				}
			}
		}
		wg.Wait()
		assert.Less(t, time.Since(start), 3*outage)
		busiest := 0
		for i := range w.seen { // of all tenths of a second after the outage
			n := 0
			for _, s := range w.seen[i:] {
				if s.at.Sub(w.seen[i].at) < 100*time.Millisecond {
					n++
				}
			}
			if w.seen[i].at.Sub(start) >= outage-50*time.Millisecond {
				busiest = max(busiest, n)
			}
		}
		assert.Less(t, busiest, 36, "not all 48 at once")
	})
}

// O-34: many new prefixes at once are cold and are throttled far below the limit of a warm one; tasks died. Each is paced on its own, nothing
// fails, and the statistics say which prefix it is.
func TestBugO34_ColdPrefixesAreWarmedUpAndNamed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const prefixes, cold = 6, 6 * time.Second
		o := adaptive(10)
		o.Scope = ScopePrefix
		r := newRetryer(t, o, seed(1))
		start := time.Now()
		walls := map[string]*wire{}
		limit := func() int {
			if time.Since(start) < cold {
				return 20
			}
			return 1_000_000
		}
		for i := range prefixes {
			walls[fmt.Sprintf("p%d", i)] = wall(0, limit, slowDown)
		}
		var mu sync.Mutex
		refused, sent := 0, 0
		w := &wire{latency: 50 * time.Millisecond}
		w.answer = func(n int, req *http.Request, body []byte) (*http.Response, error) {
			resp, err := walls[strings.Split(req.URL.Path, "/")[2]].answer(n, req, body)
			mu.Lock()
			defer mu.Unlock()
			if sent++; resp.StatusCode == 503 {
				refused++
			}
			return resp, err
		}
		c := newClient(r, w)
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(cold, stop)
		var wg sync.WaitGroup
		for i := range prefixes {
			for range 4 {
				wg.Go(func() {
					for ctx.Err() == nil {
						if err := putKey("b", fmt.Sprintf("p%d/k", i))(ctx, c); ctx.Err() == nil {
							assert.NoError(t, err)
						}
					}
				})
			}
		}
		time.Sleep(cold / 2)
		for i := range prefixes {
			g := gateOf(r, scope{bucket: "b", prefix: fmt.Sprintf("p%d/", i), kind: kindWrite})
			assert.True(t, g.On)
			assert.InDelta(t, 20, g.Rate, 8)
		}
		wg.Wait()
		good := sent - refused
		assert.Greater(t, good, prefixes*20*int(cold/time.Second)*8/10)
		assert.Less(t, refused, sent/4)
	})
}

// O-35: ExpiredToken in the middle of an upload was never retried. The next attempt is signed with the credentials that the provider has then, and
// the upload goes on.
func TestBugO35_UploadGoesOnWithFreshCredentials(t *testing.T) {
	for _, mode := range []Mode{Standard, Adaptive} {
		t.Run(mode.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				valid, asked := "OLD", 0
				w := &wire{}
				w.answer = func(n int, req *http.Request, _ []byte) (*http.Response, error) {
					if n == 3 {
						valid = "NEW"
					}
					if !strings.Contains(req.Header.Get("Authorization"), "Credential="+valid+"/") {
						return reply(400, xmlError("ExpiredToken")), nil
					}
					return success(req), nil
				}
				o := standard(3)
				o.Mode = mode
				c := newClient(newRetryer(t, o), w, func(o *s3.Options) {
					o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
						if asked++; asked < 4 { // the third request still has the old ones
							return aws.Credentials{AccessKeyID: "OLD", SecretAccessKey: "SK"}, nil
						}
						return aws.Credentials{AccessKeyID: "NEW", SecretAccessKey: "SK"}, nil
					})
				})
				for number := range int32(5) {
					require.NoError(t, uploadPart(t.Context(), c, number+1, bytes.Repeat([]byte{byte(number)}, 1000)))
				}
				require.NoError(t, complete(t.Context(), c))
				assert.Equal(t, 7, w.attempts(), "five parts, one of them twice, and the commit")
				for _, s := range w.seen {
					assert.Contains(t, s.url, "uploadId=u")
				}
				assert.Equal(t, w.seen[2].body, w.seen[3].body)
			})
		})
	}
}

// O-40: a timeout counted as permanent, and what was being sent was dropped. Timeouts are retried; when they do not end, the error says so and how
// often it was tried, and the counts say the same.
func TestBugO40_TimeoutsAreRetriedAndCounted(t *testing.T) {
	for _, mode := range []Mode{Standard, Adaptive} {
		t.Run(mode.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				timeouts := 2
				w := &wire{}
				w.answer = func(n int, req *http.Request, _ []byte) (*http.Response, error) {
					if n <= timeouts {
						<-req.Context().Done()
						return nil, req.Context().Err()
					}
					return success(req), nil
				}
				o := standard(3)
				o.Mode = mode
				r := newRetryer(t, o, seed(1))
				c := newClient(r, w, func(o *s3.Options) { o.HTTPClient = &http.Client{Transport: w, Timeout: 5 * time.Second} })
				part := bytes.Repeat([]byte("x"), 1000)
				require.NoError(t, uploadPart(t.Context(), c, 1, part))
				require.Equal(t, 3, w.attempts())
				for _, s := range w.seen {
					assert.Equal(t, part, s.body)
				}
				assert.EqualValues(t, 2, r.Stats().Operations["UploadPart"].RetriesAfterTransient)

				timeouts = 1000
				err := uploadPart(t.Context(), c, 2, part)
				require.Error(t, err)
				assert.Equal(t, 4, AttemptsOf(err))
				assert.Equal(t, Transient, Classify(err))
				var timeout interface{ Timeout() bool }
				assert.True(t, errors.As(err, &timeout) && timeout.Timeout())
				assert.NotErrorIs(t, err, ErrBreakerOpen)
				s := r.Stats().Operations["UploadPart"]
				assert.EqualValues(t, 2, s.Calls)
				assert.EqualValues(t, 7, s.Attempts)
				nothingLeft(t, r)
			})
		})
	}
}
