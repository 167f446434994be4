package retrymode

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestCancelWhileWaitingAtTheGate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, adaptive(0))
		pace(t, r, reads, 10)
		w := slow(10 * time.Millisecond)
		c := newClient(r, w)
		reason := errors.New("shutting down")
		start := time.Now()
		var wg sync.WaitGroup
		var sent atomic.Int64
		for i := range 40 {
			wg.Go(func() {
				d := time.Duration(1+i)*20*time.Millisecond + 3*time.Millisecond // four in a hundred milliseconds, of which one passes
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				time.AfterFunc(d, func() { cancel(reason) })
				err := get(ctx, c)
				if err == nil {
					sent.Add(1)
					return
				}
				assert.Equal(t, d, time.Since(start))
				assert.ErrorIs(t, err, context.Canceled)
				assert.Equal(t, Canceled, Classify(err))
				if we, ok := errors.AsType[*WaitError](err); ok { // else it was in flight
					assert.ErrorIs(t, err, reason)
					assert.Equal(t, "limiter", we.For)
					assert.Equal(t, d, we.Waited)
				}
			})
		}
		wg.Wait()
		nothingLeft(t, r)
		assert.Positive(t, sent.Load())
		assert.EqualValues(t, 40, r.Stats().Total.Abandoned+r.Stats().Total.Attempts)
		assert.EqualValues(t, w.attempts(), r.Stats().Total.Attempts)

		start = time.Now()
		require.NoError(t, get(t.Context(), c), "the queue still moves")
		assert.Less(t, time.Since(start), time.Second)
	})
}

// The context ends at the very moment of the grant. Whichever of the two comes first, the permission is not lost: the next one has it at that moment.
func TestPermissionOfACallThatIsCancelledAtTheMomentOfTheGrantGoesToTheNext(t *testing.T) {
	lost := 0
	for round := range 40 {
		bubble(t, func(t *testing.T) {
			r := newRetryer(t, adaptive(0))
			pace(t, r, scope{}, 10)
			p := r.gates.gates[scope{}]
			first, cancel := context.WithCancel(t.Context())
			defer cancel()
			var wg sync.WaitGroup
			at := make([]time.Duration, 2)
			var failed error
			wg.Go(func() {
				if round%2 == 0 {
					time.Sleep(time.Microsecond) // the timers are set in either order
				}
				release, err := r.GetAttemptToken(first)
				at[0], failed = p.now(), err
				if err == nil {
					assert.NoError(t, release(nil))
				}
			})
			synctest.Wait()
			if round%2 == 0 {
				time.Sleep(time.Microsecond)
				synctest.Wait()
			}
			p.lock()
			due := p.due
			p.unlock()
			require.Greater(t, due, p.now())
			wg.Go(func() {
				release, err := r.GetAttemptToken(t.Context())
				at[1] = p.now()
				if assert.NoError(t, err) {
					assert.NoError(t, release(nil))
				}
			})
			synctest.Wait()
			time.AfterFunc(due-p.now(), cancel)
			wg.Wait()
			assert.Equal(t, due, at[0])
			if failed != nil {
				lost++
				require.ErrorIs(t, failed, context.Canceled)
				assert.Equal(t, due, at[1], "the next one has it")
			} else {
				assert.Greater(t, at[1], due, "it was used")
			}
			nothingLeft(t, r)
		})
	}
	assert.Positive(t, lost)
}

