package lab

import (
	"context"
	"sync"
	"testing"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

// The SDK's own retryers, as users of the SDK have them but for the retry quota, which is off: what the specimens of the simulator are held
// against.
const (
	onSDKStandard = "SDK, standard"
	onSDKAdaptive = "SDK, adaptive"
)

func sdkRetryer(policy string, retries int) aws.Retryer {
	own := func(o *retry.StandardOptions) {
		o.MaxAttempts = retries + 1
		o.RateLimiter = ratelimit.None
	}
	switch policy {
	case onSDKStandard:
		return retry.NewStandard(own)
	case onSDKAdaptive:
		roundUpSleeps()
		return retry.NewAdaptiveMode(func(o *retry.AdaptiveModeOptions) { o.StandardOptions = append(o.StandardOptions, own) })
	default:
		return nil
	}
}

// sdkSleep is the SDK's sleep between two looks at its limiter. It cuts waits to whole nanoseconds, after which the token that was waited for is
// short by a hair and the next wait is nothing: under a virtual clock, which stands still meanwhile, it looks again for ever.
//
//go:linkname sdkSleep github.com/aws/aws-sdk-go-v2/internal/sdk.SleepWithContext
var sdkSleep func(context.Context, time.Duration) error

// roundUpSleeps makes the SDK sleep for a microsecond at least.
var roundUpSleeps = sync.OnceFunc(func() {
	sleep := sdkSleep
	sdkSleep = func(ctx context.Context, d time.Duration) error {
		return sleep(ctx, max(d, time.Microsecond))
	}
})

func TestTheSpecimensDoWhatTheSDKDoes(t *testing.T) {
	adaptive := map[string]NewPolicy{onSDKAdaptive: SDKGo}
	for _, a := range []agreement{
		{s: SixteenThenOne(10 * time.Millisecond), retries: 3, seeds: 5, within: tolerance{0.5, 0, 0, 0.4}, policies: adaptive},
		{s: CallDeadline(), retries: 3, seeds: 5, within: tolerance{0.5, 12, 4000, 0.2}, policies: adaptive},
	} {
		t.Log(a.check(t, realRunner(t)))
	}
}
