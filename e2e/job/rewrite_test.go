package job_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/checkpoint/s3store"
	"github.com/sluice-go/sluice/e2e/job"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

// rewriting is a job of two writers, each with a part every 4 s and a file, of a part and a fifth, every 4.8 s, and 12 s of rows.
func rewriting(extra map[string]string) map[string]string {
	keys := map[string]string{
		"sink.expired-upload": "rewrite", "checkpoint.num-retained": "20", "checkpoint.interval": "1 s",
		"datagen.fields.f.length": "65535", "datagen.number-of-rows": "480", "datagen.rows-per-second": "40",
		"sink.writers": "2", "sink.rolling-policy.file-size": "6 mb", "sink.memory.budget": "64 mb",
	}
	maps.Copy(keys, extra)
	return keys
}

// stopped runs the job for a while.
func (w *world) stopped(after time.Duration, extra map[string]string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), after)
	defer cancel()
	_, err := w.run(ctx, extra)
	require.Equal(w.t, job.ErrStopped, err)
}

// expire takes the newest upload away.
func (w *world) expire() {
	w.t.Helper()
	uploads := w.store.Uploads("data")
	require.NotEmpty(w.t, uploads)
	require.True(w.t, w.store.DropUpload(uploads[len(uploads)-1].ID))
}

// parts returns the keys of the part files.
func (w *world) parts() (keys []string) {
	for _, key := range w.store.Keys("data") {
		if strings.HasPrefix(key, "out/part_") {
			keys = append(keys, key)
		}
	}
	return keys
}

func TestRewrite_RowsOfAnUploadThatIsGoneAreWrittenAgainExactlyOnce(t *testing.T) {
	for place, after := range map[string]time.Duration{"bucket": 4500 * time.Millisecond, "directory": 9300 * time.Millisecond} {
		t.Run(place, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				extra := rewriting(map[string]string{"datagen.number-of-rows": "400"})
				if place == "bucket" {
					w.store.CreateBucket("state")
					extra["checkpoint.dir"] = "s3://state/chk"
				}
				w.stopped(after, extra)
				w.expire()
				r, err := w.run(t.Context(), extra)
				require.NoError(t, err)
				require.Equal(t, 1, r.Restarts, "no restart strategy is needed")
				require.EqualValues(t, 400, r.Rows)
				w.requireProven(400, extra)
			})
		})
	}
}

// What had been published behind the checkpoint that is gone back to is there no more, or the rows would be there twice. The numbers of
// its records are kept, so that nobody else can write them.
func TestRewrite_TakesBackWhatWasPublishedBehind(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		extra := rewriting(map[string]string{"sink.commit.deadline": "0 s", "datagen.number-of-rows": "280"})
		w.store.Control(s3test.Match{Op: s3test.CompleteMultipartUpload, Nth: 2}, func(q s3test.Request) *s3test.Reply {
			w.store.DropUpload(q.UploadID)
			return nil
		})
		_, err := w.run(t.Context(), extra)
		require.NoError(t, err)
		// The files of both writers were finished: one was published, of the other the upload was gone.
		deleted := regexp.MustCompile(`DeleteObject (data/out/part\S+) `).FindAllStringSubmatch(w.store.Trace(), -1)
		require.Len(t, deleted, 2)
		published := 0
		for _, m := range deleted {
			published += len(regexp.MustCompile(`CompleteMultipartUpload `+m[1]+` .*-> 200`).FindAllString(w.store.Trace(), -1))
			require.NotContains(t, w.parts(), strings.TrimPrefix(m[1], "data/"))
		}
		require.Equal(t, 1, published)
		empty := 0
		for _, key := range w.store.Keys("data") {
			if o, _ := w.store.Object("data", key); strings.Contains(key, "/record-") {
				r, err := sink.DecodeRecord(o.Data)
				require.NoError(t, err)
				if len(r.Files) == 0 {
					empty++
				}
			}
		}
		require.Positive(t, empty)
		w.requireProven(280, extra)
	})
}

// The upload of a finished file is gone at its commit: the job goes back at once, whatever is tolerated, while the older checkpoints are there.
func TestRewrite_AtACommit(t *testing.T) {
	for tolerable, nth := range map[string]int{"0": 4, "5": 1} {
		t.Run(fmt.Sprint(tolerable, " ", nth), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				rows := 180 + 80*int64(nth)
				extra := rewriting(map[string]string{
					"checkpoint.tolerable-failures": tolerable, "checkpoint.num-retained": "8", "sink.commit.deadline": "1 s",
					"datagen.number-of-rows": fmt.Sprint(rows),
				})
				w.store.Control(s3test.Match{Op: s3test.CompleteMultipartUpload, Nth: nth}, func(q s3test.Request) *s3test.Reply {
					w.store.DropUpload(q.UploadID)
					return nil
				})
				r, err := w.run(t.Context(), extra)
				require.NoError(t, err)
				require.Equal(t, 1, r.Restarts)
				w.requireProven(rows, extra)
			})
		})
	}
}

func TestRewrite_SeveralTimesInOneJob(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		extra := rewriting(map[string]string{"datagen.number-of-rows": "560"})
		expired := 0
		for range 5 {
			w.stopped(2300*time.Millisecond, extra)
			if len(w.store.Uploads("data")) > 0 {
				w.expire()
				expired++
			}
		}
		require.Greater(t, expired, 1)
		_, err := w.run(t.Context(), extra)
		require.NoError(t, err)
		w.requireProven(560, extra)
	})
}

