package job_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/job"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

// inBucket moves the checkpoints into the bucket of the data.
func inBucket(extra map[string]string) map[string]string {
	keys := map[string]string{"checkpoint.dir": "s3://data/checkpoints"}
	for k, v := range extra {
		keys[k] = v
	}
	return keys
}

// checkpointKeys returns what the checkpoint store holds.
func (w *world) checkpointKeys() (keys []string) {
	for _, key := range w.store.Keys("data") {
		if strings.HasPrefix(key, "checkpoints/") {
			keys = append(keys, key)
		}
	}
	return keys
}

func TestJob_WithCheckpointsInABucket_NeedsNoDirectory(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		extra := inBucket(nil)
		for i := range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Duration(i)*time.Second+7300*time.Millisecond, cancel)
			r, err := w.run(ctx, extra)
			require.Equal(t, job.ErrStopped, err)
			require.Zero(t, r.Lost)
		}
		r, err := w.run(t.Context(), extra)
		require.NoError(t, err)
		require.EqualValues(t, 3000, r.Rows)
		w.requireProven(3000, extra)
		var kept []string // of the runs before nothing is left
		for _, key := range w.checkpointKeys() {
			if !strings.Contains(key, "/blobs/") {
				kept = append(kept, strings.TrimPrefix(key, "checkpoints/job/0-of-1/"))
				continue
			}
			require.Regexp(t, `-4-\d+\.blob$`, key, "a blob of another epoch than the last")
		}
		require.Equal(t, []string{"chk-00000000000000000008.json", "epoch-00000000000000000004.json"}, kept)
	})
}

// From some request on the store is gone, for the data and for the checkpoints, before it does what it is asked or right after. A second
// run finishes the job.
func TestJob_WithCheckpointsInABucket_SurvivesACrashAtAnyRequest(t *testing.T) {
	extra := inBucket(map[string]string{
		"datagen.number-of-rows": "400", "sink.writers": "2", "sink.rolling-policy.file-size": "9 kb", "checkpoint.interval": "1 s",
		"checkpoint.timeout": "2 min", "s3.retry.mode": "standard", "s3.retry.max-num-retries": "0",
	})
	for first, last := range map[int]*s3test.Reply{2: s3test.ResetBefore(), 4: s3test.ResetAfter()} { // the look at the bucket comes before
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			for at, ended := first, false; !ended; at += 7 {
				bubble(t, func(t *testing.T, w *world) {
					var requests atomic.Int64
					remove := w.store.Control(s3test.Match{}, func(r s3test.Request) *s3test.Reply {
						requests.Store(int64(r.N))
						switch {
						case r.N == at:
							return last
						case r.N > at:
							return s3test.ResetBefore()
						}
						return nil
					})
					_, err := w.run(t.Context(), extra)
					if ended = requests.Load() < int64(at); ended {
						require.NoError(t, err, "the job does not even work without a crash")
					}
					remove()
					_, err = w.run(t.Context(), extra)
					require.NoError(t, err, "after a crash at request %d", at)
					w.requireProven(400, extra)
				})
			}
		})
	}
}

func TestJob_WithCheckpointsInABucket_IsTakenOverByASecondRun(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		extra := inBucket(map[string]string{"sink.rolling-policy.on-checkpoint": "true"})
		first := make(chan error)
		go func() {
			_, err := w.run(t.Context(), extra)
			first <- err
		}()
		time.Sleep(12 * time.Second)
		second := make(chan error)
		go func() {
			_, err := w.run(t.Context(), extra)
			second <- err
		}()
		start := time.Now()
		require.ErrorIs(t, <-first, checkpoint.ErrFenced)
		require.Less(t, time.Since(start), 5*time.Second, "at its next checkpoint")
		require.NoError(t, <-second)
		w.requireProven(3000, extra)
	})
}

