package job_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/e2e/job"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

// Cases that users of other S3 sinks have met, by their numbers in docs/public-bugs.md.

// A block was marked complete while one of its files was missing.
func TestBug_O23_AFileThatIsMissingBehindARecordIsNamed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_, err := w.run(t.Context(), nil)
		require.NoError(t, err)
		gone := w.parts()[1]
		require.True(t, w.store.DeleteObject("data", gone))
		r, _, err := job.Verify(t.Context(), w.config(nil), slog.New(slog.DiscardHandler), s3fs.WithDialContext(w.store.DialContext))
		require.NoError(t, err)
		require.False(t, r.Proven)
		require.Positive(t, r.Missing.Total)
		require.Equal(t, gone, r.MissingFiles.First[0].File)
	})
}

// Some rows were missing, and nothing said so: counters and verifier agree on what is there, whatever went wrong on the way.
func TestBug_O61_UnderRandomFaultsCountersAndVerifierAgreeThatNoRowIsMissing(t *testing.T) {
	for seed := range uint64(5) {
		bubble(t, func(t *testing.T, w *world) {
			extra := map[string]string{
				"datagen.fields.f.length": "65535", "datagen.number-of-rows": "250", "datagen.rows-per-second": "40", "checkpoint.interval": "1 s",
				"sink.rolling-policy.file-size": "6 mb", "checkpoint.tolerable-failures": "3", "restart-strategy.type": "fixed-delay",
				"restart-strategy.fixed-delay.attempts": "1000", "restart-strategy.fixed-delay.delay": "1 s",
			}
			var mu sync.Mutex
			dice := rand.New(rand.NewPCG(seed, 61))
			faults := []*s3test.Reply{
				s3test.SlowDown(), s3test.Status(500, "InternalError"), s3test.ResetBefore(), s3test.ResetAfter(), s3test.Status(403, "AccessDenied"),
				s3test.ErrorIn200("InternalError"), s3test.DropEffect200(),
			}
			remove := w.store.Control(s3test.Match{}, func(q s3test.Request) *s3test.Reply {
				mu.Lock()
				defer mu.Unlock()
				if dice.IntN(6) > 0 {
					return nil
				}
				f := dice.IntN(len(faults))
				if f >= 5 && q.Op != s3test.CompleteMultipartUpload {
					f = 0 // a store that lies about a part or a record is another one
				}
				return faults[f]
			})
			r, err := w.run(t.Context(), extra)
			require.NoError(t, err)
			require.Equal(t, []int64{250, 0, 0}, []int64{r.Rows, r.Staged, r.Lost})
			remove()
			w.requireProven(250, extra)
		})
	}
}

// At shutdown a sink waited for a full batch until it was killed: half a part must be durable at once.
func TestBug_O62_AStopWithHalfAPartBufferedIsImmediateAndLosesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		extra := map[string]string{"checkpoint.interval": "1 h", "sink.writers": "1"}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		r, err := w.run(ctx, extra)
		require.Equal(t, job.ErrStopped, err)
		require.Less(t, time.Since(start), 11*time.Second)
		require.InDelta(t, 1000, r.Staged, 20, "what is durable is stated")
		require.Zero(t, r.Lost)
		require.Empty(t, w.store.Keys("data"))
		_, err = w.run(t.Context(), extra)
		require.NoError(t, err)
		w.requireProven(3000, extra)
	})
}
