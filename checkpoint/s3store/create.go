package s3store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/s3fs"
)

const (
	// createTries is how often an object is asked for whose creation is uncertain. The retries of the client come on top; they
	// end where an answer was lost.
	createTries = 3

	// settleTime is how long it may take, after the caller's context has ended, to find out what became of a write that was
	// on its way.
	settleTime = 20 * time.Second
)

// outcome is what is known about an object after create.
type outcome uint8

const (
	created outcome = iota + 1 // it is there, with our bytes
	taken                      // it is there, with other bytes
	absent                     // it is not there, and nothing of ours is on its way
	unknown                    // none of the above is certain
)

// create makes the object at path, which must not exist, and looks what is there, whatever the store has answered: a success may be a lie, and
// a refusal may be due to an earlier attempt of our own. data must differ from what any other run would write. The error says
// why it is not created.
func (s *Store) create(ctx context.Context, path s3fs.Path, data []byte) (outcome, error) {
	certain := true
	var err error
	for range createTries {
		err = s.fs.PutIfAbsent(ctx, path, data)
		if err != nil && unsent(err) {
			break
		}
		there, look := insist(ctx, func(ctx context.Context) (outcome, error) { return s.compare(ctx, path, data) })
		switch {
		case look != nil:
			return unknown, errors.Join(err, look)
		case there == created:
			return created, nil
		case there == taken:
			return taken, fmt.Errorf("%s: %w", path, s3fs.ErrExists)
		}
		if err == nil {
			err = fmt.Errorf("%s: the store reported success, but there is no object", path)
		}
		if refused(err) {
			break // the client has tried often enough
		}
		// The write may still come, from a store or a proxy that has not given up on it. To ask again is the way to be certain: one of the
		// two creates the object.
		certain = false
		if ctx.Err() != nil {
			break
		}
	}
	if certain {
		return absent, err
	}
	return unknown, err
}

// unsent says whether a failed call has sent nothing, in any attempt.
func unsent(err error) bool {
	e, ok := errors.AsType[*s3fs.OpError](err)
	return ok && e.Attempts == 0 && !errors.Is(err, s3fs.ErrExists)
}

// refused says whether a failed conditional PUT has ended with a refusal of the store. Then no attempt before it is on its way either: the
// client repeats such a call only after an answer, or when no connection was made.
func refused(err error) bool {
	e, ok := errors.AsType[*s3fs.OpError](err)
	switch {
	case !ok, errors.Is(err, s3fs.ErrExists): // by an object that is not there: something is on its way
		return false
	case errors.Is(err, s3fs.ErrUnreachable):
		return true
	}
	return e.Class == retrymode.Permanent || e.Class == retrymode.Throttle
}

// compare says whether the object at path has our bytes, other ones, or is absent.
func (s *Store) compare(ctx context.Context, path s3fs.Path, data []byte) (outcome, error) {
	there, err := s.readObject(ctx, path, int64(len(data)))
	switch {
	case err == nil && bytes.Equal(there, data):
		return created, nil
	case err == nil, errors.Is(err, errTooLong):
		return taken, nil
	case errors.Is(err, s3fs.ErrNotFound):
		return absent, nil
	}
	return 0, err
}

var errTooLong = errors.New("too long")

// readObject reads an object of at most limit bytes.
func (s *Store) readObject(ctx context.Context, path s3fs.Path, limit int64) ([]byte, error) {
	r, err := s.fs.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes: %w", path, limit, errTooLong)
	}
	return data, nil
}

// insist runs look, and if the caller's context has ended meanwhile, once more with a time of its own: what was begun has to be known.
func insist[T any](ctx context.Context, look func(context.Context) (T, error)) (T, error) {
	v, err := look(ctx)
	if err == nil || ctx.Err() == nil {
		return v, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	return look(ctx)
}
