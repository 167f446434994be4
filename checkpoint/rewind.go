package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Rewindable is declared by a source: what it gave after a position that a checkpoint holds comes again, the same, when that checkpoint is
// restored. A source that does not declare it is not.
type Rewindable interface {
	Rewindable() bool
}

// ErrNotRewindable is returned where a source must be able to give its rows again and does not say that it can.
var ErrNotRewindable = errors.New("the source cannot give its rows again")

// RequireRewindable returns an ErrNotRewindable that names the source, unless it declares that it is rewindable.
func RequireRewindable(source Participant) error {
	if r, ok := source.(Rewindable); ok && r.Rewindable() {
		return nil
	}
	return fmt.Errorf("%s: %w", source.Name(), ErrNotRewindable)
}

// RewindStore is a Store in which one can go back.
type RewindStore interface {
	Store
	// NewestEpoch returns the greatest epoch that any run has claimed. It does not need a claim.
	NewestEpoch(ctx context.Context) (int64, error)
}

// Rewind makes what an older retained checkpoint holds the newest one, under the next number, so that history stays one line and a run that
// was replaced is fenced off as ever. It claims the next epoch. The older checkpoint itself is not changed. No run may be live; the next
// Restore finds what Rewind has saved.
//
// after is the epoch of the run that has to go back. When another one was claimed since, that run was replaced: Rewind returns ErrFenced and changes
// nothing, for what is gone may be what the other run has finished.
//
// change turns the states of the older checkpoint into those to go on from: it is given both checkpoints, and participants with output
// behind the older one have to take that back when they restore what it returns. Its error is returned as it is, and nothing is saved then.
func Rewind(ctx context.Context, s RewindStore, after int64, to ID, change func(older, newest Manifest) ([]NamedState, error)) (ID, error) {
	fail := func(id ID, err error) (ID, error) { return 0, &Error{Op: "rewind", ID: id, Err: err} }
	replaced := func(by int64) (ID, error) {
		return fail(0, fmt.Errorf("this run had epoch %d, and epoch %d was claimed since: %w", after, by, ErrFenced))
	}
	// Before the claim, which would fence that run.
	if now, err := s.NewestEpoch(ctx); err != nil {
		return fail(0, err)
	} else if now != after {
		return replaced(now)
	}
	epoch, err := s.Claim(ctx)
	if err != nil {
		return fail(0, err)
	}
	if epoch != after+1 {
		return replaced(epoch - 1)
	}
	newest, err := s.Latest(ctx)
	if err != nil {
		return fail(0, err)
	}
	if to >= newest.ID {
		return fail(to, fmt.Errorf("it is not older than checkpoint %d", newest.ID))
	}
	m, err := s.Load(ctx, to)
	if err != nil {
		return fail(to, err)
	}
	if m.States, err = change(m, newest); err != nil {
		return 0, err
	}
	m.ID, m.Epoch, m.CreatedAt = newest.ID+1, epoch, time.Now()
	if err := s.Save(ctx, m); err != nil {
		return fail(m.ID, err)
	}
	return m.ID, nil
}
