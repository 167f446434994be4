package retrymode

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAttemptsOnTheWireAreRetriesPlusOne(t *testing.T) {
	for _, mode := range []Mode{Standard, Adaptive} {
		for _, retries := range []int{0, 1, 3, 10} {
			for _, op := range operations() {
				t.Run(fmt.Sprintf("%s %d %s", mode, retries, op.name), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						o := standard(retries)
						o.Mode = mode
						w := always(503, xmlError("SlowDown"))
						err := op.do(t.Context(), newClient(newRetryer(t, o), w))
						require.Error(t, err)
						assert.Equal(t, retries+1, w.attempts())
						assert.Equal(t, retries+1, AttemptsOf(err))
						assert.Equal(t, Throttle, Classify(err))
					})
				})
			}
		}
	}
}

// The environment overrules a retryer that is merely put into the client's options: AWS_MAX_ATTEMPTS wraps it.
func TestAttemptsDoNotDependOnTheEnvironment(t *testing.T) {
	t.Setenv("AWS_MAX_ATTEMPTS", "5")
	t.Setenv("AWS_RETRY_MODE", "standard")
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "AK")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "SK")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))

	endpoint := func(w http.RoundTripper) func(*s3.Options) {
		return func(o *s3.Options) {
			o.BaseEndpoint, o.UsePathStyle, o.HTTPClient = aws.String("https://store.example"), true, &http.Client{Transport: w}
		}
	}
	for _, mode := range []Mode{Standard, Adaptive} {
		t.Run(mode.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				loaded, err := awsconfig.LoadDefaultConfig(t.Context())
				require.NoError(t, err)
				require.Equal(t, 5, loaded.RetryMaxAttempts)
				for _, op := range operations() {
					o := standard(2)
					o.Mode = mode
					applied := loaded
					newRetryer(t, o).Apply(&applied)
					w := always(500, xmlError("InternalError"))
					require.Error(t, op.do(t.Context(), s3.NewFromConfig(applied, endpoint(w))))
					assert.Equal(t, 3, w.attempts(), "%s, applied to the configuration", op.name)

					o.MaxRetries = 6
					r := newRetryer(t, o)
					w = always(500, xmlError("InternalError"))
					require.Error(t, op.do(t.Context(), s3.NewFromConfig(loaded, endpoint(w), func(o *s3.Options) {
						o.Retryer, o.RetryMaxAttempts = r, 0
						o.APIOptions = append(o.APIOptions, r.Middleware())
					})))
					assert.Equal(t, 7, w.attempts(), "%s, set in the client's options", op.name)
				}
			})
		})
	}
}

func TestApplyLeavesACopyOfTheConfigurationAlone(t *testing.T) {
	spare := make([]func(*middleware.Stack) error, 0, 4)
	cfg := aws.Config{RetryMaxAttempts: 5, APIOptions: spare}
	copied := cfg
	newRetryer(t, standard(1)).Apply(&cfg)
	require.Len(t, cfg.APIOptions, 1)
	assert.Nil(t, copied.Retryer)
	assert.Equal(t, 5, copied.RetryMaxAttempts)
	assert.Empty(t, copied.APIOptions)
	assert.Nil(t, spare[:1][0], "the shared array behind the options was written to")
}

func TestCallSucceedsOnceTheStoreStopsRefusing(t *testing.T) {
	for _, mode := range []Mode{Standard, Adaptive} {
		for refusals := range 6 {
			t.Run(fmt.Sprintf("%s %d refusals", mode, refusals), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					o := standard(3)
					o.Mode = mode
					w := untilStopped(refusals, 503, xmlError("SlowDown"))
					err := put(t.Context(), newClient(newRetryer(t, o), w))
					if refusals <= 3 {
						require.NoError(t, err)
						assert.Equal(t, refusals+1, w.attempts())
						return
					}
					require.Error(t, err)
					assert.Equal(t, 4, w.attempts())
					var api smithy.APIError
					require.ErrorAs(t, err, &api)
					assert.Equal(t, "SlowDown", api.ErrorCode())
				})
			})
		}
	}
}

func TestTimeoutOfOneAttemptIsRetried(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := &wire{}
		w.answer = func(n int, req *http.Request, _ []byte) (*http.Response, error) {
			if n == 1 {
				<-req.Context().Done() // http.Client.Timeout
				return nil, req.Context().Err()
			}
			return success(req), nil
		}
		r := newRetryer(t, standard(3))
		c := newClient(r, w, func(o *s3.Options) { o.HTTPClient = &http.Client{Transport: w, Timeout: 5 * time.Second} })
		require.NoError(t, put(t.Context(), c))
		assert.Equal(t, 2, w.attempts())
	})
}

