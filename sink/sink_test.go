package sink_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

// bubble runs a test in virtual time.
func bubble(t *testing.T, f func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) { f(t, newWorld(t)) })
}

func TestSink_NothingIsVisibleBeforeItsCheckpoint(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(options())
		r.rows(0, 2000, 1023) // 2 MB: several sealed files
		synctest.Wait()
		require.Empty(t, w.store.Keys("data"))
		r.checkpoint()
		require.NotEmpty(t, w.dataKeys())
		require.NotContains(t, w.published(), 1999, "the open file's rows are staged, not published")
		r.finish()
		w.requireRows(2000)
	})
}

func TestSink_FilesEndBeforeTheRowThatWouldMakeThemTooLarge(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(options())
		r.rows(0, 3000, 1023) // rows of 1 KiB with their line feed: 256 of them fill a file exactly
		r.finish()
		w.requireRows(3000)
		sizes := map[int64]int{}
		for _, rec := range w.records() {
			for _, f := range rec.Files {
				sizes[f.Bytes]++
			}
		}
		// 1,500 rows for each of the 2 writers: 5 full files of 256 rows and one of 220.
		require.Equal(t, map[int64]int{256 << 10: 10, 220 << 10: 2}, sizes)
	})
}

// mostAtOnce lets every call of an operation take a second and returns how many of them there are at a time, at the most.
func mostAtOnce(w *world, op s3test.Op) *atomic.Int64 {
	var now, most atomic.Int64
	w.store.Control(s3test.Match{Op: op}, func(s3test.Request) *s3test.Reply {
		most.Store(max(most.Load(), now.Add(1)))
		time.Sleep(time.Second)
		now.Add(-1)
		return nil
	})
	return &most
}

func TestSink_PartsHaveThePartSizeAndNoMoreThanAllowedAreInFlightForAFile(t *testing.T) {
	for _, n := range []int{1, 3} {
		bubble(t, func(t *testing.T, w *world) {
			most := mostAtOnce(w, s3test.UploadPart)
			o := options()
			o.Writers, o.PartSize, o.UploadConcurrency = 1, 32<<10, n
			r := w.start(o)
			r.rows(0, 256, 1023)
			r.finish()
			require.Equal(t, int64(n), most.Load())
			file, _ := w.store.Object("data", w.dataKeys()[0])
			require.Equal(t, slices.Repeat([]int64{32 << 10}, 8), file.PartSizes)
		})
	}
}

func TestSink_NoMoreFilesThanAllowedArePublishedAtOnce(t *testing.T) {
	for _, n := range []int{1, 3} {
		bubble(t, func(t *testing.T, w *world) {
			most := mostAtOnce(w, s3test.CompleteMultipartUpload)
			o := options()
			o.CommitParallelism = n
			r := w.start(o)
			r.rows(0, 1536, 1023) // 6 files
			r.finish()
			w.requireRows(1536)
			require.Equal(t, int64(n), most.Load())
		})
	}
}

func TestSink_ACheckpointWaitsForPartsInFlightAsLongAsPersistWait(t *testing.T) {
	for _, c := range []struct{ part, wait, takes time.Duration }{
		{part: time.Hour, wait: 0, takes: 0},
		{part: time.Hour, wait: 2 * time.Second, takes: 2 * time.Second},
		{part: 3 * time.Second, wait: 5 * time.Second, takes: 3 * time.Second},
	} {
		bubble(t, func(t *testing.T, w *world) {
			defer w.store.Control(s3test.Match{Op: s3test.UploadPart}, s3test.Always(s3test.Delay(c.part)))()
			o := options()
			o.Writers, o.PersistWait = 1, c.wait
			r := w.start(o)
			r.rows(0, 100, 1023) // one part and a tail
			synctest.Wait()
			start := time.Now()
			r.checkpoint()
			require.Equal(t, c.takes, time.Since(start))
			r.crash()
		})
	}
}

func TestSink_ARowLargerThanAFileIsAFileOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		o := options()
		o.Writers = 1
		r := w.start(o)
		r.rows(0, 3, 300<<10)
		r.finish()
		w.requireRows(3)
		require.Len(t, w.dataKeys(), 3)
	})
}

func TestSink_RollOnCheckpointPublishesEveryRowBeforeIt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		o := options()
		o.Rolling.OnCheckpoint = true
		r := w.start(o)
		r.rows(0, 11, 100)
		r.checkpoint()
		w.requireRows(11)
		r.rows(11, 13, 100)
		r.checkpoint()
		w.requireRows(13)
		require.Len(t, w.dataKeys(), 4, "two writers, two checkpoints")
		last := w.records()[1]
		require.Equal(t, []int64{13, 13, 4}, []int64{last.RowsAccepted, last.TotalRows, last.TotalFiles})
		r.finish()
	})
}

func TestSink_AnEmptyCheckpointWritesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(options())
		r.checkpoint()
		r.checkpoint()
		r.finish()
		require.Empty(t, w.store.Keys("data"))
		require.Empty(t, w.store.Uploads("data"))
	})
}

