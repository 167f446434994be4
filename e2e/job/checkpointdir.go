package job

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/checkpoint/s3store"
	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/sink"
)

// bucketOf returns the path in a bucket that checkpoint.dir names; ok is false when it names a local directory.
func bucketOf(dir string) (path s3fs.Path, ok bool, err error) {
	if !strings.Contains(dir, "://") {
		return s3fs.Path{}, false, nil
	}
	path, err = s3fs.ParsePath(dir)
	return path, err == nil, err
}

// newCheckpointStore returns the checkpoint store of a job and shard, in a directory or in a bucket. It creates nothing.
func newCheckpointStore(fs *s3fs.FS, dir, job string, shard checkpoint.Shard) (checkpointLooker, error) {
	path, inBucket, err := bucketOf(dir)
	switch {
	case err != nil:
		return nil, err
	case inBucket:
		return s3store.Open(fs, path, job, shard)
	}
	return checkpoint.OpenDir(dir, job, shard.Dir())
}

// checkCheckpointPlace finds out what can be known of checkpoint.dir without the store: a directory must be writable, and a place in the
// bucket of the part files must not be among them, where readers, verify included, would take checkpoints for data.
func checkCheckpointPlace(dir string, data s3fs.Path) error {
	path, inBucket, err := bucketOf(dir)
	switch {
	case err != nil:
		return err
	case !inBucket:
		return checkDir(dir)
	case path.Bucket == data.Bucket && strings.HasPrefix(folder(path.Key), folder(data.Key)):
		return fmt.Errorf("%s = %q is below %s, %s: readers would take checkpoints for data", sink.KeyCheckpointDir.Name(), dir, sink.KeyPath.Name(), data)
	}
	return nil
}

// folder is the prefix of all keys below a key.
func folder(key string) string {
	if key = strings.TrimSuffix(key, "/"); key == "" {
		return ""
	}
	return key + "/"
}

// checkCheckpointBucket finds out early whether the bucket of the checkpoints can be used, if it is another one than the data's.
func checkCheckpointBucket(ctx context.Context, fs *s3fs.FS, dir, data string) error {
	path, inBucket, err := bucketOf(dir)
	if err != nil || !inBucket || path.Bucket == data {
		return err
	}
	return fs.CheckBucket(ctx, path.Bucket)
}

// checkpointLooker is a checkpoint store that can be looked into.
type checkpointLooker interface {
	checkpoint.Store
	sink.SweepStore
}

// checkpointReader is a checkpoint store as the reading commands use it.
type checkpointReader interface {
	checkpointLooker
	Location() string // for people
}

// openCheckpoints opens the checkpoint store of a job for reading. Nothing is claimed or created.
func openCheckpoints(ctx context.Context, cfg *config.Config, o sink.Options, log *slog.Logger, opts []s3fs.Option) (checkpointReader, error) {
	dir := config.Get(cfg, sink.KeyCheckpointDir)
	if dir == "" {
		return nil, &ConfigError{Err: fmt.Errorf("%s is required", sink.KeyCheckpointDir.Name())}
	}
	path, inBucket, err := bucketOf(dir)
	if err != nil {
		return nil, &ConfigError{Err: err}
	}
	if !inBucket {
		store, err := checkpoint.OpenDir(dir, o.Job, o.Shard.Dir())
		if err != nil {
			return nil, &ConfigError{Err: err}
		}
		return directoryReader{store}, nil
	}
	fs, err := openStore(ctx, cfg, path, log, opts)
	if err != nil {
		return nil, err
	}
	store, err := s3store.Open(fs, path, o.Job, o.Shard)
	if err != nil {
		return nil, joined(&ConfigError{Err: err}, fs.Close(context.WithoutCancel(ctx)))
	}
	return bucketReader{Store: store, fs: fs, ctx: context.WithoutCancel(ctx)}, nil
}

// placed is a store whose place is known otherwise.
type placed struct {
	checkpointLooker
	place string
}

func (p placed) Location() string { return p.place }

type directoryReader struct{ *checkpoint.DirStore }

func (d directoryReader) Location() string { return d.Path() }

// bucketReader is a store with a client of its own.
type bucketReader struct {
	*s3store.Store
	fs  *s3fs.FS
	ctx context.Context // for Close, which has none: the values of the one it was opened with
}

func (b bucketReader) Location() string { return b.Path().String() }

func (b bucketReader) Close() error { return joined(b.Store.Close(), b.fs.Close(b.ctx)) }
