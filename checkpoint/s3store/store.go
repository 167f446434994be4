package s3store

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/s3fs"
)

// Store keeps the checkpoints of one shard of one job in a bucket. It implements [checkpoint.Store]; the package comment says what holds
// when two runs use it.
//
// Safe for concurrent use. Latest, Load, List and OpenBlob work without a claim, beside a live run, and after Close. The file system is
// the caller's and must outlive the Store.
type Store struct {
	fs    *s3fs.FS
	dir   s3fs.Path // the shard's prefix, without a slash at its end
	job   string
	shard string

	turn chan struct{} // held by Claim, Save, Prune and Close, across I/O

	mu     sync.Mutex
	claim  claim
	closed bool
	count  int64 // of blobs of this run
	// live are blobs of checkpoints that are not saved yet: Prune leaves them alone.
	live map[string]checkpoint.ID
	// read is what the manifests to keep name, as far as this run has saved or read them. It is used under the turn only.
	read map[checkpoint.ID]namedBlobs
}

// claim is an epoch and the ETag of its object. The zero value is no claim.
type claim struct {
	epoch int64
	tag   string
}

var _ checkpoint.Store = (*Store)(nil)

// Open returns the store of a shard of a job below root, which may be a whole bucket. It makes no request: whether the bucket is there and may be
// written is for s3fs.FS.CheckBucket to say. Job names are those that checkpoint.ValidateJob accepts.
func Open(fs *s3fs.FS, root s3fs.Path, job string, shard checkpoint.Shard) (*Store, error) {
	err := errors.Join(checkpoint.ValidateJob(job), shard.Validate())
	if fs == nil {
		err = errors.Join(errors.New("no file system"), err)
	}
	s := &Store{
		fs: fs, dir: root.Join(job).Join(shard.Dir()), job: job, shard: shard.Dir(),
		turn: make(chan struct{}, 1), live: make(map[string]checkpoint.ID), read: make(map[checkpoint.ID]namedBlobs),
	}
	if err == nil {
		err = s.path(longestName()).Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint store: %w", err)
	}
	return s, nil
}

// Path returns the prefix of the shard.
func (s *Store) Path() s3fs.Path { return s.dir }

// path returns the path of a name below the prefix of the shard.
func (s *Store) path(name string) s3fs.Path { return s.dir.Join(name) }

// List implements checkpoint.Store.
func (s *Store) List(ctx context.Context) ([]checkpoint.ID, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	l, err := s.look(retrymode.WithPriority(ctx), manifestPrefix)
	return l.ids, err
}

// Close implements checkpoint.Store. It makes no request: the claim lasts until another run claims. It waits for a Claim, Save or Prune
// that is going on.
func (s *Store) Close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.claim = true, claim{}
	return nil
}

// begin takes the turn for something that changes the store.
func (s *Store) begin(ctx context.Context) (_ context.Context, done func(), err error) {
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		<-s.turn
		return nil, nil, fmt.Errorf("checkpoint store %s: %w", s.dir, checkpoint.ErrClosed)
	}
	return retrymode.WithPriority(ctx), func() { <-s.turn }, nil
}

// claimed returns the claim of this run.
func (s *Store) claimed() (claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return claim{}, fmt.Errorf("checkpoint store %s: %w", s.dir, checkpoint.ErrClosed)
	case s.claim.epoch == 0:
		return claim{}, fmt.Errorf("checkpoint store %s: %w", s.dir, checkpoint.ErrUnclaimed)
	}
	return s.claim, nil
}

// rules checks that the claim is the latest one in l.
func (s *Store) rules(c claim, l listing) error {
	if l.epoch() != c.epoch {
		return fmt.Errorf("this run has epoch %d, but %s says %d: %w", c.epoch, s.dir, l.epoch(), checkpoint.ErrFenced)
	}
	if l.tags[epochName(c.epoch)] != c.tag {
		// Only a store without conditional PUT lets this happen.
		return fmt.Errorf("another run claimed epoch %d of %s too: %w", c.epoch, s.dir, checkpoint.ErrFenced)
	}
	return nil
}

// next numbers a blob of this run.
func (s *Store) next() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	return s.count
}
