package sink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/s3fs"
)

// Commit publishes every file that checkpoint id or an earlier one staged, proves each, and then writes the commit record that
// lists them. It is called after the checkpoint is durable, and again for the restored one after a restart.
//
// A file that cannot be proven does not stop the others: it stays pending, with its bytes in every later checkpoint, and the
// returned error joins one *CommitError per such file. ErrRecordConflict means that this run has been replaced.
func (s *Sink[T]) Commit(ctx context.Context, id checkpoint.ID) error {
	if s.closed.Load() {
		return ErrClosed
	}
	s.committing.Lock()
	defer s.committing.Unlock()

	s.keepSaved(id)
	if err := s.settleUnconfirmed(ctx); err != nil {
		return err
	}
	if err := s.putFences(ctx, id); err != nil {
		return err
	}
	due := s.due(id)
	failed := s.publish(ctx, due)
	if errors.Is(failed, ErrOtherStore) {
		return failed // nothing of this job belongs there, and no record either
	}
	var err error
	if s.recorded != id {
		err = s.record(ctx, id, due)
	} // else it is written (before a restart); what was proven since waits for the next one's.
	s.closeCommits(id)
	return errors.Join(failed, err)
}

// closeCommits notes that the commits up to id have ended: no record of theirs is on its way any more.
func (s *Sink[T]) closeCommits(id checkpoint.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unconfirmed == nil {
		s.uncommitted = slices.DeleteFunc(s.uncommitted, func(open checkpoint.ID) bool { return open <= id })
	}
}

// due returns the pending files that checkpoint id covers.
func (s *Sink[T]) due(id checkpoint.ID) []*part {
	s.mu.Lock()
	defer s.mu.Unlock()
	var due []*part
	for _, p := range s.pending {
		if p.staged <= int64(id) {
			due = append(due, p)
		}
	}
	return due
}

// keepSaved notes the handles that checkpoint id holds, now that it is durable, and forgets the snapshots before it.
func (s *Sink[T]) keepSaved(id checkpoint.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if snap := s.stored[id]; snap != nil {
		s.accepted = snap.accepted
		snap.keep()
	}
	for old := range s.stored {
		if old <= id {
			delete(s.stored, old)
		}
	}
}

// publish commits files in parallel, sets proven on those that are in the store, and tries the others again until the deadline.
func (s *Sink[T]) publish(ctx context.Context, due []*part) error {
	start := time.Now()
	errs := make([]error, len(due))
	for try := 1; ; try++ {
		again := s.publishOnce(ctx, due, errs, func(p *part, err error) error {
			return &CommitError{
				Key: p.key, UploadID: p.upload.UploadID(), Checkpoint: p.staged,
				Tries: try, Tried: time.Since(start), Err: err,
			}
		})
		wait := min(commitPause<<(try-1), maxCommitPause)
		if !again || time.Since(start)+wait > s.deadline {
			return s.unpublished(ctx, due, errs)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return errors.Join(errs...)
		}
	}
}

// unpublished is what remains at the deadline: expired files are given up or named as such, the others stay pending.
func (s *Sink[T]) unpublished(ctx context.Context, due []*part, errs []error) error {
	for i, p := range due {
		if errs[i] == nil || !expiredAtCommit(errs[i]) || !s.reallyGone(ctx, p) {
			continue
		}
		if s.moved != nil && p.restored {
			errs[i] = fmt.Errorf("%w: %w", s.moved.notHere("there is no upload of "+p.key), errs[i])
			continue
		}
		if s.expired == ExpiredSkip {
			s.giveUp(p)
			errs[i] = nil
			continue
		}
		errs[i] = &ExpiredError{
			Key: p.key, UploadID: p.upload.UploadID(), CreatedAt: p.upload.CreatedAt(), Rows: p.rows, Bytes: p.upload.Offset(), Err: errs[i],
		}
	}
	return errors.Join(errs...)
}

// Pauses between two tries at a file that could not be proven.
const (
	commitPause    = 250 * time.Millisecond
	maxCommitPause = 5 * time.Second
)

