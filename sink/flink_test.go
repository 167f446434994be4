package sink_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

// Behaviours of Flink's own tests, by their numbers in docs/flink-behaviours.md, as far as no other test holds them.

func TestFlink_17_AFullPartIsUploadedUnderTheNextNumberAndIsInTheHandle(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(oneFile())
		for part := range 3 {
			r.rows(part*64, part*64+64, 1023)
			synctest.Wait()
			r.checkpoint()
			files := r.newest().Files
			require.Len(t, files, 1)
			h := files[0].Handle
			require.Len(t, h.Parts, part+1)
			require.Equal(t, int32(part+1), h.Parts[part].Number)
			require.Equal(t, w.store.Uploads("data")[0].Parts[part].ETag, h.Parts[part].ETag)
			require.EqualValues(t, (part+1)*64<<10, h.Offset)
		}
		r.finish()
		w.requireRows(192)
	})
}

// newest returns what the newest checkpoint says of the sink.
func (r *run) newest() sink.StateInfo {
	m, err := r.store.Latest(r.w.t.Context())
	require.NoError(r.w.t, err)
	info, err := sink.InspectManifest(m)
	require.NoError(r.w.t, err)
	return info
}

func TestFlink_18_19_AShortTailIsNoPartAndEachSnapshotOfItHasANameOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(oneFile())
		seen := map[string]bool{}
		for i := range 5 {
			r.rows(i, i+1, 1023)
			r.checkpoint()
			h := r.newest().Files[0].Handle
			require.Empty(t, h.Parts)
			require.Len(t, h.Pieces, 1)
			require.EqualValues(t, (i+1)<<10, h.Pieces[0].Size)
			require.False(t, seen[h.Pieces[0].Ref])
			seen[h.Pieces[0].Ref] = true
		}
		require.Empty(t, w.store.Uploads("data"))
		r.finish()
		w.requireRows(5)
	})
}

func TestFlink_21_TheHandleTellsObjectUploadPartsBytesAndTail(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(oneFile())
		r.rows(0, 64*2+10, 1023)
		synctest.Wait()
		r.checkpoint()
		h, u := r.newest().Files[0].Handle, w.store.Uploads("data")[0]
		require.Equal(t, multipart.Target{Bucket: "data", Key: u.Key}, h.Target)
		require.Equal(t, u.ID, h.UploadID)
		require.Equal(t, []string{u.Parts[0].ETag, u.Parts[1].ETag}, []string{h.Parts[0].ETag, h.Parts[1].ETag})
		require.EqualValues(t, 138<<10, h.Offset)
		require.EqualValues(t, 10<<10, h.Pieces[0].Size)
		r.crash()
	})
}

func TestFlink_28_AFileWithoutATailIsResumed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(oneFile())
		r.rows(0, 128, 1023) // two parts exactly
		synctest.Wait()
		r.checkpoint()
		require.Empty(t, r.newest().Files[0].Handle.Pieces)
		r.crash()
		r = w.start(oneFile())
		r.rows(128, 150, 1023)
		r.finish()
		w.requireRows(150)
		require.Len(t, w.dataKeys(), 1)
	})
}

func TestFlink_31_TailsOnTailsKeepEveryByte(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := 0
		for i := range 12 { // 1 to 12 rows, so that the tail passes a part between two restores
			r := w.start(oneFile())
			r.rows(n, n+i+1, 1023)
			n += i + 1
			r.checkpoint()
			r.crash()
		}
		w.start(oneFile()).finish()
		w.requireRows(n)
		require.Len(t, w.dataKeys(), 1)
	})
}

func TestFlink_45_47_AllButTheOpenFileArePublished(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		o := oneFile()
		o.Rolling.FileSize = 1 // every row is a file
		r := w.start(o)
		r.rows(0, 10, 100)
		r.checkpoint()
		require.Len(t, w.dataKeys(), 9)
		info := r.newest()
		require.Equal(t, []int{1, 9}, []int{info.Open(), info.Pending()})
		r.checkpoint()
		require.Len(t, w.dataKeys(), 9, "a checkpoint alone ends no file")
		r.finish()
		w.requireRows(10)
	})
}

func TestFlink_51_ARestoredFileGoesOnUnlessItsCheckpointHadEndedIt(t *testing.T) {
	for _, ended := range []bool{false, true} {
		bubble(t, func(t *testing.T, w *world) {
			o := oneFile()
			o.Rolling.OnCheckpoint = ended
			r := w.start(o)
			r.rows(0, 10, 100)
			r.checkpoint()
			r.crash()
			r = w.start(o)
			r.rows(10, 20, 100)
			r.finish()
			w.requireRows(20)
			require.Len(t, w.dataKeys(), map[bool]int{false: 1, true: 2}[ended])
		})
	}
}

