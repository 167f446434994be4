package sink_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

// Restores with another path, endpoint, part size or parallelism than the checkpoint was written with.

func TestRestore_AnotherPrefixIsRefused(t *testing.T) {
	refused(t, s3fs.Path{Bucket: "data", Key: "elsewhere"})
}

func TestRestore_AnotherBucketIsRefused(t *testing.T) {
	refused(t, s3fs.Path{Bucket: "other", Key: "out"})
}

func refused(t *testing.T, to s3fs.Path) {
	bubble(t, func(t *testing.T, w *world) {
		w.store.CreateBucket("other")
		r := w.start(options())
		r.rows(0, 100, 1023)
		r.checkpoint()
		r.crash()
		before := w.store.Keys("data")
		o := options()
		o.Path = to
		_, err := w.tryStart(o)
		require.ErrorIs(t, err, sink.ErrState)
		require.ErrorContains(t, err, "path s3://data/out")
		require.ErrorContains(t, err, "path "+to.String())
		require.Equal(t, before, w.store.Keys("data"))
		require.Empty(t, w.store.Keys("other"))
		r = w.start(options()) // and back
		r.finish()
		w.requireRows(100)
	})
}

// elsewhere gives the world an empty store at another endpoint.
func (w *world) elsewhere() {
	w.store = s3test.New(s3test.Options{Buckets: []string{"data"}, MinPartSize: 1})
	w.t.Cleanup(w.store.Close)
	w.host = "elsewhere"
}

// back undoes elsewhere.
func (w *world) back(first *s3test.Server) { w.store, w.host = first, "" }

func TestRestore_AnotherEndpointWithoutTheUploadsIsAnotherStore(t *testing.T) {
	for _, policy := range []sink.ExpiredPolicy{sink.ExpiredFail, sink.ExpiredSkip, sink.ExpiredRewrite} {
		t.Run(policy.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				o := oneFile()
				o.Expired = policy
				r := w.start(o)
				r.rows(0, 200, 1023)
				synctest.Wait()
				r.checkpoint()
				r.crash()
				first := w.store
				w.elsewhere()
				_, err := w.tryStart(o)
				require.ErrorIs(t, err, sink.ErrOtherStore)
				require.ErrorContains(t, err, "was written at "+first.URL()+", and at http://elsewhere there is no upload of out/part_main")
				require.Empty(t, w.store.Keys("data"))
				w.back(first)
				r = w.start(o)
				r.finish()
				w.requireRows(200)
			})
		})
	}
}

// The file was finished: whether its upload is there turns out at the commit.
func TestRestore_AnotherEndpointWithoutTheFinishedUploadsIsAnotherStore(t *testing.T) {
	for _, policy := range []sink.ExpiredPolicy{sink.ExpiredFail, sink.ExpiredSkip} {
		t.Run(policy.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				o := oneFile()
				o.Expired, o.Rolling.OnCheckpoint = policy, true
				r := w.start(o)
				remove := w.store.Control(s3test.Match{Op: s3test.CompleteMultipartUpload}, s3test.Always(s3test.Status(403, "AccessDenied")))
				r.rows(0, 200, 1023)
				synctest.Wait()
				_, err := r.coord.Trigger(t.Context())
				require.Error(t, err)
				r.crash()
				remove()
				first := w.store
				w.elsewhere()
				_, err = w.tryStart(o)
				require.ErrorIs(t, err, sink.ErrOtherStore)
				require.ErrorIs(t, err, multipart.ErrNoSuchUpload)
				require.Empty(t, w.store.Keys("data"))
				w.back(first)
				r = w.start(o)
				r.finish()
				w.requireRows(200)
			})
		})
	}
}

func TestRestore_AnotherEndpointWithoutTheCommitRecordsIsAnotherStore(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		o := oneFile()
		o.Rolling.OnCheckpoint = true
		r := w.start(o)
		r.rows(0, 10, 1023)
		r.checkpoint()
		r.checkpoint() // holds no file, but what has been published
		r.crash()
		first := w.store
		w.elsewhere()
		_, err := w.tryStart(o)
		require.ErrorIs(t, err, sink.ErrOtherStore)
		require.ErrorContains(t, err, "there is no commit record of the 1 files that were published")
		w.back(first)
		w.start(o).finish()
		w.requireRows(10)
	})
}

// A store may get another name: what counts is what is there.
func TestRestore_AnotherNameOfTheSameStoreWorks(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(oneFile())
		r.rows(0, 200, 1023)
		synctest.Wait()
		r.checkpoint()
		r.crash()
		w.host = "storage.internal"
		r = w.start(oneFile())
		r.rows(200, 300, 1023)
		r.finish()
		w.requireRows(300)
	})
}

func TestRestore_AnotherPartSizeIsForNewFiles(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		o := oneFile()
		r := w.start(o)
		r.rows(0, 100, 1023) // one part and a half
		synctest.Wait()
		r.checkpoint()
		r.crash()
		o.PartSize = 100 << 10
		r = w.start(o)
		r.rows(100, 200, 1023)
		synctest.Wait()
		for _, p := range w.store.Uploads("data")[0].Parts {
			require.Len(t, p.Data, 64<<10)
		}
		r.finish()
		r = w.start(o)
		r.rows(200, 400, 1023)
		synctest.Wait()
		require.Len(t, w.store.Uploads("data")[0].Parts[0].Data, 100<<10)
		r.finish()
		w.requireRows(400)
	})
}

func TestRestore_AnotherParallelismFinishesEveryFile(t *testing.T) {
	for _, writers := range [][2]int{{5, 2}, {2, 5}, {4, 1}} {
		bubble(t, func(t *testing.T, w *world) {
			o := options()
			o.Writers, o.Rolling.FileSize = writers[0], 8<<20
			r := w.start(o)
			r.rows(0, 500, 1023)
			r.checkpoint()
			r.crash()
			o.Writers = writers[1]
			r = w.start(o)
			r.rows(500, 900, 1023)
			r.finish()
			w.requireRows(900)
			require.Len(t, w.dataKeys(), max(writers[0], writers[1]))
		})
	}
}
