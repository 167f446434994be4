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

// Rewind makes what an older retained checkpoint holds the newest one, under the next number, so that history stays one line and a run that was replaced
// is fenced off as ever. It claims the next epoch. The older checkpoint itself is not changed. No run may be live; the next Restore finds
// what Rewind has saved.
//
// change turns the states of the older checkpoint into those to go on from: it is given both checkpoints, and participants with output behind the older one
// have to take that back when they restore what it returns. Its error is returned as it is, and nothing is saved then.
func Rewind(ctx context.Context, s Store, to ID, change func(older, newest Manifest) ([]NamedState, error)) (ID, error) {
	fail := func(id ID, err error) (ID, error) { return 0, &Error{Op: "rewind", ID: id, Err: err} }
	epoch, err := s.Claim(ctx)
	if err != nil {
		return fail(0, err)
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
