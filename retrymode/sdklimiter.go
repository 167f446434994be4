package retrymode

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

// pollInterval is how often the caller at the head of the queue asks the SDK's limiter again. The limiter's slowest rate is one token in 2 s, and
// above 1/pollInterval several tokens become free between two polls and are handed out in one go, so the interval costs no throughput.
const pollInterval = 10 * time.Millisecond

// sdkLimiter is the limiter of the SDK's adaptive mode. Its type is not exported, so it is driven through [retry.AdaptiveMode], of which only the
// attempt token is used.
//
// The SDK lets every caller poll, which starves some of them for tens of seconds and spins for ever under a virtual clock, because its
// waits may round down to nothing. Here callers queue in order and only the first one polls.
type sdkLimiter struct {
	mode *retry.AdaptiveMode
	turn chan struct{} // capacity 1; blocked senders are served in order of arrival
}

var _ limiter = (*sdkLimiter)(nil)

func newSDKLimiter() *sdkLimiter {
	return &sdkLimiter{
		turn: make(chan struct{}, 1),
		mode: retry.NewAdaptiveMode(func(o *retry.AdaptiveModeOptions) {
			o.FailOnNoAttemptTokens = true
			// The SDK's own checks go: a 503 without a code, or with a code of another vendor, is no throttle to them.
			o.Throttles = []retry.IsErrorThrottle{retry.IsErrorThrottleFunc(func(err error) aws.Ternary {
				return aws.BoolTernary(errors.Is(err, errThrottled))
			})}
			o.StandardOptions = append(o.StandardOptions, func(s *retry.StandardOptions) {
				s.RateLimiter = ratelimit.None // the breaker is kept elsewhere
			})
		}),
	}
}

// Wait takes one token, in order of arrival.
func (l *sdkLimiter) Wait(ctx context.Context, _ attempt) (permit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-l.turn }()

	release, err := l.mode.GetAttemptToken(ctx)
	if err == nil {
		return &sdkPermit{release: release}, nil
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if release, err = l.mode.GetAttemptToken(ctx); err == nil {
			return &sdkPermit{release: release}, nil
		}
	}
}

// Holds implements limiter.
func (l *sdkLimiter) Holds() bool { return false }

// sdkPermit is a token that was taken. The SDK's limiter knows no stale ones.
type sdkPermit struct {
	unlimited
	release func(error) error
}

// Done tells the SDK's limiter what it understands: throttled or not. An attempt that was not sent is kept from it, since it counts
// every report as an answer of the store; the token is spent all the same.
func (p *sdkPermit) Done(o outcome) {
	if !o.sent {
		return
	}
	var err error
	if o.class == Throttle {
		err = errThrottled
	}
	_ = p.release(err) // never fails: the quota behind it is ratelimit.None
}

// errThrottled stands for a throttle in front of the SDK's limiter.
var errThrottled = errors.New("throttled")