// The same with the grant and the end of the context seen together: the waiter is told of both before it runs.
func TestPermissionIsHandedOnWhenGrantAndCancellationAreSeenTogether(t *testing.T) {
	for range 20 {
		bubble(t, func(t *testing.T) {
			r := newRetryer(t, adaptive(0))
			pace(t, r, writes, 10)
			p := r.gates.gates[writes]
			first, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wait := func(ctx context.Context) (at time.Duration, err error) {
				permit, err := r.limiter.Wait(ctx, attempt{scope: writes})
				at = p.now()
				if err == nil {
					permit.Done(outcome{}) // not sent
				}
				return at, err
			}
			wg.Go(func() { _, _ = wait(first) })
			synctest.Wait()
			var second time.Duration
			wg.Go(func() { second, _ = wait(t.Context()) })
			synctest.Wait()
			p.lock()
			p.timer.Stop()
			p.unlock()
			time.Sleep(150 * time.Millisecond) // one permission has become free, and nobody was told
			p.lock()
			now := p.now()
			cancel()
			p.due = 0
			p.pump(now)
			p.unlock()
			wg.Wait()
			assert.Equal(t, now, second, "the next one has it at that moment")
			nothingLeft(t, r)
		})
	}
}

// At a wall, calls with deadlines of their own: none outlasts its deadline, each that fails says so, and nothing stays behind. 2,000 of them
// without a client around, 200 with one.
func TestDeadlinesAtAWallAreKeptToTheMoment(t *testing.T) {
	for _, real := range []bool{false, true} {
		t.Run(fmt.Sprintf("client %t", real), func(t *testing.T) {
			calls, limit := 2000, 200
			if real {
				calls, limit = 200, 20
			}
			bubble(t, func(t *testing.T) {
				o := adaptive(1000)
				o.MaxInFlight = limit / 2
				r := newRetryer(t, o, seed(1))
				w := wall(100*time.Millisecond, constant(limit), slowDown)
				call := func(ctx context.Context) error { return attemptsOf(ctx, r, w) }
				if c := newClient(r, w); real {
					call = func(ctx context.Context) error { return put(ctx, c) }
				}
				random := rand.New(rand.NewPCG(1, 1))
				var wg sync.WaitGroup
				var late, onTime, good atomic.Int64
				for range calls {
					pause := time.Duration(random.Int64N(int64(3 * time.Second)))
					limit := 50*time.Millisecond + time.Duration(random.Int64N(int64(3*time.Second)))
					wg.Go(func() {
						time.Sleep(pause)
						ctx, cancel := context.WithTimeout(t.Context(), limit)
						defer cancel()
						start := time.Now()
						err := call(ctx)
						took := time.Since(start)
						switch {
						case took > limit:
							late.Add(1)
						case err == nil:
							good.Add(1)
						case took == limit:
							onTime.Add(1)
						}
						if err != nil {
							assert.ErrorIs(t, err, context.DeadlineExceeded)
						}
					})
				}
				wg.Wait()
				assert.Zero(t, late.Load())
				assert.Greater(t, onTime.Load(), int64(calls/20), "not all of them can know in advance")
				assert.Greater(t, good.Load(), int64(limit*3), "about one limit a second, for six seconds")
				nothingLeft(t, r)
			})
		})
	}
}

// attemptsOf makes one call the way the SDK does, without its cost.
func attemptsOf(ctx context.Context, r *Retryer, w *wire) error {
	ctx = context.WithValue(ctx, callKey{}, &call{operation: "PutObject", scope: writes})
	for {
		release, err := r.GetAttemptToken(ctx)
		if err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, "https://store.example/b/k", nil)
		if err != nil {
			return err
		}
		resp, err := w.RoundTrip(req)
		if err == nil && resp.StatusCode == 503 {
			err = &AttemptError{Class: Throttle, Err: errBoom}
		}
		_ = release(err)
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// Where a body cannot be rewound the SDK forgets to release the attempt: the gate would count it as in flight for ever.
func TestBodyThatCannotBeRewoundLosesNoPermission(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, adaptive(3), seed(1))
		c := newClient(r, always(503, ""))
		for range 10 {
			require.ErrorContains(t, unseekable(t.Context(), c), "rewind")
		}
		nothingLeft(t, r)
		assert.EqualValues(t, 10, r.Stats().Total.Abandoned)
	})
}