// Whatever call fails while the job goes back, denied or with its answer lost, the next run finishes it.
func TestRewrite_IsFinishedByTheNextRunWhereverItBreaksOff(t *testing.T) {
	replies := []*s3test.Reply{s3test.ResetAfter(), s3test.Status(403, "AccessDenied")}
	for op, calls := range map[s3test.Op]int{
		s3test.DeleteObject: 2, s3test.PutObject: 2, s3test.GetObject: 1, s3test.ListObjectsV2: 2, s3test.HeadObject: 1,
	} {
		for nth := range calls {
			t.Run(fmt.Sprint(op, nth), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					extra := rewriting(map[string]string{
						"s3.retry.max-num-retries": "0", "sink.commit.deadline": "0 s", "datagen.number-of-rows": "168", "sink.rolling-policy.file-size": "5130 kb",
					})
					var armed atomic.Bool
					gone := w.store.Control(s3test.Match{Op: s3test.CompleteMultipartUpload, Nth: 2}, func(q s3test.Request) *s3test.Reply {
						w.store.DropUpload(q.UploadID)
						armed.Store(true)
						return nil
					})
					var seen atomic.Int32
					remove := w.store.Control(s3test.Match{Op: op}, func(s3test.Request) *s3test.Reply {
						if !armed.Load() || seen.Add(1) != int32(nth+1) {
							return nil
						}
						return replies[nth%2]
					})
					_, err := w.run(t.Context(), extra)
					gone()
					remove()
					if err != nil {
						_, err = w.run(t.Context(), extra)
						require.NoError(t, err)
					}
					w.requireProven(168, extra)
				})
			})
		}
	}
}

func TestRewrite_WithoutACheckpointThatIsOldEnoughNothingIsLostOrDoubled(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		// Every retained checkpoint names the upload.
		extra := rewriting(map[string]string{"checkpoint.num-retained": "2", "sink.rolling-policy.file-size": "1 gb"})
		w.stopped(9300*time.Millisecond, extra)
		w.expire()
		before := w.store.Keys("data")
		_, err := w.run(t.Context(), extra)
		refused, ok := errors.AsType[*job.RewriteError](err)
		require.True(t, ok, "%v", err)
		_, ok = errors.AsType[*sink.ExpiredError](err)
		require.True(t, ok)
		require.Len(t, refused.Retained, 1)
		require.ErrorContains(t, err, "no retained checkpoint is old enough")
		require.ErrorContains(t, err, "is lost")
		require.ErrorContains(t, err, "checkpoint.num-retained")
		require.Equal(t, before, w.store.Keys("data"))

		extra["sink.expired-upload"] = "skip-and-record"
		_, err = w.run(t.Context(), extra)
		require.NoError(t, err)
		v, _, err := job.Verify(t.Context(), w.config(extra), slog.New(slog.DiscardHandler), s3fs.WithDialContext(w.store.DialContext))
		require.NoError(t, err)
		require.False(t, v.Proven)
		require.Positive(t, v.Missing.Total)
		require.Zero(t, v.Duplicates.Total)
	})
}

// A run that was paused finds that an upload is gone which the run that has taken over has finished. Going back would take the job over
// again, and publish those rows twice.
func TestRewrite_ARunThatWasReplacedDoesNotGoBack(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.store.CreateBucket("state")
		extra := rewriting(map[string]string{"checkpoint.dir": "s3://state/chk", "sink.commit.deadline": "0 s", "restart-strategy.type": "fixed-delay"})
		var newest []string
		w.store.Control(s3test.Match{Op: s3test.CompleteMultipartUpload, Nth: 1}, func(q s3test.Request) *s3test.Reply {
			w.store.DropUpload(q.UploadID)
			fs, err := s3fs.Open(t.Context(), w.config(extra), s3fs.WithDialContext(w.store.DialContext))
			require.NoError(t, err)
			other, err := s3store.Open(fs, s3fs.Path{Bucket: "state", Key: "chk"}, "job", checkpoint.Shard{Count: 1})
			require.NoError(t, err)
			_, err = other.Claim(t.Context())
			require.NoError(t, errors.Join(err, other.Close(), fs.Close(t.Context())))
			newest = w.store.Keys("state")
			return nil
		})
		_, err := w.run(t.Context(), extra)
		require.ErrorIs(t, err, checkpoint.ErrFenced)
		require.Equal(t, newest, w.store.Keys("state"), "nothing was claimed and nothing saved")
		require.NotContains(t, w.store.Trace(), "DeleteObject data/")
	})
}

func TestRewrite_NeedsAnOlderCheckpoint(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_, err := job.New(t.Context(), w.config(rewriting(map[string]string{"checkpoint.num-retained": "1"})),
			slog.New(slog.DiscardHandler), s3fs.WithDialContext(w.store.DialContext))
		_, ok := errors.AsType[*job.ConfigError](err)
		require.True(t, ok, "%v", err)
		require.ErrorContains(t, err, "checkpoint.num-retained is 1")
		require.Empty(t, w.store.Trace())
	})
}