// publishOnce tries every file that is not proven, and says whether another try may help any of those that failed.
func (s *Sink[T]) publishOnce(ctx context.Context, due []*part, errs []error, failed func(*part, error) error) (again bool) {
	var todo []int
	for i, p := range due {
		if p.proven == nil {
			todo = append(todo, i)
		}
	}
	var retry atomic.Bool
	settle := func(i int, object multipart.Object, err error) {
		if err == nil {
			due[i].proven, errs[i] = &object, nil
			return
		}
		errs[i] = failed(due[i], err)
		if !errors.Is(err, multipart.ErrForeign) {
			retry.Store(true)
		}
	}
	if s.listThreshold > 0 && len(todo) >= s.listThreshold {
		todo = s.publishMany(ctx, due, todo, settle)
	}
	s.each(todo, func(i int) {
		object, err := due[i].upload.Commit(ctx)
		settle(i, object, err)
	})
	return retry.Load()
}

// each calls f for each of the numbers, some of them at once.
func (s *Sink[T]) each(numbers []int, f func(int)) {
	var g errgroup.Group
	g.SetLimit(s.parallel)
	for _, i := range numbers {
		g.Go(func() error {
			f(i)
			return nil
		})
	}
	_ = g.Wait() // f returns none
}

// unconfirmedRecord is a record that is being put, or whose PUT ended in an error: it may be in the store, or get there later.
type unconfirmedRecord struct {
	key    string
	text   []byte
	record Record
	files  []*part
}

// record writes the commit record of checkpoint id for the proven files among due and settles them.
func (s *Sink[T]) record(ctx context.Context, id checkpoint.ID, due []*part) error {
	r := s.newRecord(id)
	s.mu.Lock()
	r.Skipped = slices.Clone(s.skipped)
	s.mu.Unlock()
	for _, f := range r.Skipped {
		r.TotalSkippedRows += f.Rows
	}
	var files []*part
	for _, p := range due {
		if p.proven == nil {
			continue
		}
		files = append(files, p)
		r.Files = append(r.Files, FileEntry{
			Key: p.key, Bytes: p.upload.Offset(), Rows: p.rows,
			CRC64NVME: p.upload.Digest().String(), ETag: p.proven.ETag, Checkpoint: p.staged,
		})
		r.TotalFiles++
		r.TotalRows += p.rows
		r.TotalBytes += p.upload.Offset()
	}
	if len(files) == 0 && len(r.Skipped) == 0 && !slices.Contains(s.fences, id) {
		return nil
	}
	return s.putRecord(ctx, r, files)
}

// newRecord returns a record of checkpoint id that lists nothing.
func (s *Sink[T]) newRecord(id checkpoint.ID) Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Record{
		Job: s.job, Shard: s.shard, Checkpoint: int64(id), Epoch: s.epoch, CreatedAt: time.Now().UTC(),
		TotalFiles: s.totals.Files, TotalRows: s.totals.Rows, TotalBytes: s.totals.Bytes, TotalSkippedRows: s.totals.SkippedRows,
		RowsAccepted: s.accepted,
	}
}

// putRecord encodes and writes a record that lists the given files.
func (s *Sink[T]) putRecord(ctx context.Context, r Record, files []*part) error {
	text, err := r.Encode()
	if err != nil {
		return err
	}
	key := RecordKey(s.path.Key, s.job, s.shard, r.Checkpoint)
	return s.put(ctx, &unconfirmedRecord{key: key, text: text, record: r, files: files})
}

// putTries is how often a record is put. An answer that was lost is no retry of the client's: each is followed by a look.
const putTries = 3

// putFences writes empty records for the checkpoints up to the restored one, but before the given one, whose commits had not ended. A record of
// theirs that a dead or replaced run has sent may still be on its way; the one that comes first stands, and a file must not be
// listed by two.
func (s *Sink[T]) putFences(ctx context.Context, before checkpoint.ID) error {
	for len(s.fences) > 0 && s.fences[0] < before {
		if id := s.fences[0]; id > s.recorded {
			if err := s.putRecord(ctx, s.newRecord(id), nil); err != nil {
				return err
			}
		}
		s.fences = s.fences[1:]
	}
	return nil
}

