package sink

import (
	"context"
	"fmt"
	"slices"
)

// unpublish takes back what records behind the restored checkpoint have published: newest record first, each record's files
// before the record itself, so that a crash in between leaves a record that names what may be gone and the next try goes on.
// Files that a consumer has moved meanwhile cannot be taken back; their rows will be there twice.
//
// kept are the files that the restored checkpoint had finished and not listed yet: they are what it will publish, and their uploads are gone.
func (s *Sink[T]) unpublish(ctx context.Context, newer []RecordEntry, kept map[string]bool) error {
	for _, e := range slices.Backward(newer) {
		r, err := e.Read(ctx)
		if err != nil {
			return fmt.Errorf("roll back behind checkpoint %d: %w", e.Checkpoint, err)
		}
		for _, f := range r.Files {
			if kept[f.Key] {
				continue
			}
			if err := s.fs.Delete(ctx, s.recordPath(f.Key)); err != nil {
				return fmt.Errorf("roll back behind checkpoint %d: %w", e.Checkpoint, err)
			}
		}
		if err := s.fs.Delete(ctx, e.Path); err != nil {
			return fmt.Errorf("roll back behind checkpoint %d: %w", e.Checkpoint, err)
		}
	}
	return nil
}

// newerRecord is the error of a restore that would go back behind a commit record.
func newerRecord(e RecordEntry, id int64) error {
	if id == 0 {
		return fmt.Errorf("%w: %s, but there is no checkpoint to go on from; bring the checkpoints back, use another %s, or take back what was published with --rollback",
			ErrNewerRecord, e.Path, KeyJobName.Name())
	}
	return fmt.Errorf("%w: %s, and the restored checkpoint is %d: its rows would be published twice; --rollback takes back what was published behind it",
		ErrNewerRecord, e.Path, id)
}
