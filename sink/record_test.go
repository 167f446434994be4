package sink

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func sampleRecord() Record {
	return Record{
		Job: "main", Shard: "0-of-1", Checkpoint: 7, Epoch: 2, CreatedAt: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC),
		Files: []FileEntry{
			{Key: "out/a", Bytes: 2048, Rows: 2, CRC64NVME: "AAAAAAAAAAE=", ETag: "e1-2", Checkpoint: 7},
			{Key: "out/b", Bytes: 1024, Rows: 1, CRC64NVME: "AAAAAAAAAAI=", ETag: "e2", Checkpoint: 6},
		},
		TotalFiles: 5, TotalRows: 11, TotalBytes: 11264, RowsAccepted: 12,
	}
}

func TestRecord_ComesBackAsItWasWritten(t *testing.T) {
	text, err := sampleRecord().Encode()
	require.NoError(t, err)
	got, err := DecodeRecord(text)
	require.NoError(t, err)
	require.Equal(t, sampleRecord(), got)
}

func TestRecord_EveryChangedByteIsNoticed(t *testing.T) {
	text, err := sampleRecord().Encode()
	require.NoError(t, err)
	for i := range bytes.TrimSpace(text) {
		for _, flip := range []byte{1, 0x20, 0x80} {
			bad := bytes.Clone(text)
			bad[i] ^= flip
			got, err := DecodeRecord(bad)
			if err == nil {
				// Keys of the envelope are matched without regard to case: the same document, not another one.
				require.Equal(t, sampleRecord(), got, "byte %d", i)
				continue
			}
			require.ErrorIs(t, err, ErrRecord, "byte %d", i)
		}
	}
}

func TestRecord_EveryCutIsNoticed(t *testing.T) {
	text, err := sampleRecord().Encode()
	require.NoError(t, err)
	for n := range len(text) - 1 {
		_, err := DecodeRecord(text[:n])
		require.ErrorIs(t, err, ErrRecord, "%d bytes", n)
	}
	_, err = DecodeRecord(append(bytes.Clone(text), text...))
	require.ErrorIs(t, err, ErrRecord, "twice")
}

func TestRecord_TotalsThatCannotBeAreRefused(t *testing.T) {
	for name, change := range map[string]func(*Record){
		"file twice":                func(r *Record) { r.Files[1].Key = r.Files[0].Key },
		"file without bytes":        func(r *Record) { r.Files[0].Bytes = 0 },
		"fewer rows than listed":    func(r *Record) { r.TotalRows = 2 },
		"fewer bytes than listed":   func(r *Record) { r.TotalBytes = 3071 },
		"fewer files than listed":   func(r *Record) { r.TotalFiles = 1 },
		"published more than taken": func(r *Record) { r.RowsAccepted = 10 },
		"no checkpoint":             func(r *Record) { r.Checkpoint = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			r := sampleRecord()
			change(&r)
			text, err := r.Encode()
			require.NoError(t, err)
			_, err = DecodeRecord(text)
			require.ErrorIs(t, err, ErrRecord)
		})
	}
}

func FuzzDecodeRecord(f *testing.F) {
	text, err := sampleRecord().Encode()
	require.NoError(f, err)
	f.Add(text)
	f.Add([]byte(`{"format":"sluice-commit-record","version":1,"crc64nvme":"","record":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := DecodeRecord(text)
		if err != nil {
			require.ErrorIs(t, err, ErrRecord)
			return
		}
		again, err := r.Encode()
		require.NoError(t, err)
		back, err := DecodeRecord(again)
		require.NoError(t, err)
		require.Equal(t, r, back)
	})
}
