package job

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/sluice-go/sluice/sink"
)

// shelf is a store of checkpoints that can only be read.
type shelf struct {
	checkpointReader
	states map[checkpoint.ID][]byte
}

func (s shelf) List(context.Context) ([]checkpoint.ID, error) {
	return slices.Sorted(maps.Keys(s.states)), nil
}

func (s shelf) Load(_ context.Context, id checkpoint.ID) (checkpoint.Manifest, error) {
	if s.states[id] == nil {
		return checkpoint.Manifest{}, &checkpoint.DamagedError{File: "chk", ID: id, Err: errors.New("torn")}
	}
	return checkpoint.Manifest{
		Version: checkpoint.ManifestVersion, ID: id, Job: "j", Shard: "0-of-1", Epoch: 1,
		States: []checkpoint.NamedState{{Name: sink.ParticipantName, State: s.states[id]}},
	}, nil
}

// A checkpoint that was left behind once, because the store did not answer for instance, may look good later. But what it counts as
// published was taken back.
func TestLine_LeavesOutWhatTheJobHasGoneBackBehind(t *testing.T) {
	plain, err := os.ReadFile("../../sink/testdata/state-v1.json")
	require.NoError(t, err)
	backTo := func(id checkpoint.ID) []byte {
		state, err := sink.Rewound(plain, plain, id)
		require.NoError(t, err)
		return state
	}
	s := shelf{states: map[checkpoint.ID][]byte{
		1: plain, 2: plain, 3: plain, 4: backTo(2), 5: plain, 6: backTo(4), 7: backTo(1), 8: plain, 9: backTo(8), 10: plain,
	}}
	line := func() (line []checkpoint.ID, refused int) {
		var r RewriteError
		line, err := (&inspection{store: s}).line(t.Context(), &r)
		require.NoError(t, err)
		return line, len(r.Retained)
	}
	ids, refused := line()
	require.Equal(t, []checkpoint.ID{10, 9, 8, 7, 1}, ids)
	require.Equal(t, 5, refused)
	s.states[8] = nil // who knows what it left behind
	ids, refused = line()
	require.Equal(t, []checkpoint.ID{10, 9}, ids)
	require.Equal(t, 1, refused)
	clear(s.states)
	ids, _ = line()
	require.Empty(t, ids)
}

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
