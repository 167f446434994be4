package sink

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/multipart"
)

// Restore makes the sink what it was at the restored checkpoint, or prepares a fresh start when there is none. It must be called
// once, before the first row. Open files go on where they were; with fewer writers than open files, the remaining
// files are finished as they are. Commit of the restored checkpoint must follow.
//
// It refuses to go back behind a commit record (ErrNewerRecord), unless Options.Rollback takes that back first, and to take over the state
// of another path (ErrState).
func (s *Sink[T]) Restore(ctx context.Context, r checkpoint.Restored) error {
	if s.closed.Load() {
		return ErrClosed
	}
	s.epoch = r.Epoch
	if r.ID == 0 {
		_, err := s.recordsOf(ctx, 0, nil, nil)
		return err
	}
	st, files, err := decodeState(r.State)
	if err != nil {
		return err
	}
	if st.Location != s.location() || st.Job != s.job || st.Shard != s.shard {
		return fmt.Errorf("%w: checkpoint %d is of job %s, shard %s, path %s; this one is job %s, shard %s, path %s",
			ErrState, r.ID, st.Job, st.Shard, st.Location, s.job, s.shard, s.location())
	}
	s.moved = s.movedFrom(st, r.ID)
	s.restored = st.RowsAccepted
	s.totals, s.skipped = st.Published, st.Skipped
	s.accepted = st.RowsAccepted
	s.uncommitted = append(st.Uncommitted, r.ID)
	records, err := s.recordsOf(ctx, r.ID, s.uncommitted, finished(files))
	if err != nil {
		return err
	}
	if s.moved != nil && !records.any && st.Published.Files > 0 {
		return s.moved.notHere(fmt.Sprintf("there is no commit record of the %d files that were published", st.Published.Files))
	}
	if files, err = s.settleRecorded(ctx, r.ID, records, files); err != nil {
		return err
	}
	if st.Rewound != nil && s.recorded < r.ID {
		if files, err = s.withdraw(ctx, *st.Rewound, r.ID, files); err != nil {
			return err
		}
	}
	if st.Rewound != nil || records.rolledBack {
		files = s.renamed(files)
	}
	s.raiseFences(r.ID, files)
	return s.resume(ctx, r.ID, files, r.Blobs)
}

// settleRecorded reads the records of checkpoints that were uncommitted, and drops the files that they list. When the newest record counts
// less than the checkpoint does, the line of checkpoints that this one is on was left, and what it takes for published was taken back.
func (s *Sink[T]) settleRecorded(ctx context.Context, id checkpoint.ID, records shardRecords, files []restoredFile) ([]restoredFile, error) {
	published := s.totals
	for i, e := range records.some {
		open := slices.Contains(s.uncommitted, checkpoint.ID(e.Checkpoint))
		record, err := e.Read(ctx)
		if err != nil {
			return nil, err
		}
		newest := i == len(records.some)-1
		if newest && (record.TotalFiles < published.Files || record.TotalRows < published.Rows) {
			return nil, fmt.Errorf("%w: by checkpoint %d, %d files with %d rows were published, but %s counts %d files with %d rows: the job has gone back "+
				"behind it since, and what was published then was taken back",
				ErrState, id, published.Files, published.Rows, e.Path, record.TotalFiles, record.TotalRows)
		}
		if open {
			s.totals, s.skipped = record.totals(), withoutEntries(s.skipped, record.Skipped)
			s.recorded = checkpoint.ID(e.Checkpoint)
			files = unsettled(files, record)
		}
	}
	return files, nil
}

// raiseFences finds the checkpoints whose records a dead or replaced run may still write. It commits in order, so there is none
// before the newest that is there.
func (s *Sink[T]) raiseFences(id checkpoint.ID, files []restoredFile) {
	pending := slices.ContainsFunc(files, func(f restoredFile) bool { return f.handle.Sealed })
	if !pending && len(s.skipped) == 0 || s.recorded == id {
		return
	}
	for _, open := range s.uncommitted {
		if open > s.recorded {
			s.fences = append(s.fences, open)
		}
	}
}

// unsettled drops the files that a commit record lists: they are published, and nobody looks for them again.
func unsettled(files []restoredFile, r Record) []restoredFile {
	listed := r.keys()
	var rest []restoredFile
	for _, f := range files {
		if !listed[f.handle.Target.Key] {
			rest = append(rest, f)
		}
	}
	return rest
}

