package job_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/job"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

// world is a store and the settings of a job on it.
type world struct {
	t     *testing.T
	store *s3test.Server
	keys  map[string]string
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, f func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		t.Setenv("AWS_CA_BUNDLE", "") // a bundle is read anew by each client
		store := s3test.New(s3test.Options{Buckets: []string{"data"}})
		defer store.Close()
		f(t, &world{t: t, store: store, keys: map[string]string{
			"s3.endpoint": store.URL(), "s3.path-style-access": "true", "s3.region": "us-east-1",
			"s3.access-key": "key", "s3.secret-key": "secret",
			"sink.path": "s3://data/out", "sink.writers": "3", "checkpoint.dir": t.TempDir(), "checkpoint.interval": "5 s",
			"datagen.number-of-rows": "3000", "datagen.rows-per-second": "100", "datagen.fields.f.length": "99",
		}})
	})
}

func (w *world) config(extra map[string]string) *config.Config {
	reg, err := job.Registry()
	require.NoError(w.t, err)
	keys := maps.Clone(w.keys)
	maps.Copy(keys, extra)
	cfg, err := config.Load(reg, config.Map("test", keys))
	require.NoError(w.t, err)
	return cfg
}

func (w *world) run(ctx context.Context, extra map[string]string) (job.Report, error) {
	j, err := job.New(ctx, w.config(extra), slog.New(slog.DiscardHandler), s3fs.WithDialContext(w.store.DialContext))
	require.NoError(w.t, err)
	r, err := j.Run(ctx)
	require.NoError(w.t, j.Close(context.WithoutCancel(ctx)))
	return r, err
}

// requireProven reads everything back.
func (w *world) requireProven(rows int64, extra map[string]string) {
	w.t.Helper()
	r, _, err := job.Verify(w.t.Context(), w.config(extra), slog.New(slog.DiscardHandler), s3fs.WithDialContext(w.store.DialContext))
	require.NoError(w.t, err)
	require.Equal(w.t, fmt.Sprintf("PROVEN: %d of %d rows, each exactly once", rows, rows), r.Verdict())
	require.NotContains(w.t, w.store.Trace(), "AbortMultipartUpload")
}

func TestJob_ABoundedSourceIsPublishedWholeAndAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		start := time.Now()
		r, err := w.run(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, []int64{3000, 300_000, 0, 0}, []int64{r.Rows, r.Bytes, r.Staged, r.Lost})
		// 3,000 rows at 100 a second, and no wait for the next interval at the end.
		require.InDelta(t, 30, time.Since(start).Seconds(), 0.5)
		require.GreaterOrEqual(t, r.Checkpoints, int64(6))
		require.Equal(t, r.Totals.Attempts, r.Totals.Calls)
		w.requireProven(3000, nil)
	})
}

func TestJob_AStopTakesAFinalCheckpointAndTheNextRunGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var published int64
		for i := range 4 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Duration(i)*time.Second+3300*time.Millisecond, cancel)
			r, err := w.run(ctx, nil)
			require.Equal(t, job.ErrStopped, err)
			require.Zero(t, r.Lost, "the final checkpoint holds every row")
			require.Greater(t, r.Staged+r.Rows, published, "the run went on where the last one stopped")
			published = r.Staged + r.Rows
		}
		require.Empty(t, w.store.Keys("data"), "nothing was published: every file is still open")
		r, err := w.run(t.Context(), nil)
		require.NoError(t, err)
		require.EqualValues(t, 3, r.Files, "one file for each writer over five runs")
		w.requireProven(3000, nil)
	})
}

// Every writer waits for memory in the middle of a step while the store hangs: the final checkpoint does not need it.
func TestJob_AStopDoesNotWaitForAStoreThatHangs(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		remove := w.store.Control(s3test.Match{Op: s3test.UploadPart}, s3test.Always(s3test.Delay(time.Hour)))
		extra := map[string]string{
			"datagen.rows-per-second": "0", "datagen.fields.f.length": "65535", "datagen.number-of-rows": "400",
			"sink.memory.budget": "16 mb", "checkpoint.interval": "1 h", "s3.socket.timeout": "2 h", "s3.call.timeout": "3 h",
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, cancel)
		start := time.Now()
		r, err := w.run(ctx, extra)
		require.Equal(t, job.ErrStopped, err)
		require.Zero(t, r.Lost)
		require.Positive(t, r.Staged)
		require.Less(t, time.Since(start), 15*time.Second)
		remove()
		_, err = w.run(t.Context(), extra)
		require.NoError(t, err)
		w.requireProven(400, extra)
	})
}

func TestJob_AFailureRestartsFromTheLastCheckpointAsTheStrategySays(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		extra := map[string]string{
			"datagen.fields.f.length": "65535", "checkpoint.interval": "2 s", "datagen.number-of-rows": "320",
			"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "3", "restart-strategy.fixed-delay.delay": "10 s",
		}
		for _, n := range []int{2, 4} {
			w.store.Control(s3test.Match{Op: s3test.UploadPart, Nth: n}, s3test.Always(s3test.Status(403, "AccessDenied")))
		}
		r, err := w.run(t.Context(), extra)
		require.NoError(t, err)
		require.Equal(t, 2, r.Restarts)
		w.requireProven(320, extra)
	})
}

func TestJob_WithoutRestartsTheFirstFailureEndsIt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		extra := map[string]string{"datagen.fields.f.length": "65535", "datagen.number-of-rows": "320"}
		remove := w.store.Control(s3test.Match{Op: s3test.UploadPart, Nth: 2}, s3test.Always(s3test.Status(403, "AccessDenied")))
		_, err := w.run(t.Context(), extra)
		require.ErrorIs(t, err, s3fs.ErrAccessDenied)
		remove()
		_, err = w.run(t.Context(), extra) // goes on from the last checkpoint, or from the beginning
		require.NoError(t, err)
		w.requireProven(320, extra)
	})
}