func TestFlink_56_EveryRowIsCounted(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := 0
		for i := range 4 {
			r := w.start(options())
			require.EqualValues(t, n, r.sink.Stats().DurableRows)
			r.rows(n, n+100+i, 300)
			n += 100 + i
			r.checkpoint()
			require.EqualValues(t, n, r.newest().RowsAccepted)
			r.rows(n, n+50, 300) // never durable
			require.EqualValues(t, n, r.sink.Stats().DurableRows)
			r.crash()
		}
		r := w.start(options())
		r.finish()
		require.EqualValues(t, n, r.sink.Stats().Committed.Rows)
	})
}

// Flink 5.6: a commit of thousands of files. Every call takes 20 ms, every fifteenth Complete or PUT fails, and one file cannot be published until
// later.
func TestFlink_Gap_ThousandsOfFilesAreCommittedInParallelInOrderAndWithoutLosingTheOthersToOne(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		const files = 1100 // more than a listing shows at once
		o := oneFile()
		o.Rolling.FileSize, o.MemoryBudget, o.CommitDeadline, o.CommitParallelism = 1, 256<<20, 10*time.Second, 16
		r := w.start(o)
		w.store.Control(s3test.Match{Op: s3test.PutObject, KeyPrefix: "out/part", Every: 15}, s3test.Always(s3test.Status(500, "InternalError")))
		stuck := fmt.Sprintf("out/part_main_0-of-1_e1_w0_%d.raw", files/2)
		remove := w.store.Control(s3test.Match{Op: s3test.PutObject, KeyPrefix: stuck}, s3test.Always(s3test.Status(403, "AccessDenied")))
		w.store.Control(s3test.Match{}, s3test.Always(s3test.Delay(20*time.Millisecond)))
		r.rows(0, files, 100)
		require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
		start := time.Now()
		id, err := r.coord.Trigger(t.Context())
		require.Error(t, err)
		require.Equal(t, checkpoint.ID(1), id)
		require.ErrorContains(t, err, stuck)
		require.Equal(t, 1, r.sink.Stats().PendingFiles)
		// One after the other, 1,100 PUTs alone would take 22 s. The deadline for the one that fails is 10 s.
		require.Less(t, time.Since(start), 15*time.Second)
		recs := w.records()
		require.Len(t, recs, 1)
		require.Len(t, recs[0].Files, files-1)
		for i, f := range recs[0].Files {
			n := i
			if i >= files/2 {
				n++
			}
			require.Equal(t, fmt.Sprintf("out/part_main_0-of-1_e1_w0_%d.raw", n), f.Key)
		}
		remove()
		r.finish()
		w.requireRows(files)
	})
}

// Flink 5.6: the credentials expire while parts are on their way, twice in one file, and are refreshed.
func TestFlink_Gap_CredentialsThatExpireInTheMiddleOfAnUploadLoseNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(oneFile())
		for _, n := range []int{2, 6} {
			w.store.Control(s3test.Match{Op: s3test.UploadPart, Nth: n}, s3test.Always(s3test.Status(400, "ExpiredToken")))
		}
		w.store.Control(s3test.Match{Op: s3test.CompleteMultipartUpload, Nth: 1}, s3test.Always(s3test.Status(400, "ExpiredToken")))
		r.rows(0, 500, 1023)
		r.finish()
		w.requireRows(500)
		require.Len(t, w.dataKeys(), 1)
	})
}

// O-15: what a file holds was decided by the wall clock, so that a replay cut the rows in another way.
func TestBug_O15_AReplayAtAnotherTimeCutsTheFilesInTheSameWay(t *testing.T) {
	cut := func(t *testing.T, pause time.Duration) (sizes map[string]int) {
		sizes = map[string]int{}
		bubble(t, func(t *testing.T, w *world) {
			o := oneFile()
			o.Rolling.FileSize = 100 << 10
			r := w.start(o)
			r.rows(0, 250, 1023)
			r.checkpoint()
			r.rows(250, 333, 1023) // lost with the process
			time.Sleep(pause)
			r.crash()
			time.Sleep(pause)
			r = w.start(o)
			r.rows(250, 400, 1023)
			r.finish()
			w.requireRows(400)
			for _, o := range w.store.Objects("data") {
				for _, key := range w.dataKeys() {
					if key == o.Key {
						sizes[key] = len(o.Data)
					}
				}
			}
		})
		return sizes
	}
	require.Equal(t, cut(t, 0), cut(t, 50*time.Hour))
}