func TestPanicBehindTheGateLosesNoPermission(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, adaptive(3), seed(1))
		c := newClient(r, slow(time.Millisecond), func(o *s3.Options) {
			o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
				return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("panics", func(
					context.Context, middleware.FinalizeInput, middleware.FinalizeHandler,
				) (middleware.FinalizeOutput, middleware.Metadata, error) {
					panic(errBoom)
				}), middleware.After)
			})
		})
		for _, op := range operations() {
			assert.PanicsWithValue(t, errBoom, func() { _ = op.do(t.Context(), c) }, op.name)
		}
		nothingLeft(t, r)
	})
}

// A hundred attempts are queued at ten a second. A call that has one second is refused at once and not after one second; one that has
// eight is let in, as rates change.
func TestCallWithoutAChanceBeforeItsDeadlineIsRefusedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, adaptive(0))
		pace(t, r, writes, 10)
		c := newClient(r, slow(time.Millisecond))
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { _ = put(ctx, c) })
		}
		synctest.Wait()

		within := func(d time.Duration, op func(context.Context, *s3.Client) error) (time.Duration, error) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			start := time.Now()
			err := op(ctx, c)
			return time.Since(start), err
		}
		took, err := within(time.Second, put)
		assert.Zero(t, took)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		qe, ok := errors.AsType[*queueError](err)
		require.True(t, ok)
		assert.Equal(t, time.Second, qe.left)
		assert.InDelta(t, 10, qe.ahead.Seconds(), 3)
		we, ok := errors.AsType[*WaitError](err)
		require.True(t, ok)
		assert.Equal(t, "limiter", we.For)
		assert.Zero(t, we.Waited)
		assert.Regexp(t, `PutObject waited 0s for limiter: \d+(\.\d+)?s of attempts are queued at the rate that the store delivers, deadline in 1s`, err.Error())
		assert.Equal(t, Canceled, Classify(err))
		assert.Zero(t, AttemptsOf(err))

		took, err = within(time.Second, complete)
		require.NoError(t, err, "it goes ahead of the queue")
		assert.Less(t, took, time.Second/2)

		took, err = within(8*time.Second, put)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 8*time.Second, took, "it was let in")
		stop()
		wg.Wait()
		nothingLeft(t, r)
	})
}

// Nothing that the gate starts outlives the calls.
func TestGateLeavesNothingRunning(t *testing.T) {
	bubble(t, func(t *testing.T) { // a bubble fails when a goroutine is left at its end
		r := newRetryer(t, adaptive(2), seed(1))
		c := newClient(r, wall(5*time.Millisecond, constant(20), slowDown))
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, stop)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				for ctx.Err() == nil {
					_ = operations()[i%10].do(ctx, c)
				}
			})
		}
		wg.Wait()
		nothingLeft(t, r)
		assert.NotEmpty(t, r.Stats().Gates)
	})
}

// Real time and real parallelism, which the other tests have little of: a crowd at a gate that paces, with contexts that end at any moment.
func TestGateUnderACrowdInRealTimeLeavesNothingBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	o := adaptive(3)
	o.MaxInFlight = 8
	r := newRetryer(t, o)
	var n, sent atomic.Int64
	end := time.Now().Add(300 * time.Millisecond)
	var wg sync.WaitGroup
	for g := range 32 {
		wg.Go(func() {
			for i := 0; time.Now().Before(end); i++ {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+(g*7+i*3)%20)*time.Millisecond)
				c := &call{operation: "PutObject", scope: writes}
				release, err := r.GetAttemptToken(context.WithValue(ctx, callKey{}, c))
				if err == nil {
					sent.Add(1)
					if n.Add(1)%3 == 0 {
						err = &AttemptError{Class: Throttle, Err: errBoom}
					}
					if i%10 == 0 {
						c.end(r) // the SDK forgets about this one
					}
					assert.NoError(t, release(err))
				}
				cancel()
			}
		})
	}
	wg.Wait()
	assert.Positive(t, sent.Load())
	nothingLeft(t, r)
	goleak.VerifyNone(t, before)
}
