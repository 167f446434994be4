package sink_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

// A host with checkpoints of its own: it stores one opaque value, and calls Commit when that is durable.
func TestExternal_SnapshotCommitRestoreWithoutTheCoordinator(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var saved []byte
		var savedID checkpoint.ID
		next := 0
		for epoch := range int64(4) {
			s, err := sink.New(w.openFS(), sink.Raw(), options())
			require.NoError(t, err)
			require.NoError(t, s.RestoreSnapshot(t.Context(), epoch+1, saved))
			from := next
			for range 2 {
				for range 450 {
					require.NoError(t, s.Writer(from%2).Write(t.Context(), row(from, 1023)))
					from++
				}
				savedID++
				saved, err = s.Snapshot(t.Context(), savedID)
				require.NoError(t, err)
				next = from
				if epoch != 2 { // the third run dies before it can commit
					require.NoError(t, s.Commit(t.Context(), savedID))
				}
			}
			require.NoError(t, s.Writer(0).Write(t.Context(), row(9999, 1023))) // behind the snapshot: forgotten
			require.NoError(t, s.Close(t.Context()))
		}
		s, err := sink.New(w.openFS(), sink.Raw(), options())
		require.NoError(t, err)
		require.NoError(t, s.RestoreSnapshot(t.Context(), 10, saved))
		require.NoError(t, s.Seal())
		_, err = s.Snapshot(t.Context(), savedID+1)
		require.NoError(t, err)
		require.NoError(t, s.Commit(t.Context(), savedID+1))
		w.requireRows(next)
		require.NoError(t, s.Close(t.Context()))
	})
}

// A small file that could not be published is in every later snapshot with its bytes: the host keeps only the newest.
func TestExternal_ASnapshotNeverRefersToAnEarlierOne(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		remove := w.store.Control(s3test.Match{Op: s3test.PutObject}, s3test.Always(s3test.Status(403, "AccessDenied")))
		o := options()
		o.Writers = 1
		s, err := sink.New(w.openFS(), sink.Raw(), o)
		require.NoError(t, err)
		require.NoError(t, s.RestoreSnapshot(t.Context(), 1, nil))
		require.NoError(t, s.Writer(0).Write(t.Context(), row(0, 100)))
		require.NoError(t, s.Seal())
		var saved []byte
		for id := range checkpoint.ID(3) {
			saved, err = s.Snapshot(t.Context(), id+1)
			require.NoError(t, err)
			require.Error(t, s.Commit(t.Context(), id+1))
		}
		require.NoError(t, s.Close(t.Context()))
		remove()
		s, err = sink.New(w.openFS(), sink.Raw(), o)
		require.NoError(t, err)
		require.NoError(t, s.RestoreSnapshot(t.Context(), 2, saved))
		w.requireRows(1)
		require.NoError(t, s.Close(t.Context()))
	})
}

func TestExternal_ADamagedSnapshotIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for _, value := range [][]byte{{}, []byte("{"), []byte(`{"version":9}`), []byte(`{"version":1,"id":1,"state":"e30="}`)} {
			s, err := sink.New(w.openFS(), sink.Raw(), options())
			require.NoError(t, err)
			require.ErrorIs(t, s.RestoreSnapshot(t.Context(), 1, value), sink.ErrState)
			require.NoError(t, s.Close(t.Context()))
		}
	})
}
