package sink_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

// Cases that users of other S3 sinks have met, by their numbers; each comment says what happened there. Cases of the client
// are in s3fs and retrymode, those of the sweep in sweep_test.go, those of the verifier in e2e/readback.

// One writer, files far larger than what is written: one open file.
func oneFile() sink.Options {
	o := options()
	o.Writers, o.Rolling.FileSize = 1, 8<<20
	return o
}

// The bytes behind the last full part were never read back after a restore.
func TestBug_O01_TheTailSurvivesARestore(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(oneFile())
		r.rows(0, 96, 1023) // one part and a half
		synctest.Wait()
		r.checkpoint()
		r.crash()
		r = w.start(oneFile())
		r.rows(96, 100, 1023)
		r.finish()
		w.requireRows(100)
		require.Len(t, w.dataKeys(), 1)
	})
}

// Small side objects written at each checkpoint were never removed.
func TestBug_O04_TwentyCheckpointsLeaveOneTailAndNoObject(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.onDisk()
		r := w.start(oneFile())
		for i := range 20 {
			r.rows(i, i+1, 1023)
			r.checkpoint()
		}
		require.Empty(t, w.store.Keys("data"))
		blobs, err := filepath.Glob(filepath.Join(w.dir, "main", "0-of-1", "blobs", "*"))
		require.NoError(t, err)
		require.Len(t, blobs, 1)
		r.finish()
		r = w.start(oneFile()) // the last checkpoint still holds the file that it has published; the next one does not
		r.checkpoint()
		r.crash()
		blobs, err = filepath.Glob(filepath.Join(w.dir, "main", "0-of-1", "blobs", "*"))
		require.NoError(t, err)
		require.Empty(t, blobs)
		w.requireRows(20)
	})
}

// A crash between Complete and its answer: recovery put the final parts again and panicked. On a store that has forgotten the
// upload after Complete, the repetition answers NoSuchUpload (O-07), which is no proof either way.
func TestBug_O05_O07_ACompleteWhoseAnswerIsLostIsLookedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOn(t, s3test.Options{Quirks: s3test.Quirks{CompleteRepeat404: true}})
		r := w.start(oneFile())
		r.rows(0, 200, 1023)
		require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
		w.store.Control(s3test.Match{Op: s3test.CompleteMultipartUpload, Nth: 1}, s3test.Always(s3test.ResetAfter()))
		removeHead := w.store.Control(s3test.Match{Op: s3test.HeadObject}, s3test.Always(s3test.Status(403, "AccessDenied")))
		_, err := r.coord.Trigger(t.Context())
		require.ErrorIs(t, err, multipart.ErrUnknown, "the look failed too")
		r.crash()
		removeHead()
		r = w.start(oneFile())
		require.Zero(t, r.sink.Stats().PendingFiles)
		r.finish()
		w.requireRows(200)
		require.Len(t, w.dataKeys(), 1)
	})
}

// A job could not be restarted because what an open file needed was in a checkpoint that had been deleted.
func TestBug_O06_OneRetainedCheckpointHoldsAllThatAnOldOpenFileNeeds(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(oneFile())
		for i := range 12 {
			r.rows(i*20, i*20+20, 1023)
			synctest.Wait()
			r.checkpoint()
		}
		r.crash()
		r = w.start(oneFile())
		r.finish()
		w.requireRows(240)
	})
}

// NoSuchUpload was taken as success, so that an export with no object ended green.
func TestBug_O08_AnUploadThatIsGoneIsNeverSuccess(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(oneFile())
		r.rows(0, 200, 1023)
		require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
		synctest.Wait()
		require.True(t, w.store.DropUpload(w.store.Uploads("data")[0].ID))
		_, err := r.coord.Trigger(t.Context())
		require.ErrorIs(t, err, multipart.ErrMissing)
		require.ErrorContains(t, err, "out/part_main_0-of-1_e1_w0_0.raw")
		require.Empty(t, w.records())
		r.crash()
	})
}

// "An object exists at the key" was taken as proof that the lost Complete had worked.
func TestBug_O09_AForeignObjectOfTheSameSizeIsNoProof(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(oneFile())
		r.rows(0, 200, 1023)
		require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
		synctest.Wait()
		u := w.store.Uploads("data")[0]
		w.store.PutObject("data", u.Key, make([]byte, 200<<10), nil)
		require.True(t, w.store.DropUpload(u.ID))
		_, err := r.coord.Trigger(t.Context())
		require.ErrorIs(t, err, multipart.ErrForeign)
		require.Empty(t, w.records())
		r.crash()
	})
}

