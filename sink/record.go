package sink

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/minio/crc64nvme"

	"github.com/sluice-go/sluice/multipart"
)

const (
	recordFormat  = "sluice-commit-record"
	recordVersion = 1
)

// Record lists what one checkpoint published. It is written after every file in it has been proven to be in the store,
// and once it lists a file nobody looks for that file again: a consumer may have moved it. A file is in exactly one record.
// A record without files keeps a run that was replaced from writing one for the same checkpoint.
type Record struct {
	Job        string    `json:"job"`
	Shard      string    `json:"shard"` // "i-of-n"
	Checkpoint int64     `json:"checkpoint"`
	Epoch      int64     `json:"epoch"`
	CreatedAt  time.Time `json:"created_at"`

	Files []FileEntry `json:"files"`

	// Skipped lists files that are lost and given up by the option sink.expired-upload: their uploads had expired, and nothing is
	// at their keys. A file is either published by one record or skipped by one.
	Skipped []FileEntry `json:"skipped,omitempty"`

	// Totals over this record and all earlier ones of the shard.
	TotalFiles int64 `json:"total_files"`
	TotalRows  int64 `json:"total_rows"`
	TotalBytes int64 `json:"total_bytes"`
	// TotalSkippedRows counts the rows of skipped files.
	TotalSkippedRows int64 `json:"total_skipped_rows,omitempty"`

	// RowsAccepted counts the rows the sink had taken when the checkpoint's barrier passed. It equals TotalRows +
	// TotalSkippedRows when nothing is staged any more.
	RowsAccepted int64 `json:"rows_accepted"`
}

// FileEntry is one published file. Key is the whole object key; Checkpoint is the one that staged the file, which is an
// earlier one than the record's when the file could not be proven at once.
type FileEntry struct {
	Key        string `json:"key"`
	Bytes      int64  `json:"bytes"`
	Rows       int64  `json:"rows"`
	CRC64NVME  string `json:"crc64nvme"` // base64 of 8 big-endian bytes, as S3 writes it; over the bytes as written
	ETag       string `json:"etag"`
	Checkpoint int64  `json:"checkpoint"`
}

// envelope is the object's text. The checksum is over the bytes of the record value as they stand.
type envelope struct {
	Format    string          `json:"format"`
	Version   int             `json:"version"`
	CRC64NVME string          `json:"crc64nvme"`
	Record    json.RawMessage `json:"record"`
}

// Encode returns the record as one JSON document with format, version and checksum.
func (r Record) Encode() ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode commit record of checkpoint %d: %w", r.Checkpoint, err)
	}
	out, err := json.Marshal(envelope{
		Format: recordFormat, Version: recordVersion,
		CRC64NVME: multipart.CRC(crc64nvme.Checksum(body)).String(), Record: body,
	})
	if err != nil {
		return nil, fmt.Errorf("encode commit record of checkpoint %d: %w", r.Checkpoint, err)
	}
	return append(out, '\n'), nil
}

// DecodeRecord reads what Encode wrote. Errors satisfy errors.Is(err, ErrRecord).
func DecodeRecord(text []byte) (Record, error) {
	var e envelope
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	if rest := bytes.TrimSpace(text[dec.InputOffset():]); len(rest) > 0 {
		return Record{}, fmt.Errorf("%w: %d bytes after its end", ErrRecord, len(rest))
	}
	switch {
	case e.Format != recordFormat:
		return Record{}, fmt.Errorf("%w: format is %q, not %q", ErrRecord, e.Format, recordFormat)
	case e.Version != recordVersion:
		return Record{}, fmt.Errorf("%w: version %d, this program reads version %d", ErrRecord, e.Version, recordVersion)
	}
	if sum := multipart.CRC(crc64nvme.Checksum(e.Record)).String(); sum != e.CRC64NVME {
		return Record{}, fmt.Errorf("%w: checksum is %s, the text says %s", ErrRecord, sum, e.CRC64NVME)
	}
	var r Record
	if err := json.Unmarshal(e.Record, &r); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	if err := r.validate(); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return r, nil
}

// keys returns the keys of all files that the record settles.
func (r Record) keys() map[string]bool {
	keys := make(map[string]bool, len(r.Files)+len(r.Skipped))
	for _, f := range slices.Concat(r.Files, r.Skipped) {
		keys[f.Key] = true
	}
	return keys
}

func (r Record) validate() error {
	var rows, size, skipped int64
	seen := make(map[string]bool, len(r.Files)+len(r.Skipped))
	for i, f := range slices.Concat(r.Files, r.Skipped) {
		switch {
		case f.Key == "" || seen[f.Key]:
			return fmt.Errorf("file %q is empty or listed twice", f.Key)
		case f.Bytes <= 0 || f.Rows < 0:
			return fmt.Errorf("file %q has %d bytes and %d rows", f.Key, f.Bytes, f.Rows)
		}
		seen[f.Key] = true
		if i >= len(r.Files) {
			skipped += f.Rows
			continue
		}
		rows += f.Rows
		size += f.Bytes
	}
	if r.Checkpoint <= 0 || r.TotalFiles < int64(len(r.Files)) || r.TotalRows < rows || r.TotalBytes < size ||
		r.TotalSkippedRows < skipped || r.RowsAccepted < r.TotalRows+r.TotalSkippedRows {
		return fmt.Errorf("totals of checkpoint %d do not add up", r.Checkpoint)
	}
	return nil
}

// totals returns the counts over this record and all earlier ones.
func (r Record) totals() Totals {
	return Totals{Files: r.TotalFiles, Rows: r.TotalRows, Bytes: r.TotalBytes, SkippedRows: r.TotalSkippedRows}
}
