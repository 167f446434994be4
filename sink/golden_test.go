package sink

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
)

// The file was written by hand, its checksum computed by another implementation (bit by bit, checked against the catalogue's
// value for "123456789"). Records of this version stay readable.
func TestRecord_Version1StaysReadable(t *testing.T) {
	text, err := os.ReadFile("testdata/record-v1.json")
	require.NoError(t, err)
	r, err := DecodeRecord(text)
	require.NoError(t, err)
	require.Equal(t, Record{
		Job: "main", Shard: "1-of-2", Checkpoint: 7, Epoch: 3, CreatedAt: time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC),
		Files: []FileEntry{{
			Key: "out/part_main_1-of-2_e2_w0_4.raw", Bytes: 3072, Rows: 3, CRC64NVME: "rosUhgp5mIg=",
			ETag: "9b2cf535f27731c974343645a3985328-2", Checkpoint: 6,
		}},
		Skipped:    []FileEntry{{Key: "out/part_main_1-of-2_e1_w0_0.raw", Bytes: 1024, Rows: 1, CRC64NVME: "AAAAAAAAAAA=", Checkpoint: 2}},
		TotalFiles: 5, TotalRows: 12, TotalBytes: 12288, TotalSkippedRows: 1, RowsAccepted: 14,
	}, r)
}

// The file was written by hand; its handles are those of multipart's own golden file. States of this version stay readable, and are still written
// like this.
func TestState_Version1StaysReadable(t *testing.T) {
	text, err := os.ReadFile("testdata/state-v1.json")
	require.NoError(t, err)
	info, err := InspectState(text)
	require.NoError(t, err)
	require.Len(t, info.Files, 2)
	pending, open := info.Files[0], info.Files[1]
	info.Files = nil
	require.Equal(t, StateInfo{
		Location: "s3://bucket/data", Job: "main", Shard: "1-of-2", RowsAccepted: 20,
		Published:   Totals{Files: 3, Rows: 10, Bytes: 1000, SkippedRows: 2},
		Skipped:     []FileEntry{{Key: "data/part_main_1-of-2_e1_w0_0.raw", Bytes: 7, Rows: 2, CRC64NVME: "AAAAAAAAAAA=", Checkpoint: 4}},
		Uncommitted: []checkpoint.ID{5, 6},
	}, info)
	require.Equal(t, []any{int64(1), int64(6), true, int64(4), ""},
		[]any{pending.Rows, pending.Staged, pending.Handle.Sealed, pending.Handle.Offset, pending.Handle.UploadID})
	require.Equal(t, []any{int64(5), int64(0), false, int64(2004), "upload-1"},
		[]any{open.Rows, open.Staged, open.Handle.Sealed, open.Handle.Offset, open.Handle.UploadID})

	st, _, err := decodeState(text)
	require.NoError(t, err)
	written, err := json.Marshal(st)
	require.NoError(t, err)
	require.JSONEq(t, string(text), string(written))
}

// The opaque value of a host with checkpoints of its own.
func TestSnapshot_Version1StaysReadable(t *testing.T) {
	state, err := os.ReadFile("testdata/state-v1.json")
	require.NoError(t, err)
	value := `{"version":1,"id":7,"state":"` + base64.StdEncoding.EncodeToString(state) + `","blobs":{"7/blob-1":"dGFpbA=="}}`
	info, err := InspectSnapshot([]byte(value))
	require.NoError(t, err)
	require.Len(t, info.Files, 2)
}
