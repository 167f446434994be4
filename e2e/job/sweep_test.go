package job_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/e2e/job"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

func (w *world) sweep(o job.SweepOptions, extra map[string]string) sink.SweepReport {
	w.t.Helper()
	r, err := job.Sweep(w.t.Context(), w.config(extra), o, slog.New(slog.DiscardHandler), s3fs.WithDialContext(w.store.DialContext))
	require.NoError(w.t, err)
	return r
}

// large makes files of several parts: 64 KiB rows, 5 MiB parts.
var large = map[string]string{
	"datagen.fields.f.length": "65535", "datagen.rows-per-second": "40", "datagen.number-of-rows": "420", "checkpoint.interval": "2 s",
	"sink.rolling-policy.file-size": "12 mb",
}

// A sweep without any guard runs every 1.7 s beside a job whose writers fail now and then, so that runs die, their uploads are left
// behind, and others go on: nothing that the job needs may go.
func TestSweep_BesideALiveJobThatFailsAndRestarts_NoRowIsLostAndNothingStays(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		extra := map[string]string{"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "9", "restart-strategy.fixed-delay.delay": "3 s"}
		for k, v := range large {
			extra[k] = v
		}
		for _, n := range []int{2, 5} {
			w.store.Control(s3test.Match{Op: s3test.UploadPart, Nth: n}, s3test.Always(s3test.Status(403, "AccessDenied")))
		}
		// The answer to a Create is lost: the client asks again, and one of the two uploads is nobody's.
		w.store.Control(s3test.Match{Op: s3test.CreateMultipartUpload, Nth: 3}, s3test.Always(s3test.ResetAfter()))
		type ended struct {
			r   job.Report
			err error
		}
		done := make(chan ended)
		go func() {
			r, err := w.run(t.Context(), extra)
			done <- ended{r, err}
		}()
		aborted, live := 0, 0
		tick := time.NewTicker(1700 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case e := <-done:
				require.NoError(t, e.err)
				require.Equal(t, 2, e.r.Restarts)
				aborted += w.sweep(job.SweepOptions{}, extra).Aborted.Uploads
				require.Empty(t, w.store.Uploads("data"))
				r, _, err := job.Verify(t.Context(), w.config(extra), slog.New(slog.DiscardHandler), s3fs.WithDialContext(w.store.DialContext))
				require.NoError(t, err)
				require.Equal(t, "PROVEN: 420 of 420 rows, each exactly once", r.Verdict())
				require.Positive(t, aborted)
				require.Positive(t, live)
				return
			case <-tick.C:
				r := w.sweep(job.SweepOptions{}, extra)
				aborted += r.Aborted.Uploads
				live += r.Kept.Uploads
			}
		}
	})
}

func TestSweep_RefusesAConfigurationWithoutItsCheckpoints(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_, err := job.Sweep(t.Context(), w.config(nil), job.SweepOptions{}, slog.New(slog.DiscardHandler), s3fs.WithDialContext(w.store.DialContext))
		require.ErrorIs(t, err, sink.ErrSweepRefused)
		require.ErrorContains(t, err, "no run has ever claimed")
		delete(w.keys, "checkpoint.dir")
		_, err = job.Sweep(t.Context(), w.config(nil), job.SweepOptions{}, slog.New(slog.DiscardHandler), s3fs.WithDialContext(w.store.DialContext))
		require.ErrorContains(t, err, "checkpoint.dir is required")
		var log strings.Builder
		r, err := job.Sweep(t.Context(), w.config(nil), job.SweepOptions{WithoutCheckpoints: true, OlderThan: time.Hour},
			slog.New(slog.NewTextHandler(&log, nil)), s3fs.WithDialContext(w.store.DialContext))
		require.NoError(t, err)
		require.Empty(t, r.Uploads)
		require.Contains(t, log.String(), "it is not known whether a run is live")
	})
}

// Shards have checkpoints of their own: the sweep of one knows nothing about the others and leaves them alone.
func TestSweep_OfOneShardLeavesTheOthersAlone(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for i := range 2 {
			extra := map[string]string{"job.shard": fmt.Sprintf("%d/2", i), "checkpoint.interval": "1 h", "sink.writers": "1"}
			for k, v := range large {
				if _, set := extra[k]; !set {
					extra[k] = v
				}
			}
			for range 2 { // each dies without a checkpoint
				w.store.Control(s3test.Match{Op: s3test.UploadPart, Nth: 2}, s3test.Always(s3test.Status(403, "AccessDenied")))
				_, err := w.run(t.Context(), extra)
				require.ErrorIs(t, err, s3fs.ErrAccessDenied)
			}
		}
		before := len(w.store.Uploads("data"))
		r := w.sweep(job.SweepOptions{}, map[string]string{"job.shard": "1/2"})
		require.Positive(t, r.Aborted.Uploads)
		require.Len(t, w.store.Uploads("data"), before-r.Aborted.Uploads)
		for _, u := range w.store.Uploads("data") {
			require.Contains(t, u.Key, "_0-of-2_")
		}
		require.NotZero(t, len(w.store.Uploads("data")))
	})
}
