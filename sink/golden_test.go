package sink

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
