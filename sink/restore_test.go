package sink_test

import (
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

func TestRestore_RowsAfterTheCheckpointAreForgottenAndComeAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(options())
		r.rows(0, 1000, 1023)
		r.checkpoint()
		r.rows(1000, 1500, 1023) // lost
		r.crash()
		r = w.start(options())
		r.rows(1000, 2000, 1023)
		r.finish()
		w.requireRows(2000)
	})
}

func TestRestore_TailsOfSmallFilesSurvive(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for i := range 10 {
			r := w.start(options())
			r.rows(i*7, i*7+7, 100)
			r.checkpoint()
			r.crash()
		}
		require.Empty(t, w.store.Keys("data"))
		r := w.start(options())
		r.finish()
		w.requireRows(70)
		require.Len(t, w.dataKeys(), 2, "one file for each writer, however often the job was killed")
	})
}

// The process dies at each call that a commit makes, before and after the call's effect.
func TestRestore_ACrashAtAnyCallOfACommitPublishesEachRowOnce(t *testing.T) {
	calls := []s3test.Match{
		{Op: s3test.CompleteMultipartUpload, Nth: 1}, {Op: s3test.CompleteMultipartUpload, Nth: 2},
		{Op: s3test.HeadObject, Nth: 1}, {Op: s3test.HeadObject, Nth: 2},
		{Op: s3test.PutObject, KeyPrefix: "out/part", Nth: 1}, {Op: s3test.PutObject, KeyPrefix: "out/_sluice/", Nth: 1},
	}
	for _, m := range calls {
		for _, effect := range []bool{false, true} {
			t.Run(string(m.Op)+m.KeyPrefix, func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					o := options()
					o.CommitParallelism = 1
					o.Rolling.OnCheckpoint = true
					r := w.start(o)
					rows := 700
					if m.KeyPrefix == "out/part" {
						rows = 40 // less than a part for each writer: a PUT
					}
					r.rows(0, rows, 1023)
					var dead atomic.Bool
					remove := w.store.Control(m, func(s3test.Request) *s3test.Reply {
						dead.Store(true)
						if effect {
							return s3test.ResetAfter()
						}
						return s3test.ResetBefore()
					})
					removeRest := w.store.Control(s3test.Match{}, func(s3test.Request) *s3test.Reply {
						if dead.Load() { // a dead process calls nothing any more
							return s3test.ResetBefore()
						}
						return nil
					})
					_, err := r.coord.Trigger(t.Context())
					require.True(t, dead.Load(), "the call was never made")
					require.Error(t, err)
					r.crash()
					remove()
					removeRest()
					r = w.start(o)
					r.rows(rows, 800, 1023)
					r.finish()
					w.requireRows(800)
				})
			})
		}
	}
}

func TestRestore_AFileThatARecordListsIsSettledEvenWhenAConsumerMovedIt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(options())
		r.rows(0, 1000, 1023)
		r.checkpoint()
		r.crash()
		moved := w.records()[0].Files
		for _, f := range moved {
			require.True(t, w.store.DeleteObject("data", f.Key))
		}
		w.store.ResetTrace()
		r = w.start(options())
		r.checkpoint()
		for _, f := range moved {
			require.NotContains(t, w.store.Trace(), f.Key)
		}
		r.crash()
	})
}

func TestRestore_WithFewerWritersTheOtherFilesAreFinishedAsTheyAre(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		o := options()
		o.Writers = 5
		r := w.start(o)
		r.rows(0, 500, 1023)
		r.checkpoint()
		r.crash()
		o.Writers = 2
		r = w.start(o)
		r.rows(500, 900, 1023)
		r.finish()
		w.requireRows(900)
	})
}

func TestRestore_WithMoreWritersAndAnotherPartSize(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(options())
		r.rows(0, 300, 1023)
		r.checkpoint()
		r.crash()
		o := options()
		o.Writers, o.PartSize = 4, 128<<10
		r = w.start(o)
		r.rows(300, 1500, 1023)
		r.finish()
		w.requireRows(1500)
	})
}

func TestRestore_GoingBackBehindARecordIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.onDisk()
		r := w.start(options())
		r.rows(0, 1000, 1023)
		r.checkpoint()
		r.crash()
		w.dir = t.TempDir() // the checkpoints are gone
		_, err := w.tryStart(options())
		require.ErrorIs(t, err, sink.ErrNewerRecord)
	})
}

// An older copy of the checkpoints is put back on purpose: what was published behind it is taken back, and comes again.
func TestRestore_ARollbackTakesBackWhatWasPublishedBehindTheCheckpoint(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.onDisk()
		o := options()
		o.Rolling.OnCheckpoint = true
		r := w.start(o)
		r.rows(0, 100, 1023)
		r.checkpoint()
		r.crash()
		savepoint := t.TempDir()
		require.NoError(t, os.CopyFS(savepoint, os.DirFS(w.dir)))
		r = w.start(o)
		for i := range 3 {
			r.rows(100+i*100, 200+i*100, 1023)
			r.checkpoint()
		}
		r.crash()
		require.Len(t, w.published(), 400)

		w.dir = savepoint
		_, err := w.tryStart(o)
		require.ErrorIs(t, err, sink.ErrNewerRecord)
		require.ErrorContains(t, err, "--rollback")
		require.Len(t, w.published(), 400, "nothing was taken back")
		o.Rollback = true
		// The first try breaks off in the middle.
		remove := w.store.Control(s3test.Match{Op: s3test.DeleteObject, Nth: 4}, s3test.Always(s3test.Status(403, "AccessDenied")))
		_, err = w.tryStart(o)
		require.Error(t, err)
		remove()
		r = w.start(o)
		require.Len(t, w.published(), 100)
		r.rows(100, 250, 1023)
		r.finish()
		w.requireRows(250)
	})
}

