package datagen_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// grant is a moment at which rows were let through.
type grant struct {
	at   time.Duration
	rows int64
}

// pace lets writers take rows for the given time and returns every grant in order of time.
func pace(t *testing.T, p *datagen.Pacer, writers, most int, length time.Duration) []grant {
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	start := time.Now()
	var mu sync.Mutex
	var grants []grant
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for {
				n, err := p.Wait(ctx, most)
				if err != nil {
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					return
				}
				mu.Lock()
				grants = append(grants, grant{time.Since(start), int64(n)})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return grants
}

func TestPacer_KeepsTheRateToOnePercentWithoutBursts(t *testing.T) {
	for name, c := range map[string]struct {
		rate          int64
		writers, most int
	}{
		"Flink's default":       {10_000, 16, 100},
		"slow, many writers":    {100, 16, 100},
		"one row at a time":     {1000, 1, 1},
		"fast, large batches":   {3_000_000, 4, 1 << 20},
		"rate below the bursts": {19, 3, 50},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const length = time.Minute
				grants := pace(t, datagen.NewPacer(c.rate), c.writers, c.most, length)

				var total int64
				for _, g := range grants {
					total += g.rows
				}
				want := float64(c.rate) * length.Seconds()
				assert.InDelta(t, want, float64(total), want/100)

				// No stretch of time holds more than its share and a tenth of a second's more
				// (or one row). Both ends of the worst stretch are grants.
				burst := max(float64(c.rate)/10, 1)
				var before int64 // rows before this grant
				lowest := 0.0    // of rows before - rate*time, over all grants so far
				for _, g := range grants {
					lowest = min(lowest, float64(before)-float64(c.rate)*g.at.Seconds())
					before += g.rows
					level := float64(before) - float64(c.rate)*g.at.Seconds()
					require.LessOrEqual(t, level-lowest, burst+1e-3, "at %v", g.at)
				}
			})
		})
	}
}

func TestPacer_TimeNobodyAskedIsNotMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := datagen.NewPacer(1000)
		time.Sleep(time.Hour)
		grants := pace(t, p, 1, 10, 10*time.Second)
		var total int64
		for _, g := range grants {
			total += g.rows
		}
		assert.InDelta(t, 10_000, total, 100)
	})
}

func TestPacer_ZeroIsUnlimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, start := datagen.NewPacer(0), time.Now()
		for range 1000 {
			n, err := p.Wait(t.Context(), 12345)
			require.NoError(t, err)
			require.Equal(t, 12345, n)
		}
		assert.Zero(t, time.Since(start))
	})
}

func TestPacer_GrantsAtLeastOneRowAndNeverMoreThanAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []int64{0, 1, 10_000, math.MaxInt64} {
			for _, most := range []int{-1, 0, 1, 7, math.MaxInt32} {
				n, err := datagen.NewPacer(rate).Wait(t.Context(), most)
				require.NoError(t, err)
				require.GreaterOrEqual(t, n, 1)
				require.LessOrEqual(t, n, max(most, 1))
			}
		}
	})
}

func TestPacer_CancelledWaitTakesNothingAndNamesTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, start := datagen.NewPacer(1), time.Now()
		_, err := p.Wait(t.Context(), 1) // the first row is free
		require.NoError(t, err)

		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(300*time.Millisecond, func() { cancel(stop) })
		n, err := p.Wait(ctx, 1)
		assert.Zero(t, n)
		assert.ErrorIs(t, err, stop)
		assert.Equal(t, 300*time.Millisecond, time.Since(start))

		_, err = p.Wait(ctx, 1) // already cancelled
		assert.ErrorIs(t, err, stop)

		_, err = p.Wait(t.Context(), 1)
		require.NoError(t, err)
		assert.Equal(t, time.Second, time.Since(start))
	})
}
