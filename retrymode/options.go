package retrymode

import (
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluice-go/sluice/config"
)

// The keys of this package.
var (
	KeyMode = config.Enum("s3.retry.mode", Adaptive, []Mode{Standard, Adaptive},
		"How failed S3 calls are retried: standard backs off call by call, adaptive also paces all calls at the rate that a throttling store delivers.")
	KeyMaxNumRetries = config.Int("s3.retry.max-num-retries", 3,
		"Retries of one S3 call after its first attempt, in both modes.", config.Range[int64](0, maxRetries))
	KeyBaseDelay = config.Duration("s3.retry.base-delay", 100*time.Millisecond,
		"Upper bound of the random wait before the first retry after an error that is no throttle; doubles with each further retry.",
		config.AtLeast(time.Millisecond))
	KeyThrottleBaseDelay = config.Duration("s3.retry.throttle.base-delay", time.Second,
		"Upper bound of the random wait before the first retry after a throttle (503, 429, SlowDown); doubles with each further retry. The gate holds a call for up to a tenth of it, then half of it, doubled with each further retry.",
		config.AtLeast(time.Millisecond))
	KeyMaxBackoff = config.Duration("s3.retry.max-backoff", 20*time.Second,
		"Upper bound of the random wait before any retry. Not shorter than the two base delays.", config.AtLeast(time.Millisecond))
	KeyLimiter = config.Enum("s3.retry.adaptive.limiter", LimiterGate, []Limiter{LimiterGate, LimiterSDK},
		"What paces attempts in adaptive mode: gate paces at the rate that the store delivers, sdk is the limiter of the AWS SDK, kept for comparison.")
	KeyScope = config.Enum("s3.retry.adaptive.scope", ScopeBucket, []Scope{ScopeBucket, ScopePrefix, ScopeEndpoint},
		"Which calls share a gate, and a circuit breaker: the reads and the writes of a bucket, of a key prefix in it, or all calls of the endpoint.")
	KeyPrefixDepth = config.Int("s3.retry.adaptive.prefix-depth", 1,
		"Path segments of a key that are its prefix, for scope prefix.", config.Range[int64](1, 16))
	KeyCircuitBreaker = config.Bool("s3.retry.circuit-breaker.enabled", false,
		"Whether calls end early, instead of using up the retries of each, where retries keep failing: by the retry quota of the AWS SDK, one for each s3.retry.adaptive.scope, in both modes.")
)

// SDKVersion is the version of the AWS SDK whose retry behaviour this package builds on; its defaults have changed between versions.
const SDKVersion = aws.SDKVersion

// maxRetries is far above any use; it catches typing errors and keeps retries + 1 an int everywhere.
const maxRetries = 1_000_000

// Keys returns the options that this package reads, for a [config.Registry].
func Keys() []config.Info {
	return []config.Info{
		KeyMode.Info(), KeyMaxNumRetries.Info(), KeyBaseDelay.Info(), KeyThrottleBaseDelay.Info(), KeyMaxBackoff.Info(),
		KeyLimiter.Info(), KeyScope.Info(), KeyPrefixDepth.Info(), KeyCircuitBreaker.Info(),
	}
}

// Options configure a [Retryer]. The zero value is not valid; start from [DefaultOptions].
type Options struct {
	Mode Mode
	// MaxRetries is the number of retries after the first attempt; 0 is legal and means one attempt.
	MaxRetries int
	// BaseDelay and ThrottleBaseDelay are the upper bounds of the first wait: after a throttle the second, after any other error the first.
	BaseDelay         time.Duration
	ThrottleBaseDelay time.Duration
	// MaxBackoff bounds every wait that the server did not ask for. Not shorter than either base.
	MaxBackoff time.Duration
	// Limiter paces attempts in adaptive mode. Scope says which of them share a gate, and in both modes which share a circuit breaker; PrefixDepth how many
	// path segments of a key are its prefix. The SDK's limiter has no scopes.
	Limiter     Limiter
	Scope       Scope
	PrefixDepth int
	// CircuitBreaker turns the SDK's retry quota on, one for each scope.
	CircuitBreaker bool
	// MaxInFlight is the number of attempts in flight, PriorityInFlight how many more are kept for the priority lane; the connection
	// pool should hold the sum. No key of this package sets them: the file system derives them from its own.
	MaxInFlight      int
	PriorityInFlight int
}