// A file was finished at the checkpoint that is gone back to, but could be published only later: its upload is gone, and the object is what the
// checkpoint will publish.
func TestRestore_ARollbackKeepsWhatTheCheckpointItselfHadFinished(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.onDisk()
		o := oneFile()
		o.Rolling.OnCheckpoint = true
		r := w.start(o)
		remove := w.store.Control(s3test.Match{Op: s3test.CompleteMultipartUpload}, s3test.Always(s3test.Status(403, "AccessDenied")))
		r.rows(0, 200, 1023)
		synctest.Wait()
		_, err := r.coord.Trigger(t.Context())
		require.Error(t, err)
		savepoint := t.TempDir()
		require.NoError(t, os.CopyFS(savepoint, os.DirFS(w.dir)))
		remove()
		r.rows(200, 300, 1023)
		r.checkpoint()
		r.crash()
		require.Len(t, w.dataKeys(), 2)

		w.dir, o.Rollback = savepoint, true
		r = w.start(o)
		require.Len(t, w.dataKeys(), 1)
		r.rows(200, 260, 1023)
		r.finish()
		w.requireRows(260)
	})
}

func TestRestore_AnUploadThatExpiredIsAClearError(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		o := options()
		o.Rolling.FileSize = 1 << 20
		r := w.start(o)
		r.rows(0, 500, 1023)
		synctest.Wait() // the parts arrive
		r.checkpoint()
		r.crash()
		for _, u := range w.store.Uploads("data") {
			require.True(t, w.store.DropUpload(u.ID))
		}
		_, err := w.tryStart(o)
		expired, ok := errors.AsType[*sink.ExpiredError](err)
		require.True(t, ok, "%v", err)
		require.ErrorIs(t, err, multipart.ErrNoSuchUpload)
		require.ErrorContains(t, err, "lifecycle rule")
		require.ErrorContains(t, err, "sink.expired-upload")
		require.Equal(t, []int64{250, 250 << 10}, []int64{expired.Rows, expired.Bytes})
		require.Contains(t, expired.Key, "out/part_main")
		require.False(t, expired.CreatedAt.IsZero())
	})
}

// One of two open files is lost; the other one, and everything after, is published. The record says what was given up.
func TestRestore_AnExpiredUploadCanBeSkippedAndIsRecorded(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		o := options()
		o.Rolling.FileSize, o.Expired = 1<<20, sink.ExpiredSkip
		r := w.start(o)
		r.rows(0, 500, 1023)
		synctest.Wait()
		r.checkpoint()
		r.crash()
		lost := w.store.Uploads("data")[0]
		require.True(t, w.store.DropUpload(lost.ID))
		r = w.start(o)
		r.checkpoint() // the skip is durable before it is recorded, and is recorded once
		r.crash()
		r = w.start(o)
		r.rows(500, 600, 1023)
		r.finish()
		require.Len(t, w.published(), 350)
		var skipped []sink.FileEntry
		for _, rec := range w.records() {
			skipped = append(skipped, rec.Skipped...)
		}
		require.Len(t, skipped, 1)
		require.Equal(t, []any{lost.Key, int64(250), int64(250 << 10)}, []any{skipped[0].Key, skipped[0].Rows, skipped[0].Bytes})
		last := w.records()[len(w.records())-1]
		require.Equal(t, []int64{600, 350, 250}, []int64{last.RowsAccepted, last.TotalRows, last.TotalSkippedRows})
	})
}

// The upload of a finished file expires between its checkpoint and its commit.
func TestCommit_AnUploadThatExpiredBeforeItsCommit(t *testing.T) {
	for _, policy := range []sink.ExpiredPolicy{sink.ExpiredFail, sink.ExpiredSkip} {
		t.Run(policy.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				o := options()
				o.Writers, o.Expired = 1, policy
				r := w.start(o)
				r.rows(0, 257, 1023)
				synctest.Wait()
				require.True(t, w.store.DropUpload(w.store.Uploads("data")[0].ID))
				_, err := r.coord.Trigger(t.Context())
				if policy == sink.ExpiredFail {
					_, ok := errors.AsType[*sink.ExpiredError](err)
					require.True(t, ok, "%v", err)
					require.Equal(t, 1, r.sink.Stats().PendingFiles, "it stays pending")
					r.crash()
					return
				}
				require.NoError(t, err)
				r.finish()
				require.Equal(t, []int{256}, w.published())
			})
		})
	}
}

// The store says NoSuchUpload once, and is wrong. Found by simulation.
func TestCommit_AnUploadThatIsOnlySaidToBeGoneIsNotGivenUp(t *testing.T) {
	for _, policy := range []sink.ExpiredPolicy{sink.ExpiredFail, sink.ExpiredSkip, sink.ExpiredRewrite} {
		t.Run(policy.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				o := oneFile()
				o.Expired = policy
				r := w.start(o)
				r.rows(0, 200, 1023)
				require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
				w.store.Control(s3test.Match{Op: s3test.CompleteMultipartUpload, Nth: 1}, s3test.Always(s3test.Status(404, "NoSuchUpload")))
				_, err := r.coord.Trigger(t.Context())
				require.ErrorIs(t, err, multipart.ErrMissing)
				_, expired := errors.AsType[*sink.ExpiredError](err)
				require.False(t, expired)
				require.Equal(t, 1, r.sink.Stats().PendingFiles)
				r.finish()
				w.requireRows(200)
			})
		})
	}
}