// A lost answer to a write that must not be repeated blindly: one attempt, and the caller is told to look.
func TestLostAnswerToACommitLeavesTheRetryerAtOnce(t *testing.T) {
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, tt := range []struct {
		name     string
		op       func(context.Context, *s3.Client) error
		err      error
		body     string // of a 200, when err is nil
		attempts int
		class    Class
	}{
		{"complete, reset", complete, reset, "", 1, Ambiguous},
		{"complete, half body", complete, nil, completed[:80], 1, Ambiguous},
		{"complete, garbage", complete, nil, "<html>", 1, Ambiguous},
		{"complete, nobody home", complete, refused, "", 4, Transient},
		{"conditional put, reset", putIfAbsent, reset, "", 1, Ambiguous},
		{"conditional put, nobody home", putIfAbsent, refused, "", 4, Transient},
		{"plain put, reset", put, reset, "", 4, Transient},
		{"get, reset", get, reset, "", 4, Transient},
	} {
		for _, withMiddleware := range []bool{true, false} {
			if !withMiddleware && tt.name == "conditional put, reset" {
				continue // only the middleware sees the condition
			}
			t.Run(fmt.Sprintf("%s, middleware %t", tt.name, withMiddleware), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := &wire{answer: func(int, *http.Request, []byte) (*http.Response, error) {
						if tt.err != nil {
							return nil, tt.err
						}
						return reply(200, tt.body), nil
					}}
					err := tt.op(t.Context(), newClient(newRetryer(t, standard(3)), w, func(o *s3.Options) {
						if !withMiddleware {
							o.APIOptions = nil
						}
					}))
					require.Error(t, err)
					assert.Equal(t, tt.attempts, w.attempts())
					assert.Equal(t, tt.class, Classify(err))
				})
			})
		}
	}
}

// 409 means again, 412 means look.
func TestConditionalPutAsksAgainOnAConflictAndStopsWhenTheConditionFailed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := untilStopped(2, 409, xmlError("ConditionalRequestConflict"))
		require.NoError(t, putIfAbsent(t.Context(), newClient(newRetryer(t, standard(3)), w)))
		assert.Equal(t, 3, w.attempts())

		w = always(412, xmlError("PreconditionFailed"))
		err := putIfAbsent(t.Context(), newClient(newRetryer(t, standard(3)), w))
		assert.Equal(t, Permanent, Classify(err))
		assert.Equal(t, 1, w.attempts())
		assert.Equal(t, 1, AttemptsOf(err), "the SDK says nothing about calls that were not retried")
	})
}

// The credentials provider gets one chance to hand out fresh credentials.
func TestExpiredCredentialsAreRetriedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := untilStopped(1, 400, xmlError("ExpiredToken"))
		require.NoError(t, put(t.Context(), newClient(newRetryer(t, standard(3)), w)))
		assert.Equal(t, 2, w.attempts())

		w = always(400, xmlError("ExpiredToken"))
		err := put(t.Context(), newClient(newRetryer(t, standard(3)), w))
		assert.Equal(t, 2, w.attempts())
		assert.Equal(t, Permanent, Classify(err))
	})
}

func TestSkewedClockIsRetriedOnceWithTheTimeCorrected(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := &wire{}
		w.answer = func(n int, req *http.Request, _ []byte) (*http.Response, error) {
			date := time.Now().Add(time.Hour).UTC()
			signed, err := time.Parse("20060102T150405Z", req.Header.Get("X-Amz-Date"))
			if err != nil || date.Sub(signed) > 15*time.Minute {
				return reply(403, xmlError("RequestTimeTooSkewed"), "Date", date.Format(http.TimeFormat)), nil
			}
			return reply(200, "", "ETag", `"e"`, "Date", date.Format(http.TimeFormat)), nil
		}
		require.NoError(t, put(t.Context(), newClient(newRetryer(t, standard(3)), w)))
		assert.Equal(t, 2, w.attempts())

		// The clocks agree: nothing to correct, nothing to retry.
		w.seen = nil
		w.answer = func(int, *http.Request, []byte) (*http.Response, error) {
			return reply(403, xmlError("RequestTimeTooSkewed"), "Date", time.Now().UTC().Format(http.TimeFormat)), nil
		}
		err := put(t.Context(), newClient(newRetryer(t, standard(3)), w))
		assert.Equal(t, Permanent, Classify(err))
		assert.Equal(t, 1, w.attempts())
	})
}

