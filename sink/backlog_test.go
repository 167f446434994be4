package sink_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/sink"
)

// memBlobs keeps the blobs of all checkpoints.
type memBlobs struct {
	mu sync.Mutex // a snapshot stores the tails of its writers side by side
	m  map[string][]byte
}

func (b *memBlobs) Put(_ context.Context, r io.Reader, _ int64) (string, error) {
	d, err := io.ReadAll(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	ref := fmt.Sprint("b", len(b.m))
	b.m[ref] = d
	return ref, err
}

func (b *memBlobs) Open(_ context.Context, ref string) (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return io.NopCloser(bytes.NewReader(b.m[ref])), nil
}

// With a commit backlog a checkpoint is captured before the one before it is committed, and so still names that one's files. After a
// restart they must not be listed a second time. Found by the kill campaign.
func TestBacklog_FilesOfAnEarlierRecordAreNotListedAgainAfterARestart(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		o := options()
		o.Rolling.OnCheckpoint = true
		blobs := &memBlobs{m: map[string][]byte{}}
		s, err := sink.New(w.openFS(), sink.Raw(), o)
		require.NoError(t, err)
		require.NoError(t, s.Restore(ctx, checkpoint.Restored{Epoch: 1, Blobs: blobs}))
		write := func(s *sink.Sink[[]byte], from, to int) {
			for n := from; n < to; n++ {
				require.NoError(t, s.Writer(n%2).Write(ctx, row(n, 100)))
			}
		}
		capture := func(s *sink.Sink[[]byte], id checkpoint.ID) []byte {
			snap, err := s.Capture(id)
			require.NoError(t, err)
			state, _, err := snap.Store(ctx, blobs)
			require.NoError(t, err)
			return state
		}
		write(s, 0, 10)
		capture(s, 1)
		write(s, 10, 20)
		state2 := capture(s, 2) // before the commit of 1, as with a commit backlog
		require.NoError(t, s.Commit(ctx, 1))
		require.NoError(t, s.Commit(ctx, 2))
		require.NoError(t, s.Close(ctx)) // killed

		s, err = sink.New(w.openFS(), sink.Raw(), o)
		require.NoError(t, err)
		require.NoError(t, s.Restore(ctx, checkpoint.Restored{ID: 2, Epoch: 2, State: state2, Blobs: blobs}))
		require.NoError(t, s.Commit(ctx, 2))
		write(s, 20, 30)
		capture(s, 3)
		require.NoError(t, s.Commit(ctx, 3))
		require.NoError(t, s.Close(ctx))
		w.requireRows(30)
	})
}
