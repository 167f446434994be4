package retrymode

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// BenchmarkAttempt is what one attempt pays for its permission when the store refuses nothing: the gate, a mutex that is locked twice, and the SDK's
// own adaptive mode, which is off as well. "retryer" is all of GetAttemptToken and release, with what the middleware keeps of a call: the gate, the slot and the
// counts.
func BenchmarkAttempt(b *testing.B) {
	ctx := context.Background()
	for _, goroutines := range []int{1, 8, 32, 256} {
		same := func(attempt func() error) func() func() error { return func() func() error { return attempt } }
		run := func(name string, caller func() (attempt func() error)) {
			b.Run(fmt.Sprintf("%s/goroutines=%d", name, goroutines), func(b *testing.B) {
				b.ReportAllocs()
				if goroutines == 1 {
					attempt := caller()
					for b.Loop() {
						if err := attempt(); err != nil {
							b.Fatal(err)
						}
					}
					return
				}
				b.SetParallelism(max(goroutines/runtime.GOMAXPROCS(0), 1))
				b.RunParallel(func(pb *testing.PB) {
					attempt := caller()
					for pb.Next() {
						if err := attempt(); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}

		gated := benchRetryer(b, adaptive(3))
		a := attempt{operation: "PutObject", scope: writes, first: true}
		run("gate", same(func() error {
			p, err := gated.limiter.Wait(ctx, a)
			if err != nil {
				return err
			}
			if p.Stale() {
				return errBoom
			}
			p.Done(outcome{sent: true, served: true})
			return nil
		}))

		var mu sync.Mutex
		inFlight := 0
		run("mutex", same(func() error {
			mu.Lock()
			inFlight++
			mu.Unlock()
			mu.Lock()
			inFlight--
			mu.Unlock()
			return nil
		}))

		sdk := retry.NewAdaptiveMode(func(o *retry.AdaptiveModeOptions) {
			o.StandardOptions = append(o.StandardOptions, func(s *retry.StandardOptions) { s.RateLimiter = ratelimit.None })
		})
		run("sdk", same(func() error {
			release, err := sdk.GetAttemptToken(ctx)
			if err != nil {
				return err
			}
			return release(nil)
		}))

		for name, o := range map[string]Options{"retryer-adaptive": adaptive(3), "retryer-standard": standard(3)} {
			o.MaxInFlight = 1000
			r := benchRetryer(b, o)
			run(name, func() func() error {
				c := &call{operation: "PutObject", scope: writes}
				ctx := context.WithValue(ctx, callKey{}, c)
				return func() error {
					c.attempts = 0 // of a new call
					release, err := r.GetAttemptToken(ctx)
					if err != nil {
						return err
					}
					return release(nil)
				}
			})
		}
	}
}

// BenchmarkScope is what a call pays to find its gate.
func BenchmarkScope(b *testing.B) {
	o := DefaultOptions()
	o.Scope = ScopePrefix
	in := &s3.UploadPartInput{Bucket: bucket, Key: key}
	b.ReportAllocs()
	for b.Loop() {
		if o.scopeOf("UploadPart", in).bucket != "b" {
			b.Fatal("no scope")
		}
	}
}

func benchRetryer(b *testing.B, o Options) *Retryer {
	b.Helper()
	r, err := New(o)
	if err != nil {
		b.Fatal(err)
	}
	return r
}