func TestErrorOfACallThatNeverStartedHasAClassToo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := always(200, "")
		c := newClient(newRetryer(t, standard(3)), w)
		_, err := c.PutObject(t.Context(), &s3.PutObjectInput{Key: key}) // no bucket
		require.Error(t, err)
		assert.Equal(t, Permanent, Classify(err))
		assert.Zero(t, AttemptsOf(err))
		assert.Zero(t, w.attempts())

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err = put(ctx, c)
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, Canceled, Classify(err))
		assert.Zero(t, w.attempts())
	})
}

// A presigned request has no attempts; the middleware stays out of its way.
func TestPresigningWorksWithTheMiddleware(t *testing.T) {
	w := always(503, "")
	r := newRetryer(t, standard(3))
	req, err := s3.NewPresignClient(newClient(r, w)).PresignGetObject(t.Context(), &s3.GetObjectInput{Bucket: bucket, Key: key})
	require.NoError(t, err)
	assert.Contains(t, req.URL, "X-Amz-Signature=")
	assert.Zero(t, w.attempts())
	assert.Zero(t, r.Stats().InFlight)
}

// Errors stay readable: nothing of ours is printed twice.
func TestErrorTextIsTheSDKsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		err := put(t.Context(), newClient(newRetryer(t, standard(1)), always(503, xmlError("SlowDown"))))
		assert.EqualError(t, err, "operation error S3: PutObject, exceeded maximum number of attempts, 2, "+
			"https response error StatusCode: 503, RequestID: , HostID: , api error SlowDown: recorded")
	})
}

func TestStormOfErrorsLeaksNoSlot(t *testing.T) {
	for _, mode := range []Mode{Standard, Adaptive} {
		t.Run(mode.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := standard(2)
				o.Mode, o.MaxInFlight, o.PriorityInFlight = mode, 4, 2
				var panics atomic.Int64
				w := &wire{latency: 20 * time.Millisecond}
				w.answer = func(n int, req *http.Request, _ []byte) (*http.Response, error) {
					switch n % 7 {
					case 0:
						return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
					case 1, 2:
						return reply(503, ""), nil
					case 3:
						return reply(404, xmlError("NoSuchKey")), nil
					case 4:
						return reply(200, "<html"), nil
					case 5:
						panics.Add(1)
						panic(errBoom)
					}
					return success(req), nil
				}
				r := newRetryer(t, o, seed(3))
				c := newClient(r, w)
				var wg sync.WaitGroup
				for g := range 12 {
					wg.Go(func() {
						for i := range 20 {
							func() {
								defer func() { _ = recover() }()
								ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+(g*7+i*13)%3000)*time.Millisecond)
								defer cancel()
								ops := operations()
								_ = ops[(g+i)%len(ops)].do(ctx, c)
								_ = unseekable(ctx, c)
							}()
						}
					})
				}
				wg.Wait()
				s := r.Stats()
				assert.Zero(t, s.InFlight)
				assert.Zero(t, s.WaitingLimiter)
				assert.Zero(t, s.WaitingSlot)
				assert.LessOrEqual(t, w.peak, 6)
				assert.Equal(t, s.Total.Calls+s.Total.RetriesAfterThrottle+s.Total.RetriesAfterTransient, s.Total.Attempts)
				assert.EqualValues(t, w.attempts(), s.Total.Attempts+panics.Load(), "the SDK forgets about an attempt that panicked")
				assert.NotZero(t, panics.Load())

				// All six slots can be taken.
				for range o.MaxInFlight {
					_, err := r.slots.acquire(t.Context(), false)
					require.NoError(t, err)
				}
				for range o.PriorityInFlight {
					_, err := r.slots.acquire(t.Context(), true)
					require.NoError(t, err)
				}
			})
		})
	}
}

func unseekable(ctx context.Context, c *s3.Client) error {
	body := struct{ *bytes.Buffer }{bytes.NewBufferString("once")}
	return drop(c.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: key, Body: body, ContentLength: aws.Int64(4)}))
}

func TestCallInsideAnAttemptNeedsNoSlotOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := standard(0)
		o.MaxInFlight, o.PriorityInFlight = 1, 1
		r := newRetryer(t, o)
		w := &wire{}
		w.answer = func(_ int, req *http.Request, _ []byte) (*http.Response, error) { return success(req), nil }
		c := newClient(r, w, func(o *s3.Options) {
			provider := o.Credentials
			o.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
				if w.attempts() == 0 {
					_, _ = newClient(r, w).CreateSession(ctx, &s3.CreateSessionInput{Bucket: bucket})
				}
				return provider.Retrieve(ctx)
			})
		})
		require.NoError(t, put(t.Context(), c))
		assert.Equal(t, 2, w.attempts())
		synctest.Wait()
		assert.Zero(t, r.Stats().InFlight)
	})
}
