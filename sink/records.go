package sink

import (
	"context"
	"fmt"
	"iter"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/s3fs"
)

// RecordEntry is a commit record that was listed and not read yet.
type RecordEntry struct {
	Path       s3fs.Path
	Job        string
	Shard      checkpoint.Shard
	Checkpoint int64

	fs *s3fs.FS
}

// Read reads and decodes the record. A record that cannot be decoded is an ErrRecord.
func (e RecordEntry) Read(ctx context.Context) (Record, error) {
	text, err := readRecord(ctx, e.fs, e.Path)
	if err != nil {
		return Record{}, err
	}
	r, err := DecodeRecord(text)
	if err != nil {
		return Record{}, fmt.Errorf("%s: %w", e.Path, err)
	}
	return r, nil
}

// Records lists the commit records of all jobs and shards below a sink's path, each shard's in the order of its checkpoints. An
// object that is no record comes as an entry with its Path and an ErrRecord, and the listing goes on; it ends with any other
// error.
func Records(ctx context.Context, fs *s3fs.FS, path s3fs.Path) iter.Seq2[RecordEntry, error] {
	return listRecords(ctx, fs, path, RecordPrefix(path.Key, ""))
}

func listRecords(ctx context.Context, fs *s3fs.FS, path s3fs.Path, prefix string) iter.Seq2[RecordEntry, error] {
	return func(yield func(RecordEntry, error) bool) {
		for info, err := range fs.List(ctx, s3fs.Path{Bucket: path.Bucket, Key: prefix}) {
			if err != nil {
				yield(RecordEntry{}, err)
				return
			}
			job, shard, id, ok := parseRecordKey(path.Key, info.Path.Key)
			if !ok {
				if !yield(RecordEntry{Path: info.Path}, fmt.Errorf("%w: %s is not the name of one", ErrRecord, info.Path)) {
					return
				}
				continue
			}
			if !yield(RecordEntry{Path: info.Path, Job: job, Shard: shard, Checkpoint: id, fs: fs}, nil) {
				return
			}
		}
	}
}
