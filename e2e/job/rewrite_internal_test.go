package job

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/sluice-go/sluice/sink"
)

// socket is a source whose rows come once.
type socket struct{ rewindable bool }

func (socket) Name() string                                       { return "socket" }
func (socket) Capture(checkpoint.ID) (checkpoint.Snapshot, error) { return nil, nil }
func (socket) Commit(context.Context, checkpoint.ID) error        { return nil }
func (socket) Restore(context.Context, checkpoint.Restored) error { return nil }

// declared says of itself what it is told to.
type declared struct{ socket }

func (d declared) Rewindable() bool { return d.rewindable }

func TestCheckRewrite_IsRefusedAtTheStartWhereRowsCannotBeMadeAgain(t *testing.T) {
	for _, source := range []checkpoint.Participant{socket{}, declared{}} {
		err := checkRewrite(sink.ExpiredRewrite, source, 5)
		require.ErrorIs(t, err, checkpoint.ErrNotRewindable)
		require.ErrorContains(t, err, "sink.expired-upload = rewrite: socket: the source cannot give its rows again")
		require.NoError(t, checkRewrite(sink.ExpiredFail, source, 1))
		require.NoError(t, checkRewrite(sink.ExpiredSkip, source, 1))
	}
	require.NoError(t, checkRewrite(sink.ExpiredRewrite, declared{socket{true}}, 2))
	require.NoError(t, checkRewrite(sink.ExpiredRewrite, &datagen.Source{}, 2))
	require.ErrorContains(t, checkRewrite(sink.ExpiredRewrite, &datagen.Source{}, 1), "checkpoint.num-retained is 1, at least 2 are needed")
}
