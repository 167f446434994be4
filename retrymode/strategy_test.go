package retrymode

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The mode decides what stands in front of an attempt, and nothing else does.
func TestStrategyOfEachMode(t *testing.T) {
	for _, tt := range []struct {
		pairs []string
		mode  Mode
		want  limiter
	}{
		{nil, Adaptive, &gateLimiter{}},
		{[]string{"s3.retry.mode=adaptive"}, Adaptive, &gateLimiter{}},
		{[]string{"s3.retry.mode=ADAPTIVE", "s3.retry.adaptive.limiter=GATE"}, Adaptive, &gateLimiter{}},
		{[]string{"s3.retry.mode=adaptive", "s3.retry.adaptive.limiter=sdk"}, Adaptive, &sdkLimiter{}},
		{[]string{"s3.retry.mode=Adaptive", "s3.retry.adaptive.limiter=SDK"}, Adaptive, &sdkLimiter{}},
		{[]string{"s3.retry.mode=standard"}, Standard, unlimited{}},
		{[]string{"s3.retry.mode=STANDARD", "s3.retry.adaptive.limiter=gate"}, Standard, unlimited{}},
	} {
		t.Run(fmt.Sprint(tt.pairs), func(t *testing.T) {
			r := newRetryer(t, fromPairs(t, tt.pairs...))
			assert.IsType(t, tt.want, r.limiter)
			assert.Equal(t, tt.mode, r.Stats().Mode)
			_, gated := tt.want.(*gateLimiter)
			assert.Equal(t, gated, r.gates != nil)
			assert.Equal(t, gated, r.limiter.Holds())
			assert.Nil(t, r.breakers, "only when asked for")
		})
	}
}

func fromPairs(t *testing.T, pairs ...string) Options {
	t.Helper()
	c, err := load(t, pairs...)
	require.NoError(t, err)
	o, err := FromConfig(c)
	require.NoError(t, err)
	return o
}

// From the text of a configuration to the requests on the wire: a store that answers 503 is asked retries + 1 times and then the call fails; one that
// stops is asked until it does.
func TestConfiguredRetriesReachTheWire(t *testing.T) {
	for _, mode := range []string{"standard", "adaptive", "STANDARD", "Adaptive"} {
		for _, limiter := range []string{"gate", "sdk"} {
			for _, retries := range []int{0, 1, 5} {
				t.Run(fmt.Sprintf("%s %s %d", mode, limiter, retries), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						o := fromPairs(t, "s3.retry.mode="+mode, "s3.retry.adaptive.limiter="+limiter, fmt.Sprintf("s3.retry.max-num-retries=%d", retries))
						w := always(503, xmlError("SlowDown"))
						err := put(t.Context(), newClient(newRetryer(t, o, seed(1)), w))
						require.Error(t, err)
						assert.Equal(t, retries+1, w.attempts())
						assert.Equal(t, retries+1, AttemptsOf(err))

						w = untilStopped(retries, 503, xmlError("SlowDown"))
						require.NoError(t, put(t.Context(), newClient(newRetryer(t, o, seed(1)), w)))
						assert.Equal(t, retries+1, w.attempts())
					})
				})
			}
		}
	}
}

// The breaker is a matter of its key alone, in both modes.
func TestConfiguredBreakerIsEffectiveInBothModes(t *testing.T) {
	for _, mode := range []string{"standard", "adaptive"} {
		for _, on := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %t", mode, on), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					o := fromPairs(t, "s3.retry.mode="+mode, "s3.retry.max-num-retries=3", fmt.Sprintf("s3.retry.circuit-breaker.enabled=%t", on))
					r := newRetryer(t, o, seed(1))
					w := always(500, xmlError("InternalError"))
					c := newClient(r, w)
					ended := 0
					for range 20 { // 60 retries; the quota is good for 35
						err := put(t.Context(), c)
						require.Error(t, err)
						if AttemptsOf(err) < 4 {
							ended++
						}
					}
					assert.Equal(t, on, ended > 0)
					if !on {
						assert.Equal(t, 80, w.attempts())
					}
				})
			})
		}
	}
}

func TestLimiterAndScopeAreReadInAnyCaseAndNothingElse(t *testing.T) {
	for text, want := range map[string]Scope{"bucket": ScopeBucket, "BUCKET": ScopeBucket, "Prefix": ScopePrefix, "endpoint": ScopeEndpoint} {
		assert.Equal(t, want, fromPairs(t, "s3.retry.adaptive.scope="+text).Scope)
	}
	for text, want := range map[string]Limiter{"gate": LimiterGate, "Gate": LimiterGate, "SDK": LimiterSDK} {
		assert.Equal(t, want, fromPairs(t, "s3.retry.adaptive.limiter="+text).Limiter)
	}
	for _, pair := range []string{"scope=", "scope=host", "limiter=none", "limiter=java", "prefix-depth=0", "prefix-depth=17", "prefix-depth=x"} {
		_, err := load(t, "s3.retry.adaptive."+pair)
		require.Error(t, err, pair)
	}
	assert.Equal(t, "Scope(9)", Scope(9).String())
	assert.Equal(t, "Limiter(9)", Limiter(9).String())
}