func TestSink_CloseWithOpenFilesPublishesAndAbortsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(options())
		r.rows(0, 600, 1023)
		r.checkpoint()
		before := len(w.dataKeys())
		uploads := len(w.store.Uploads("data"))
		r.rows(600, 700, 1023)
		r.crash()
		require.Len(t, w.dataKeys(), before)
		require.GreaterOrEqual(t, len(w.store.Uploads("data")), uploads)
		require.NotContains(t, w.store.Trace(), "AbortMultipartUpload")
		require.ErrorIs(t, r.sink.Close(t.Context()), sink.ErrClosed)
		require.ErrorIs(t, r.sink.Writer(0).Write(t.Context(), []byte("x")), sink.ErrClosed)
	})
}

// Many finished files smaller than a part wait for their checkpoint in memory. At the budget they go up early.
func TestSink_SmallFilesAreSentEarlyWhenTheBudgetIsUsedUp(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		o := options()
		o.Writers, o.PartSize, o.MemoryBudget, o.Rolling.FileSize = 1, 1<<20, 1<<20, 40<<10
		r := w.start(o)
		r.rows(0, 4000, 1023) // 4 MB through 1 MiB of memory, without a checkpoint
		r.finish()
		w.requireRows(4000)
		require.Contains(t, w.store.Trace(), "UploadPart")
	})
}

func TestSink_AFileThatCannotBeProvenStaysPendingAndDoesNotBlockTheOthers(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(options())
		remove := w.store.Control(s3test.Match{Op: s3test.CompleteMultipartUpload, Nth: 1}, s3test.Always(s3test.DropEffect200()))
		r.rows(0, 2000, 1023)
		_, err := r.coord.Trigger(t.Context())
		failed, ok := errors.AsType[*sink.CommitError](err)
		require.True(t, ok, "%v", err)
		require.ErrorIs(t, err, multipart.ErrUnproven)
		require.NotEmpty(t, failed.UploadID)
		require.Equal(t, 1, r.sink.Stats().PendingFiles)
		require.NotContains(t, w.dataKeys(), failed.Key)
		require.NotEmpty(t, w.published())
		remove()
		r.finish()
		w.requireRows(2000)
		for _, rec := range w.records() {
			for _, f := range rec.Files {
				if f.Key == failed.Key {
					require.Equal(t, []int64{1, 2}, []int64{f.Checkpoint, rec.Checkpoint}, "staged by 1, published by 2")
				}
			}
		}
	})
}

func TestSink_TheRecordsPutMayLoseItsAnswer(t *testing.T) {
	for name, reply := range map[string]*s3test.Reply{
		"after the effect": s3test.ResetAfter(), "before it": s3test.ResetBefore(), "503": s3test.SlowDown(),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				r := w.start(options())
				w.store.Control(s3test.Match{Op: s3test.PutObject, KeyPrefix: "out/_sluice/", Nth: 1}, s3test.Always(reply))
				r.rows(0, 1000, 1023)
				r.checkpoint()
				r.finish()
				w.requireRows(1000)
			})
		})
	}
}

// The store takes the record and answers errors until the client gives up: the next commit must not list the files again.
func TestSink_ARecordThatIsThereAfterAllIsNotWrittenTwice(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(options())
		remove := w.store.Control(s3test.Match{KeyPrefix: "out/_sluice/"}, func(q s3test.Request) *s3test.Reply {
			if q.Op == s3test.PutObject {
				return s3test.Status(500, "InternalError").WithEffect()
			}
			return s3test.Status(500, "InternalError")
		})
		r.rows(0, 1000, 1023)
		_, err := r.coord.Trigger(t.Context())
		require.Error(t, err)
		require.Len(t, w.records(), 1)
		require.NotZero(t, r.sink.Stats().PendingFiles)
		remove()
		r.finish()
		w.requireRows(1000)
	})
}

func TestSink_AnotherRunsRecordForTheSameCheckpointEndsThisRun(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(options())
		r.rows(0, 1000, 1023)
		foreign := sink.Record{
			Job: "main", Shard: "0-of-1", Checkpoint: 1, Epoch: 9, TotalFiles: 1, TotalRows: 1, TotalBytes: 1, RowsAccepted: 1,
			Files: []sink.FileEntry{{Key: "out/x", Bytes: 1, Rows: 1, Checkpoint: 1}},
		}
		text, err := foreign.Encode()
		require.NoError(t, err)
		w.store.PutObject("data", sink.RecordKey("out", "main", "0-of-1", 1), text, nil)
		_, err = r.coord.Trigger(t.Context())
		require.ErrorIs(t, err, sink.ErrRecordConflict)
		r.crash()
	})
}

func TestOptions_AllProblemsAreReportedTogether(t *testing.T) {
	o := options()
	o.Writers, o.PartSize, o.MemoryBudget, o.Job, o.Path = 16, 6<<20, 64<<20, "a_b", s3fs.Path{}
	o.Rolling.FileSize = 6<<20*10_000 + 1
	err := o.Validate()
	for _, part := range []string{
		"sink.path: no bucket", "job.name", `"a_b" is not a job name`, "sink.memory.budget is 64 mb", "need at least 96 mb",
		"10000 parts", "raise s3.upload.min.part.size",
	} {
		require.ErrorContains(t, err, part)
	}
	require.Equal(t, 4, len(strings.Split(err.Error(), "\n")))
	_, err = sink.New(nil, sink.Raw(), o)
	require.Error(t, err)
}