// put writes a record. After an error it looks: the record may be there all the same. Until a record of this checkpoint is known
// to be there no other one is written, and the text stays as it is: it may reach the store late, and a record that lists its files a
// second time must not exist.
func (s *Sink[T]) put(ctx context.Context, u *unconfirmedRecord) error {
	s.mu.Lock()
	s.unconfirmed = u
	s.mu.Unlock()
	var err error
	for range putTries {
		if err = s.fs.PutIfAbsent(ctx, s.recordPath(u.key), u.text); err == nil {
			s.settle(u)
			return nil
		}
		there, look := s.lookFor(ctx, u)
		if look != nil {
			return errors.Join(look, err)
		}
		if there {
			return nil
		}
	}
	return fmt.Errorf("write the commit record of checkpoint %d: %w", u.record.Checkpoint, err)
}

// settleUnconfirmed finishes the record whose PUT ended in an error.
func (s *Sink[T]) settleUnconfirmed(ctx context.Context) error {
	u := s.unconfirmed
	if u == nil {
		return nil
	}
	if there, err := s.lookFor(ctx, u); there || err != nil {
		return err
	}
	return s.put(ctx, u)
}

// lookFor looks for the record of u's checkpoint and settles the files of the one that is there.
func (s *Sink[T]) lookFor(ctx context.Context, u *unconfirmedRecord) (there bool, err error) {
	text, err := readRecord(ctx, s.fs, s.recordPath(u.key))
	switch {
	case errors.Is(err, s3fs.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for the commit record of checkpoint %d: %w", u.record.Checkpoint, err)
	case bytes.Equal(text, u.text):
		s.settle(u)
		return true, nil
	}
	return true, s.settlePredecessor(u, text)
}

// settlePredecessor handles a record of the same checkpoint that is not ours. The run that was replaced by this one may have written
// it after this one had looked: it has proven the same files by the same tokens, so what it lists is settled. A record of a
// later run means that this run has been replaced.
func (s *Sink[T]) settlePredecessor(u *unconfirmedRecord, text []byte) error {
	r, err := DecodeRecord(text)
	if err != nil {
		return fmt.Errorf("%s: %w", s.recordPath(u.key), err)
	}
	if r.Epoch >= s.epoch {
		return fmt.Errorf("%w: %s is of epoch %d, this run is epoch %d", ErrRecordConflict, s.recordPath(u.key), r.Epoch, s.epoch)
	}
	// It may list files that this run could not prove.
	s.settle(&unconfirmedRecord{key: u.key, text: text, record: r, files: s.pendingOf(r)})
	return nil
}

// pendingOf returns the pending files that a record lists.
func (s *Sink[T]) pendingOf(r Record) (files []*part) {
	listed := r.keys()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pending {
		if listed[p.key] {
			files = append(files, p)
		}
	}
	return files
}

// settle removes the files of a durable record from the pending list.
func (s *Sink[T]) settle(u *unconfirmedRecord) {
	settled := make(map[*part]bool, len(u.files))
	for _, p := range u.files {
		settled[p] = true
	}
	defer func() {
		for p := range settled {
			if p.proven == nil { // a run that was replaced has published it
				p.upload.Abandon()
			}
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.pending[:0:0]
	for _, p := range s.pending {
		if !settled[p] {
			rest = append(rest, p)
		}
	}
	s.pending = rest
	s.skipped = withoutEntries(s.skipped, u.record.Skipped)
	s.totals = u.record.totals()
	s.recorded = checkpoint.ID(u.record.Checkpoint)
	s.unconfirmed = nil
}

func (s *Sink[T]) recordPath(key string) s3fs.Path { return s3fs.Path{Bucket: s.path.Bucket, Key: key} }

// readRecord returns the text of a commit record.
func readRecord(ctx context.Context, fs *s3fs.FS, path s3fs.Path) ([]byte, error) {
	r, err := fs.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxRecordBytes+1))
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	if len(text) > maxRecordBytes {
		return nil, fmt.Errorf("%w: %s is larger than %d bytes", ErrRecord, path, maxRecordBytes)
	}
	return text, nil
}

// maxRecordBytes bounds what is read of a commit record: some 300 bytes per file make room for 200,000 files.
const maxRecordBytes = 64 << 20
