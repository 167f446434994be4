package retrymode

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/config"
)

func load(t *testing.T, pairs ...string) (*config.Config, error) {
	t.Helper()
	reg, err := config.NewRegistry(Keys())
	require.NoError(t, err)
	return config.Load(reg, config.Pairs("-D", pairs))
}

func TestConfigurationWithoutKeysIsTheDefault(t *testing.T) {
	c, err := load(t)
	require.NoError(t, err)
	o, err := FromConfig(c)
	require.NoError(t, err)
	assert.Equal(t, DefaultOptions(), o)
	assert.Equal(t, Options{
		Mode: Adaptive, MaxRetries: 3, BaseDelay: 100 * time.Millisecond, ThrottleBaseDelay: time.Second, MaxBackoff: 20 * time.Second,
		Limiter: LimiterGate, Scope: ScopeBucket, PrefixDepth: 1, CircuitBreaker: false, MaxInFlight: 50, PriorityInFlight: 8,
	}, o)
}

func TestEveryKeyReachesItsOption(t *testing.T) {
	c, err := load(t, "s3.retry.mode=Standard", "s3.retry.max-num-retries=0", "s3.retry.base-delay=50 ms", "s3.retry.throttle.base-delay=2 s",
		"s3.retry.max-backoff=1 min", "s3.retry.circuit-breaker.enabled=true", "s3.retry.adaptive.limiter=SDK",
		"s3.retry.adaptive.scope=prefix", "s3.retry.adaptive.prefix-depth=3")
	require.NoError(t, err)
	o, err := FromConfig(c)
	require.NoError(t, err)
	assert.Equal(t, Options{
		Mode: Standard, MaxRetries: 0, BaseDelay: 50 * time.Millisecond, ThrottleBaseDelay: 2 * time.Second, MaxBackoff: time.Minute,
		Limiter: LimiterSDK, Scope: ScopePrefix, PrefixDepth: 3, CircuitBreaker: true, MaxInFlight: 50, PriorityInFlight: 8,
	}, o)
}

func TestModeIsReadInAnyCase(t *testing.T) {
	for text, want := range map[string]Mode{
		"standard": Standard, "STANDARD": Standard, "Standard": Standard, "adaptive": Adaptive, "ADAPTIVE": Adaptive,
	} {
		c, err := load(t, "s3.retry.mode="+text)
		require.NoError(t, err, text)
		o, err := FromConfig(c)
		require.NoError(t, err, text)
		assert.Equal(t, want, o.Mode, text)

		m, err := ParseMode(text)
		require.NoError(t, err)
		assert.Equal(t, want, m)
	}
	for _, text := range []string{"", "legacy", "none", "adaptiv"} {
		_, err := ParseMode(text)
		require.Error(t, err, text)
		_, err = load(t, "s3.retry.mode="+text)
		require.Error(t, err, text)
	}
}

func TestModeIsWrittenAsItIsRead(t *testing.T) {
	text, err := json.Marshal([]Mode{Standard, Adaptive})
	require.NoError(t, err)
	assert.JSONEq(t, `["standard", "adaptive"]`, string(text))
	var back []Mode
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, []Mode{Standard, Adaptive}, back)
	_, err = json.Marshal(Mode(0))
	require.Error(t, err)
	require.Error(t, json.Unmarshal([]byte(`["legacy"]`), &back))
	assert.Equal(t, "Mode(7)", Mode(7).String())
}

func TestEveryProblemIsReportedAtOnce(t *testing.T) {
	err := Options{MaxRetries: -1, BaseDelay: time.Minute, ThrottleBaseDelay: -time.Second, MaxBackoff: time.Second, PriorityInFlight: -3}.Validate()
	require.EqualError(t, err, `s3.retry.mode: unknown mode 0
s3.retry.adaptive.limiter: unknown limiter 0
s3.retry.adaptive.scope: unknown scope 0
s3.retry.adaptive.prefix-depth: 0 is less than 1
s3.retry.max-num-retries: -1 is not between 0 and 1000000
s3.retry.base-delay: 1 min is longer than s3.retry.max-backoff (1 s)
s3.retry.throttle.base-delay: -1 s is not positive
attempts in flight: 0 is less than 1
attempts in flight of the priority lane: -3 is less than 1`)

	_, err = New(Options{})
	require.ErrorContains(t, err, "s3.retry.max-backoff: 0 ms is not positive")

	c, err := load(t, "s3.retry.max-backoff=500 ms")
	require.NoError(t, err)
	_, err = FromConfig(c)
	require.EqualError(t, err, "s3.retry.throttle.base-delay: 1 s is longer than s3.retry.max-backoff (500 ms)")

	_, err = load(t, "s3.retry.max-num-retries=-1", "s3.retry.base-delay=0", "s3.retry.max-num-retrys=3")
	require.ErrorContains(t, err, "s3.retry.max-num-retries")
	require.ErrorContains(t, err, "s3.retry.base-delay")
	require.ErrorContains(t, err, "s3.retry.max-num-retrys")
}