// resume takes the files over. Bytes that the checkpoint holds come back into the memory budget on credit: a restore must not
// depend on a budget that was larger before.
func (s *Sink[T]) resume(ctx context.Context, id checkpoint.ID, files []restoredFile, blobs checkpoint.Blobs) error {
	s.budget.Credit(true)
	defer s.budget.Credit(false)
	parts := make([]*part, len(files))
	var g errgroup.Group
	g.SetLimit(s.parallel)
	for i, f := range files {
		g.Go(func() error {
			o := s.uploadOptions()
			o.PartSize = f.handle.PartSize // fixed for the life of an upload
			u, err := multipart.Resume(ctx, s.api, f.handle, blobs, o)
			if expiredAtRestore(err) { // a store may say so once and be wrong: see reallyGone
				u, err = multipart.Resume(ctx, s.api, f.handle, blobs, o)
			}
			if expiredAtRestore(err) {
				return s.expiredFile(id, f, err)
			}
			if err != nil {
				return err
			}
			parts[i] = &part{upload: u, key: f.handle.Target.Key, rows: f.rows, staged: f.staged, restored: true}
			if f.handle.Sealed {
				parts[i].saved = &files[i].handle
			}
			return nil
		})
	}
	err := g.Wait()
	free := 0 // writers without an open file begin here
	for i, p := range parts {
		switch {
		case p == nil:
		case files[i].handle.Sealed:
			s.pending = append(s.pending, p)
		case free < len(s.writers):
			s.writers[free].open = p
			free++
		default:
			err = errors.Join(err, p.upload.Seal())
			last := s.writers[len(s.writers)-1]
			last.sealed = append(last.sealed, p)
		}
	}
	return err
}

// expiredFile gives an open file up whose upload is gone, or returns the error that says so.
func (s *Sink[T]) expiredFile(id checkpoint.ID, f restoredFile, err error) error {
	h := f.handle
	if s.moved != nil {
		return fmt.Errorf("%w: %w", s.moved.notHere("there is no upload of "+h.Target.Key), err)
	}
	if s.expired != ExpiredSkip {
		return &ExpiredError{Key: h.Target.Key, UploadID: h.UploadID, CreatedAt: h.CreatedAt, Rows: f.rows, Bytes: h.Offset, Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skipped = append(s.skipped, FileEntry{
		Key: h.Target.Key, Bytes: h.Offset, Rows: f.rows, CRC64NVME: h.CRC.String(), Checkpoint: int64(id),
	})
	return nil
}

// withoutEntries returns the entries that are not among the listed ones.
func withoutEntries(entries, listed []FileEntry) []FileEntry {
	return slices.DeleteFunc(slices.Clone(entries), func(e FileEntry) bool {
		return slices.ContainsFunc(listed, func(l FileEntry) bool { return l.Key == e.Key })
	})
}

// shardRecords are the commit records of a shard, as far as a restored checkpoint is concerned.
type shardRecords struct {
	any        bool
	some       []RecordEntry // those asked for, and the newest that is not of a later checkpoint
	rolledBack bool          // there were later ones
}

// recordsOf lists the commit records of some checkpoints up to id, and returns ErrNewerRecord when a later one exists, unless later ones
// are to be rolled back, all but the files that the checkpoint publishes itself.
func (s *Sink[T]) recordsOf(ctx context.Context, id checkpoint.ID, some []checkpoint.ID, kept map[string]bool) (shardRecords, error) {
	prefix := RecordPrefix(s.path.Key, s.job) + s.shard + "/"
	var found shardRecords
	var last RecordEntry
	var newer []RecordEntry
	for e, err := range listRecords(ctx, s.fs, s.path, prefix) {
		found.any = true
		switch {
		case err != nil:
			return shardRecords{}, fmt.Errorf("list the commit records of job %s: %w", s.job, err)
		case e.Checkpoint > int64(id) && s.rollback:
			newer = append(newer, e)
		case e.Checkpoint > int64(id):
			return shardRecords{}, newerRecord(e, int64(id))
		default:
			last = e
			if slices.Contains(some, checkpoint.ID(e.Checkpoint)) {
				found.some = append(found.some, e)
			}
		}
	}
	if n := len(found.some); last.Checkpoint > 0 && (n == 0 || found.some[n-1].Checkpoint < last.Checkpoint) {
		found.some = append(found.some, last)
	}
	found.rolledBack = len(newer) > 0
	return found, s.unpublish(ctx, newer, kept)
}