func TestJob_AFailedCommitIsToleratedAndMadeUpFor(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		extra := map[string]string{"sink.rolling-policy.on-checkpoint": "true", "checkpoint.tolerable-failures": "2"}
		w.store.Control(s3test.Match{Op: s3test.PutObject, KeyPrefix: "out/part", First: 2}, s3test.Always(s3test.Status(403, "AccessDenied")))
		r, err := w.run(t.Context(), extra)
		require.NoError(t, err)
		require.Zero(t, r.Restarts)
		w.requireProven(3000, extra)
	})
}

func TestJob_AThrottlingStoreInBothModes(t *testing.T) {
	for _, mode := range []string{"standard", "Adaptive"} {
		t.Run(mode, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				extra := map[string]string{
					"s3.retry.mode": mode, "s3.retry.max-num-retries": "10",
					"datagen.fields.f.length": "65535", "datagen.number-of-rows": "320", "datagen.rows-per-second": "0",
				}
				w.store.Control(s3test.Match{}, s3test.ThrottleRate(3, time.Second))
				r, err := w.run(t.Context(), extra)
				require.NoError(t, err)
				require.Positive(t, r.Totals.Throttles)
				require.Equal(t, r.Totals.Attempts, r.Totals.Calls+r.Totals.Retries)
				w.requireProven(320, extra)
			})
		})
	}
}

func TestJob_ShardsWriteOneDataSetAndVerifyReadsAllOfThem(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		errs := make(chan error)
		for i := range 3 {
			go func() {
				_, err := w.run(t.Context(), map[string]string{"job.shard": fmt.Sprintf("%d/3", i)})
				errs <- err
			}()
		}
		for range 3 {
			require.NoError(t, <-errs)
		}
		w.requireProven(3000, nil)
	})
}

func TestJob_ASecondRunBesideALiveOneIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		done := make(chan error)
		go func() {
			_, err := w.run(t.Context(), nil)
			done <- err
		}()
		time.Sleep(7 * time.Second)
		keys := w.store.Keys("data")
		_, err := w.run(t.Context(), nil)
		require.ErrorContains(t, err, "epoch taken by a live run")
		require.Equal(t, keys, w.store.Keys("data"))
		require.NoError(t, <-done)
		w.requireProven(3000, nil)
	})
}

func TestNew_AllProblemsOfTheConfigurationAreReportedTogetherBeforeAnyCall(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		extra := map[string]string{
			"sink.writers": "100", "sink.memory.budget": "64 mb", "datagen.fields.f.length": "20", "datagen.fields.g.length": "20",
			"s3.retry.base-delay": "1 min",
		}
		delete(w.keys, "checkpoint.dir")
		_, err := job.New(t.Context(), w.config(extra), slog.New(slog.DiscardHandler), s3fs.WithDialContext(w.store.DialContext))
		_, ok := errors.AsType[*job.ConfigError](err)
		require.True(t, ok, "%v", err)
		for _, text := range []string{"sink.memory.budget", "datagen.fields: 2 fields", "checkpoint.dir is required", "s3.retry.base-delay"} {
			require.ErrorContains(t, err, text)
		}
		require.Empty(t, w.store.Trace())
	})
}

func TestJob_AStopThatCannotFinishInTimeSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		extra := map[string]string{"sink.rolling-policy.on-checkpoint": "true", "job.stop-timeout": "3 s", "checkpoint.interval": "1 h"}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, cancel)
		remove := w.store.Control(s3test.Match{Op: s3test.PutObject}, s3test.Always(s3test.Delay(time.Hour)))
		start := time.Now()
		_, err := w.run(ctx, extra)
		require.NotErrorIs(t, err, job.ErrStopped)
		require.ErrorContains(t, err, "job.stop-timeout")
		require.Less(t, time.Since(start), 30*time.Second)
		remove()
		_, err = w.run(t.Context(), extra)
		require.NoError(t, err)
		w.requireProven(3000, extra)
	})
}

func TestJob_AnOldUploadIsWarnedAbout(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var log bytes.Buffer
		j, err := job.New(t.Context(), w.config(map[string]string{
			"datagen.fields.f.length": "65535", "datagen.number-of-rows": "100", "datagen.rows-per-second": "1", "sink.writers": "1",
			"sink.upload.warn-age": "1 min", "checkpoint.interval": "10 s",
		}), slog.New(slog.NewTextHandler(&log, nil)), s3fs.WithDialContext(w.store.DialContext))
		require.NoError(t, err)
		_, err = j.Run(t.Context()) // 100 s; the upload is created with the first full part, after 80 s
		require.NoError(t, err)
		require.NotContains(t, log.String(), "an upload is old")
		require.NoError(t, j.Close(t.Context()))
	})
	bubble(t, func(t *testing.T, w *world) {
		var log bytes.Buffer
		j, err := job.New(t.Context(), w.config(map[string]string{
			"datagen.fields.f.length": "65535", "datagen.number-of-rows": "200", "datagen.rows-per-second": "1", "sink.writers": "1",
			"sink.upload.warn-age": "1 min", "checkpoint.interval": "10 s",
		}), slog.New(slog.NewTextHandler(&log, nil)), s3fs.WithDialContext(w.store.DialContext))
		require.NoError(t, err)
		_, err = j.Run(t.Context()) // 200 s: at its end the upload is two minutes old
		require.NoError(t, err)
		require.Contains(t, log.String(), "an upload is old")
		require.NoError(t, j.Close(t.Context()))
	})
}
