package sink_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

func TestInspectManifest_TellsTheFilesOfACheckpoint(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(options())
		require.Equal(t, sink.ParticipantName, r.sink.Name())
		remove := w.store.Control(s3test.Match{Op: s3test.CompleteMultipartUpload}, s3test.Always(s3test.Status(403, "AccessDenied")))
		r.rows(0, 600, 1023) // 300 rows of 1 KiB for each writer: a full file of 256 and an open one
		synctest.Wait()
		_, err := r.coord.Trigger(t.Context())
		require.ErrorIs(t, err, s3fs.ErrAccessDenied)
		remove()
		m, err := r.store.Latest(t.Context())
		require.NoError(t, err)
		info, err := sink.InspectManifest(m)
		require.NoError(t, err)
		require.Equal(t, []string{"s3://data/out", "main", "0-of-1"}, []string{info.Location, info.Job, info.Shard})
		require.Equal(t, int64(600), info.RowsAccepted)
		require.Zero(t, info.Published)
		require.Equal(t, []int{2, 2}, []int{info.Open(), info.Pending()})
		var rows int64
		for _, f := range info.Files {
			rows += f.Rows
			require.NoError(t, f.Handle.Validate())
			require.Equal(t, f.Handle.Sealed, f.Staged == 1)
			require.Equal(t, f.Rows<<10, f.Handle.Offset)
		}
		require.Equal(t, int64(600), rows)
		r.finish()
		w.requireRows(600)
	})
}

func TestInspect_RefusesWhatIsNoStateOfASink(t *testing.T) {
	_, err := sink.InspectManifest(checkpoint.Manifest{ID: 7, States: []checkpoint.NamedState{{Name: "source", State: []byte("{}")}}})
	require.ErrorIs(t, err, sink.ErrState)
	require.ErrorContains(t, err, "checkpoint 7")
	for _, text := range []string{"", "{", `{"version":99}`, `{"version":1,"files":[{"handle":"AAAA"}]}`} {
		_, err = sink.InspectManifest(checkpoint.Manifest{ID: 7, States: []checkpoint.NamedState{{Name: "sink", State: []byte(text)}}})
		require.ErrorIs(t, err, sink.ErrState, text)
		_, err = sink.InspectState([]byte(text))
		require.ErrorIs(t, err, sink.ErrState, text)
		_, err = sink.InspectSnapshot([]byte(text))
		require.ErrorIs(t, err, sink.ErrState, text)
	}
	_, err = sink.InspectState([]byte(`{"version":1,"files":[{"handle":"AAAA"}]}`))
	require.ErrorIs(t, err, multipart.ErrHandle)
}

func TestInspectSnapshot_NamesTheUploadsOfAHostWithItsOwnCheckpoints(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, err := sink.New(w.openFS(), sink.Raw(), options())
		require.NoError(t, err)
		require.NoError(t, s.RestoreSnapshot(t.Context(), 1, nil))
		for n := range 100 {
			require.NoError(t, s.Writer(0).Write(t.Context(), row(n, 1023)))
		}
		synctest.Wait()
		value, err := s.Snapshot(t.Context(), 1)
		require.NoError(t, err)
		info, err := sink.InspectSnapshot(value)
		require.NoError(t, err)
		require.Len(t, info.Files, 1)
		require.Equal(t, w.store.Uploads("data")[0].ID, info.Files[0].Handle.UploadID)
		require.NoError(t, s.Close(t.Context()))
	})
}

func TestShardRecords_AreThoseOfOneShardInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for _, name := range []string{"main", "main-2"} {
			o := options()
			o.Job, o.Rolling.OnCheckpoint = name, true
			r := w.start(o)
			r.rows(0, 10, 100)
			r.checkpoint()
			r.rows(10, 20, 100)
			r.checkpoint()
			r.crash()
		}
		var got []int64
		for e, err := range sink.ShardRecords(t.Context(), w.openFS(), options().Path, "main", checkpoint.Shard{Index: 0, Count: 1}) {
			require.NoError(t, err)
			require.Equal(t, "main", e.Job)
			got = append(got, e.Checkpoint)
		}
		require.Equal(t, []int64{1, 2}, got)
	})
}
