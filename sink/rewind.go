package sink

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/s3fs"
)

// rewound is in the state of a checkpoint that goes back to an older one: see Rewound.
type rewound struct {
	// To is the checkpoint that was gone back to. What the records of those between it and this one list is to be taken back.
	To checkpoint.ID `json:"to"`
	// Files are those that may be published and in no record.
	Files []string `json:"files,omitempty"`
	// Before is what the checkpoint To has to take back itself, if it had gone back too and its record is not written yet.
	Before *rewound `json:"before,omitempty"`
}

// Rewound returns the state to go on from when a job goes back from the checkpoint from, whose state is newest, to the checkpoint to, whose state
// is older: the older state, which whoever restores it must prepare by taking back what was published in between. It is for the
// states of one checkpoint.Rewind.
func Rewound(older, newest []byte, to checkpoint.ID) ([]byte, error) {
	st, files, err := decodeState(older)
	if err != nil {
		return nil, err
	}
	left, leftFiles, err := decodeState(newest)
	if err != nil {
		return nil, err
	}
	if st.Location != left.Location || st.Job != left.Job || st.Shard != left.Shard {
		return nil, fmt.Errorf("%w: of job %s, shard %s, path %s and of job %s, shard %s, path %s",
			ErrState, st.Job, st.Shard, st.Location, left.Job, left.Shard, left.Location)
	}
	back := rewound{To: to, Before: st.Rewound}
	st.Uncommitted = append(st.Uncommitted, to)
	for r := left.Rewound; r != nil; r = r.Before {
		back.Files = append(back.Files, r.Files...)
	}
	for _, f := range leftFiles {
		if f.handle.Sealed {
			back.Files = append(back.Files, f.handle.Target.Key)
		}
	}
	kept := finished(files)
	back.Files = slices.DeleteFunc(back.Files, func(key string) bool { return kept[key] })
	slices.Sort(back.Files)
	back.Files = slices.Compact(back.Files)
	st.Version, st.Rewound = stateVersion, &back
	return json.Marshal(st)
}

// finished returns the keys of the files that are published as they are, now or later.
func finished(files []restoredFile) map[string]bool {
	keys := map[string]bool{}
	for _, f := range files {
		if f.handle.Sealed {
			keys[f.handle.Target.Key] = true
		}
	}
	return keys
}

// withdraw takes back what was published behind the checkpoint that was gone back to, before checkpoint id. Every number in between keeps a
// record, an empty one, so that a run that was replaced cannot write one of its own. It begins anew after a crash: the state says what is
// to be done until the next checkpoint is durable. It returns the files that are still to be published.
func (s *Sink[T]) withdraw(ctx context.Context, back rewound, id checkpoint.ID, files []restoredFile) (_ []restoredFile, err error) {
	done := finished(files) // they stay
	if back.Before != nil && s.recorded < back.To {
		if files, err = s.withdraw(ctx, *back.Before, back.To, files); err != nil {
			return nil, err
		}
	}
	if files, err = s.closeUpTo(ctx, back.To, files); err != nil {
		return nil, err
	}
	goingOn := map[string]bool{}
	for _, f := range files {
		// It has parts in the store, so there is no object at its key, or it could not go on. A DELETE that comes late would find one.
		goingOn[f.handle.Target.Key] = !f.handle.Sealed && len(f.handle.Parts) > 0
	}
	gone := slices.DeleteFunc(slices.Clone(back.Files), func(key string) bool { return done[key] || goingOn[key] })
	if err := s.remove(ctx, gone); err != nil {
		return nil, err
	}
	for _, key := range gone {
		done[key] = true
	}
	if err := s.emptyBetween(ctx, back.To, id, done); err != nil {
		return nil, err
	}
	s.recorded, s.uncommitted = id-1, []checkpoint.ID{id}
	return files, nil
}

// closeUpTo sees to it that the checkpoints up to the one that was gone back to have their records, and drops the files that these list.
func (s *Sink[T]) closeUpTo(ctx context.Context, to checkpoint.ID, files []restoredFile) ([]restoredFile, error) {
	for _, open := range s.uncommitted {
		if open <= s.recorded || open > to {
			continue
		}
		r, err := s.closeNumber(ctx, open)
		if err != nil {
			return nil, err
		}
		s.totals, s.skipped, s.recorded = r.totals(), withoutEntries(s.skipped, r.Skipped), open
		files = unsettled(files, r)
	}
	return files, nil
}

// emptyBetween removes the files that the records between two checkpoints list, but for those that are done with, and leaves empty records.
func (s *Sink[T]) emptyBetween(ctx context.Context, to, id checkpoint.ID, done map[string]bool) error {
	for between := id - 1; between > to; between-- {
		r, err := s.closeNumber(ctx, between)
		if err != nil {
			return err
		}
		var keys []string
		for _, f := range r.Files {
			if !done[f.Key] {
				keys = append(keys, f.Key)
			}
		}
		if err := s.remove(ctx, keys); err != nil {
			return err
		}
		if err := s.emptyRecord(ctx, between); err != nil {
			return err
		}
	}
	return nil
}

// closeNumber returns the record of a checkpoint, and writes an empty one if there is none.
func (s *Sink[T]) closeNumber(ctx context.Context, id checkpoint.ID) (Record, error) {
	r := s.newRecord(id)
	text, err := r.Encode()
	if err != nil {
		return Record{}, err
	}
	path := s.recordPath(RecordKey(s.path.Key, s.job, s.shard, int64(id)))
	there, err := readRecord(ctx, s.fs, path)
	if errors.Is(err, s3fs.ErrNotFound) {
		if err = s.fs.PutIfAbsent(ctx, path, text); err == nil {
			return r, nil
		}
		// Another one may have come first, or the answer is lost.
		if there, err = readRecord(ctx, s.fs, path); err != nil {
			return Record{}, fmt.Errorf("close checkpoint %d: %w", id, err)
		}
	}
	if err != nil {
		return Record{}, fmt.Errorf("close checkpoint %d: %w", id, err)
	}
	if r, err = DecodeRecord(there); err != nil {
		return Record{}, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// emptyRecord puts an empty record over that of a checkpoint.
func (s *Sink[T]) emptyRecord(ctx context.Context, id checkpoint.ID) error {
	text, err := s.newRecord(id).Encode()
	if err != nil {
		return err
	}
	path := s.recordPath(RecordKey(s.path.Key, s.job, s.shard, int64(id)))
	if err := s.fs.Put(ctx, path, bytes.NewReader(text)); err != nil {
		return fmt.Errorf("take back checkpoint %d: %w", id, err)
	}
	return nil
}

// renamed gives the open files that have nothing in the store another name, after files were taken back: theirs may be among those. A
// DELETE, or what the run before had sent, may reach the store late, and must not meet a new file.
func (s *Sink[T]) renamed(files []restoredFile) []restoredFile {
	files = slices.Clone(files)
	for i := range files {
		h := &files[i].handle
		if h.Sealed || len(h.Parts) > 0 {
			continue
		}
		h.Target, h.Token = s.writers[i%len(s.writers)].nextName()
		h.UploadID, h.Epoch = "", s.epoch
	}
	return files
}

// remove deletes part files.
func (s *Sink[T]) remove(ctx context.Context, keys []string) error {
	for _, key := range keys {
		if err := s.fs.Delete(ctx, s.recordPath(key)); err != nil {
			return fmt.Errorf("take back what was published: %w", err)
		}
	}
	return nil
}