// The commands that look at checkpoints find them in the bucket, and a sweep keeps what they name. Nobody can tell whether the run of the newest
// epoch is alive, so its uploads stay too.
func TestJob_WithCheckpointsInABucket_IsReadByTheOtherCommands(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		dial := s3fs.WithDialContext(w.store.DialContext)
		quiet := slog.New(slog.DiscardHandler)
		extra := inBucket(map[string]string{
			"datagen.fields.f.length": "65535", "datagen.number-of-rows": "600", "checkpoint.interval": "1 s", "checkpoint.num-retained": "2",
		})
		for range 2 { // the second run goes on with the first one's uploads
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(2500*time.Millisecond, cancel)
			_, err := w.run(ctx, extra)
			require.Equal(t, job.ErrStopped, err)
		}
		named := w.store.Uploads("data")
		require.NotEmpty(t, named)

		list, err := job.ListCheckpoints(t.Context(), w.config(extra), dial)
		require.NoError(t, err)
		require.Len(t, list, 2)
		d, err := job.ShowCheckpoint(t.Context(), w.config(extra), 0, dial)
		require.NoError(t, err)
		require.Equal(t, list[1].ID, d.ID)
		require.EqualValues(t, 2, d.Epoch)
		v, err := job.VerifyCheckpoint(t.Context(), w.config(extra), 0, quiet, dial)
		require.NoError(t, err)
		require.True(t, v.Good, "%+v", v)
		require.Positive(t, v.BlobsRead)

		r, err := job.Sweep(t.Context(), w.config(extra), job.SweepOptions{}, quiet, dial)
		require.NoError(t, err)
		require.Zero(t, r.Aborted.Uploads)
		require.Equal(t, named, w.store.Uploads("data"))

		other := inBucket(map[string]string{"job.name": "other"})
		_, err = job.ShowCheckpoint(t.Context(), w.config(other), 0, dial)
		require.ErrorIs(t, err, checkpoint.ErrNoCheckpoint)
		require.ErrorContains(t, err, "s3://data/checkpoints/other/0-of-1")
		_, err = job.Sweep(t.Context(), w.config(other), job.SweepOptions{}, quiet, dial)
		require.Error(t, err, "a store that no run has ever claimed is no proof of anything")

		_, err = w.run(t.Context(), extra)
		require.NoError(t, err)
		w.requireProven(600, extra)
	})
}

func TestNew_WithCheckpointsInABucketThatIsNotThere_SaysSoBeforeAnyDataMoves(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		extra := map[string]string{"checkpoint.dir": "s3://nowhere/checkpoints"}
		_, err := job.New(t.Context(), w.config(extra), slog.New(slog.DiscardHandler), s3fs.WithDialContext(w.store.DialContext))
		require.ErrorIs(t, err, s3fs.ErrNoBucket)
		require.ErrorContains(t, err, "nowhere")
		var bad *job.ConfigError
		require.ErrorAs(t, err, &bad)
		synctest.Wait()

		reg, err := job.Registry()
		require.NoError(t, err)
		for text, want := range map[string]string{
			"s3://": "bucket name is empty", "file:///var/lib/sluice": `scheme "file" is not s3 or s3a`, "s3://a b/c": "not allowed in a bucket name",
		} {
			_, err = config.Load(reg, config.Map("test", map[string]string{"checkpoint.dir": text}))
			require.ErrorContains(t, err, want, fmt.Sprintf("checkpoint.dir = %q", text))
		}
	})
}

// What is below sink.path is data for every reader, and verify names it.
func TestNew_WithCheckpointsAmongThePartFiles_IsRefusedBeforeAnyRequest(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		open := func(path, dir string) error {
			j, err := job.New(t.Context(), w.config(map[string]string{"sink.path": path, "checkpoint.dir": dir}),
				slog.New(slog.DiscardHandler), s3fs.WithDialContext(w.store.DialContext))
			if err == nil {
				require.NoError(t, j.Close(t.Context()))
			}
			return err
		}
		for path, dirs := range map[string][]string{
			"s3://data/out":  {"s3://data/out", "s3://data/out/", "s3://data/out/chk", "s3a://data/out/_chk/x"},
			"s3://data/out/": {"s3://data/out/chk"},
			"s3://data":      {"s3://data", "s3://data/chk"},
		} {
			for _, dir := range dirs {
				err := open(path, dir)
				var bad *job.ConfigError
				require.ErrorAs(t, err, &bad, dir)
				require.ErrorContains(t, err, fmt.Sprintf("checkpoint.dir = %q is below sink.path", dir))
			}
		}
		require.Empty(t, w.store.Trace())
		for _, dir := range []string{"s3://data/output", "s3://data/ou", "s3://data", "s3://data/checkpoints/out"} {
			require.NoError(t, open("s3://data/out", dir), dir)
		}
	})
}
