package sink

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/multipart"
)

// stateOf is a state of version 1 with finished files of one row each.
func stateOf(t *testing.T, keys ...string) []byte {
	t.Helper()
	st := state{
		Version: plainStateVersion, Location: "s3://b/out", Job: "j", Shard: "0-of-1", RowsAccepted: int64(len(keys)),
		Uncommitted: []checkpoint.ID{2}, Files: []fileState{},
	}
	for _, key := range keys {
		h := multipart.Handle{
			Target: multipart.Target{Bucket: "b", Key: key}, Token: "t", PartSize: 10, Sealed: true,
			Pieces: []multipart.Piece{{Number: 1, Size: 1, CRC: multipart.Checksum([]byte("x")), Ref: "r"}},
			Offset: 1, CRC: multipart.Checksum([]byte("x")),
		}
		text, err := h.MarshalBinary()
		require.NoError(t, err)
		st.Files = append(st.Files, fileState{Handle: text, Rows: 1, Staged: 1})
	}
	text, err := json.Marshal(st)
	require.NoError(t, err)
	return text
}

func decoded(t *testing.T, text []byte) state {
	t.Helper()
	st, _, err := decodeState(text)
	require.NoError(t, err)
	return st
}

func TestRewound_SaysWhatIsToBeTakenBackAndKeepsWhatTheOlderOneHadFinished(t *testing.T) {
	back, err := Rewound(stateOf(t, "a", "b"), stateOf(t, "b", "c", "d"), 3)
	require.NoError(t, err)
	st := decoded(t, back)
	require.Equal(t, 2, st.Version, "an older program must not take it for an ordinary one")
	require.Equal(t, &rewound{To: 3, Files: []string{"c", "d"}}, st.Rewound)
	require.Equal(t, []checkpoint.ID{2, 3}, st.Uncommitted)
	require.EqualValues(t, 2, st.RowsAccepted)

	// Back from there to an older one, before what was to be taken back is known to be.
	further, err := Rewound(stateOf(t, "d", "e"), back, 1)
	require.NoError(t, err)
	require.Equal(t, &rewound{To: 1, Files: []string{"a", "b", "c"}}, decoded(t, further).Rewound)

	// And back to one that had gone back itself.
	again, err := Rewound(back, stateOf(t, "f"), 7)
	require.NoError(t, err)
	st = decoded(t, again)
	require.Equal(t, &rewound{To: 7, Files: []string{"f"}, Before: &rewound{To: 3, Files: []string{"c", "d"}}}, st.Rewound)
	require.Equal(t, []checkpoint.ID{2, 3, 7}, st.Uncommitted)

	// What was to be taken back twice is taken back further down.
	all, err := Rewound(stateOf(t, "e"), again, 1)
	require.NoError(t, err)
	require.Equal(t, &rewound{To: 1, Files: []string{"a", "b", "c", "d", "f"}}, decoded(t, all).Rewound)
}

func TestRewound_RefusesStatesThatDoNotBelongTogether(t *testing.T) {
	other, err := os.ReadFile("testdata/state-v1.json")
	require.NoError(t, err)
	for _, pair := range [][2][]byte{{other, stateOf(t)}, {[]byte("{"), stateOf(t)}, {stateOf(t), []byte("{}")}} {
		_, err := Rewound(pair[0], pair[1], 1)
		require.ErrorIs(t, err, ErrState)
	}
}