// DefaultOptions returns the defaults of the keys, 50 attempts in flight and 8 more for the priority lane.
func DefaultOptions() Options {
	return Options{
		Mode:              Adaptive,
		MaxRetries:        3,
		BaseDelay:         100 * time.Millisecond,
		ThrottleBaseDelay: time.Second,
		MaxBackoff:        20 * time.Second,
		Limiter:           LimiterGate,
		Scope:             ScopeBucket,
		PrefixDepth:       1,
		MaxInFlight:       50,
		PriorityInFlight:  8,
	}
}

// FromConfig reads the keys of this package; the error lists every problem between them.
func FromConfig(c *config.Config) (Options, error) {
	o := DefaultOptions()
	o.Mode = config.Get(c, KeyMode)
	o.MaxRetries = int(config.Get(c, KeyMaxNumRetries))
	o.BaseDelay = config.Get(c, KeyBaseDelay)
	o.ThrottleBaseDelay = config.Get(c, KeyThrottleBaseDelay)
	o.MaxBackoff = config.Get(c, KeyMaxBackoff)
	o.Limiter = config.Get(c, KeyLimiter)
	o.Scope = config.Get(c, KeyScope)
	o.PrefixDepth = int(config.Get(c, KeyPrefixDepth))
	o.CircuitBreaker = config.Get(c, KeyCircuitBreaker)
	return o, o.Validate()
}

// Validate returns every problem of o, joined, each named by the key it belongs to.
func (o Options) Validate() error {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }

	if o.Mode != Standard && o.Mode != Adaptive {
		problem("%s: unknown mode %d", KeyMode.Name(), int(o.Mode))
	}
	if o.Limiter != LimiterGate && o.Limiter != LimiterSDK {
		problem("%s: unknown limiter %d", KeyLimiter.Name(), int(o.Limiter))
	}
	if o.Scope < ScopeBucket || o.Scope > ScopeEndpoint {
		problem("%s: unknown scope %d", KeyScope.Name(), int(o.Scope))
	}
	if o.PrefixDepth < 1 {
		problem("%s: %d is less than 1", KeyPrefixDepth.Name(), o.PrefixDepth)
	}
	if o.MaxRetries < 0 || o.MaxRetries > maxRetries {
		problem("%s: %d is not between 0 and %d", KeyMaxNumRetries.Name(), o.MaxRetries, maxRetries)
	}
	for _, d := range []struct {
		key   string
		value time.Duration
	}{
		{KeyBaseDelay.Name(), o.BaseDelay},
		{KeyThrottleBaseDelay.Name(), o.ThrottleBaseDelay},
		{KeyMaxBackoff.Name(), o.MaxBackoff},
	} {
		switch {
		case d.value <= 0:
			problem("%s: %s is not positive", d.key, config.FormatDuration(d.value))
		case d.value > o.MaxBackoff && o.MaxBackoff > 0:
			problem("%s: %s is longer than %s (%s)", d.key, config.FormatDuration(d.value), KeyMaxBackoff.Name(), config.FormatDuration(o.MaxBackoff))
		}
	}
	if o.MaxInFlight < 1 {
		problem("attempts in flight: %d is less than 1", o.MaxInFlight)
	}
	if o.PriorityInFlight < 1 {
		problem("attempts in flight of the priority lane: %d is less than 1", o.PriorityInFlight)
	}
	return errors.Join(problems...)
}
