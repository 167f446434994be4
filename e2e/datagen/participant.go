package datagen

import (
	"context"

	"github.com/sluice-go/sluice/checkpoint"
)

var _ checkpoint.Participant = (*Source)(nil)

// Name is the source's name in manifests.
func (s *Source) Name() string { return "source" }

// Capture takes the position at the barrier. It does no I/O.
func (s *Source) Capture(checkpoint.ID) (checkpoint.Snapshot, error) {
	state, err := s.encode()
	if err != nil {
		return nil, err
	}
	return snapshot(state), nil
}

// Commit does nothing: rows are made again from their numbers, so nobody waits for an
// acknowledgement.
func (s *Source) Commit(context.Context, checkpoint.ID) error { return nil }

// Restore moves to the position of a checkpoint; without one the source starts at its first row.
// A position that cannot be read wraps [ErrPosition]; one of another seed, shard or field layout
// is refused with a [*MismatchError], because the rows would not be the ones that are committed
// already. The source is unchanged then.
func (s *Source) Restore(_ context.Context, r checkpoint.Restored) error {
	if r.State == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.position.Next = 0
		return nil
	}
	return s.restore(r.State)
}

// snapshot is an encoded position. It needs no blob.
type snapshot []byte

// Store returns the position.
func (s snapshot) Store(context.Context, checkpoint.Blobs) ([]byte, []string, error) {
	return s, nil, nil
}

// Discard does nothing; there is nothing to free.
func (s snapshot) Discard() {}

// Rewindable implements checkpoint.Rewindable: every row follows from its number.
func (s *Source) Rewindable() bool { return true }
