package retrymode

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// The bound is min(base x 2^(n-1), limit), also where 2^(n-1) or the product is far beyond an int64. The reference is exact arithmetic.
func TestCeilingAgreesWithExactArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := time.Duration(rapid.Int64Min(1).Draw(t, "limit"))
		base := time.Duration(rapid.Int64Range(1, int64(limit)).Draw(t, "base"))
		n := rapid.IntRange(0, 3000).Draw(t, "n")

		exact := new(big.Int).Lsh(big.NewInt(int64(base)), uint(max(n, 1)-1))
		if exact.Cmp(big.NewInt(int64(limit))) > 0 {
			exact.SetInt64(int64(limit))
		}
		assert.Equal(t, exact.Int64(), int64(ceiling(base, n, limit)))
	})
}

func TestDelayStaysBetweenTheHintAndTheBound(t *testing.T) {
	b := backoff{base: 100 * time.Millisecond, throttle: time.Second, max: 20 * time.Second, random: rand.Float64}
	for _, class := range []Class{Throttle, Transient} {
		base := map[Class]time.Duration{Throttle: time.Second, Transient: 100 * time.Millisecond}[class]
		for n := 1; n < 40; n++ {
			for _, hint := range []time.Duration{0, time.Millisecond, 3 * time.Second, maxHint} {
				for range 50 {
					d := b.delay(n, class, hint)
					assert.GreaterOrEqual(t, d, hint)
					assert.LessOrEqual(t, d, max(20*time.Second, hint+base))
				}
			}
		}
	}
}

func TestSeededRetryersDrawTheSameWaits(t *testing.T) {
	waits := func(s uint64) string {
		r := newRetryer(t, standard(3), seed(s))
		var all []time.Duration
		for n := 1; n < 20; n++ {
			d, err := r.RetryDelay(n, errBoom)
			assert.NoError(t, err)
			all = append(all, d)
		}
		return fmt.Sprint(all)
	}
	assert.Equal(t, waits(1), waits(1))
	assert.NotEqual(t, waits(1), waits(2))
}
