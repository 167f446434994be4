package sink

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/multipart"
)

// snapshot is what the sink holds at one barrier. The writers go on while it is stored.
type snapshot[T any] struct {
	sink     *Sink[T]
	id       checkpoint.ID
	accepted int64
	totals   Totals // of earlier checkpoints
	skipped  []FileEntry
	files    []capturedFile
	// uncommitted are the earlier checkpoints whose commit has not ended.
	uncommitted []checkpoint.ID
}

// capturedFile is one file at the barrier: either a capture that still has to be stored, or a handle that an earlier
// durable checkpoint has stored already.
type capturedFile struct {
	part    *part
	rows    int64
	staged  int64
	capture *multipart.Capture
	handle  multipart.Handle
}

// Capture notes what every writer holds: instant, no I/O. It must be called inside a barrier, with no Write running.
func (s *Sink[T]) Capture(id checkpoint.ID) (checkpoint.Snapshot, error) {
	if s.closed.Load() {
		return nil, ErrClosed
	}
	if s.rolling.OnCheckpoint {
		if err := s.Seal(); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.writers {
		for _, p := range w.sealed {
			p.staged = int64(id)
			s.pending = append(s.pending, p)
		}
		w.sealed = nil
	}
	for before, stored := range s.stored {
		if before < id { // and so durable, though its commit may wait behind others
			stored.keep()
		}
	}
	snap := &snapshot[T]{sink: s, id: id, accepted: s.rowsAccepted(), totals: s.totals, skipped: slices.Clone(s.skipped)}
	s.uncommitted = slices.DeleteFunc(s.uncommitted, func(open checkpoint.ID) bool { return open >= id }) // abandoned, and now again
	snap.uncommitted = slices.Clone(s.uncommitted)
	s.uncommitted = append(s.uncommitted, id)
	for _, p := range s.pending {
		snap.files = append(snap.files, captureFile(p))
	}
	for _, w := range s.writers {
		if w.open != nil {
			snap.files = append(snap.files, captureFile(w.open))
		}
	}
	s.oldest = oldestUpload(snap.files)
	return snap, nil
}

func oldestUpload(files []capturedFile) (oldest time.Time) {
	for _, f := range files {
		if at := f.part.upload.CreatedAt(); !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
	}
	return oldest
}

// keep notes the handles that a durable checkpoint holds. A later one's take their place: the blobs of the earlier may go.
func (s *snapshot[T]) keep() {
	for i, f := range s.files {
		if f.handle.Sealed && f.part.savedBy < s.id {
			f.part.saved, f.part.savedBy = &s.files[i].handle, s.id
		}
	}
}

func captureFile(p *part) capturedFile {
	f := capturedFile{part: p, rows: p.rows, staged: p.staged}
	if p.saved != nil {
		f.handle = *p.saved
	} else {
		f.capture = p.upload.Capture()
	}
	return f
}

// Store makes the snapshot durable as the returned state and the blobs it refers to.
func (s *snapshot[T]) Store(ctx context.Context, blobs checkpoint.Blobs) ([]byte, []string, error) {
	var g errgroup.Group
	g.SetLimit(storeParallelism)
	errs := make([]error, len(s.files))
	for i := range s.files {
		f := &s.files[i]
		if f.capture == nil {
			continue
		}
		g.Go(func() error {
			f.handle, errs[i] = f.capture.Store(ctx, blobs)
			return errs[i]
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, fmt.Errorf("store the sink's files at checkpoint %d: %w", s.id, err)
	}
	text, refs, err := s.encode()
	if err != nil {
		return nil, nil, err
	}
	s.sink.mu.Lock()
	s.sink.stored[s.id] = s
	s.sink.mu.Unlock()
	return text, refs, nil
}

// storeParallelism bounds the files whose bytes are stored at once. Most of the time is spent waiting for parts in
// flight, so it does not have to fit the number of cores.
const storeParallelism = 64

func (s *snapshot[T]) encode() (text []byte, refs []string, err error) {
	st := state{
		Version: plainStateVersion, Location: s.sink.location(), Endpoint: s.sink.endpoint(), Job: s.sink.job, Shard: s.sink.shard,
		RowsAccepted: s.accepted, Published: s.totals, Skipped: s.skipped, Uncommitted: s.uncommitted, Files: make([]fileState, 0, len(s.files)),
	}
	for _, f := range s.files {
		handle, err := f.handle.MarshalBinary()
		if err != nil {
			return nil, nil, err
		}
		st.Files = append(st.Files, fileState{Handle: handle, Rows: f.rows, Staged: f.staged})
		for _, piece := range f.handle.Pieces {
			refs = append(refs, piece.Ref)
		}
	}
	text, err = json.Marshal(st)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the sink's state at checkpoint %d: %w", s.id, err)
	}
	return text, refs, nil
}

// Discard gives back what the snapshot holds. The work of an abandoned checkpoint goes into the next one.
func (s *snapshot[T]) Discard() {
	for _, f := range s.files {
		if f.capture != nil {
			f.capture.Release()
		}
	}
}

// pendingRefs returns the blob references of files that are finished and not published.
func (s *snapshot[T]) pendingRefs() (refs []string) {
	for _, f := range s.files {
		if f.handle.Sealed {
			for _, piece := range f.handle.Pieces {
				refs = append(refs, piece.Ref)
			}
		}
	}
	return refs
}