// An error of the last close was dropped, so that a commit pointed to a file that was never stored.
func TestBug_O11_NoRecordListsAFileThatCouldNotBePublished(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(oneFile())
		r.rows(0, 200, 1023)
		require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
		w.store.Control(s3test.Match{Op: s3test.CompleteMultipartUpload}, s3test.Always(s3test.Status(500, "InternalError")))
		_, err := r.coord.Trigger(t.Context())
		require.Error(t, err)
		require.Empty(t, w.store.Keys("data"))
		r.crash()
	})
}

// A crash loop re-sent everything each time: ten times the data ended in the bucket.
func TestBug_O12_ACrashLoopRepeatsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := 0
		for range 15 {
			r := w.start(options())
			r.rows(n, n+90, 1023)
			r.checkpoint()
			n += 90
			r.rows(n, n+37, 1023) // lost with the process, and written again by the next one
			r.crash()
		}
		r := w.start(options())
		r.finish()
		w.requireRows(n)
	})
}

// The last piece of a file went into an object of its own.
func TestBug_O13_TheShortLastPartBelongsToItsFile(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(oneFile())
		r.rows(0, 147, 1023) // 2.3 parts
		r.finish()
		w.requireRows(147)
		require.Len(t, w.dataKeys(), 1)
	})
}

// A broken pipe at Complete dropped the records without a retry, and the counter stayed 0.
func TestBug_O14_ABrokenPipeAtCompleteLosesNothingAndIsCounted(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(oneFile())
		w.store.Control(s3test.Match{Op: s3test.UploadPart, Nth: 1}, s3test.Always(s3test.ResetBefore()))
		w.store.Control(s3test.Match{Op: s3test.CompleteMultipartUpload, Nth: 1}, s3test.Always(s3test.ResetBefore()))
		r.rows(0, 200, 1023)
		require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
		_, err := r.coord.Trigger(t.Context()) // looked, found nothing: the next checkpoint asks again
		require.ErrorIs(t, err, multipart.ErrMissing)
		require.Positive(t, r.fs.Stats().Total.RetriesAfterTransient)
		r.finish()
		w.requireRows(200)
	})
}

// With no new rows the tail was never written.
func TestBug_O16_TheEndOfInputPublishesWhatIsThere(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		o := oneFile()
		o.Rolling.OnCheckpoint = true
		r := w.start(o)
		r.rows(0, 100, 100)
		r.checkpoint()
		w.requireRows(100)
		r.finish()
	})
}

// Names with a resolution of seconds: two flushes overwrote each other.
func TestBug_O18_EightWritersNeverShareAName(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		o := options()
		o.Writers, o.Rolling.FileSize = 8, 10<<10
		for i := range 3 {
			r := w.start(o)
			r.rows(i*400, i*400+400, 1023)
			r.checkpoint()
			r.crash()
		}
		r := w.start(o)
		r.finish()
		w.requireRows(1200)
		files := 0
		for _, rec := range w.records() {
			files += len(rec.Files)
		}
		require.Len(t, w.dataKeys(), files)
	})
}

// Resume knew only the first page of parts. And every interruption wrote a short part (O-25), until the part limit was passed.
func TestBug_O24_O25_ThirtyRestartsReadAllPagesOfPartsAndWriteNoShortOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOn(t, s3test.Options{PageSize: 2})
		for i := range 30 {
			r := w.start(oneFile())
			r.rows(i*30, i*30+30, 1023) // half a part each
			synctest.Wait()
			r.checkpoint()
			r.crash()
		}
		uploads := w.store.Uploads("data")
		require.Len(t, uploads, 1)
		for _, p := range uploads[0].Parts {
			require.Len(t, p.Data, 64<<10, "part %d", p.Number)
		}
		require.Len(t, uploads[0].Parts, 900/64)
		r := w.start(oneFile())
		r.finish()
		w.requireRows(900)
	})
}

// A fixed part size and an unknown length ended in part 10,001.
func TestBug_O26_AFileSizeBeyondThePartLimitIsRefusedAtTheStart(t *testing.T) {
	o := options()
	o.Rolling.FileSize = o.PartSize*10_000 + 1
	require.ErrorContains(t, o.Validate(), "s3.upload.min.part.size")
	o.Rolling.FileSize--
	require.NoError(t, o.Validate())
}
