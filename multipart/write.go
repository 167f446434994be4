package multipart

import (
	"context"
	"errors"
)

// Write takes all of p or, when it returns an error, nothing of it: memory for the whole of p is there before the first
// byte is copied. It blocks while the budget is exhausted, until ctx is done, credit is on, or the upload fails. It keeps
// no reference to p.
//
// A p larger than a part is the exception: it is taken part by part, and the count says how much of it was taken when an
// error ends it. An error of a part upload in the background is returned by the next Write.
func (u *Upload) Write(ctx context.Context, p []byte) (int, error) {
	return u.write(ctx, p, true)
}

// TryWrite is Write that returns ErrBudgetFull where Write would wait for memory, so that the caller can first free some
// of its own, for example with Spill of another file.
func (u *Upload) TryWrite(p []byte) (int, error) {
	return u.write(context.Background(), p, false)
}

func (u *Upload) write(ctx context.Context, p []byte, wait bool) (int, error) {
	if ctx.Err() != nil {
		return 0, u.fault("write", context.Cause(ctx))
	}
	if int64(len(p)) <= u.partSize {
		if err := u.take(ctx, p, wait); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	if err := u.fits(int64(len(p))); err != nil {
		return 0, err
	}
	done := 0
	for done < len(p) {
		u.mu.Lock()
		room := u.partSize - u.tail.size
		u.mu.Unlock()
		n := int(min(room, int64(len(p)-done)))
		if err := u.take(ctx, p[done:done+n], wait); err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// take appends p, at most one part long, whole or not at all.
func (u *Upload) take(ctx context.Context, p []byte, wait bool) error {
	u.mu.Lock()
	need, straddles := u.need(int64(len(p)))
	if err := u.writable(int64(len(p))); err != nil || need == 0 {
		if err == nil {
			u.fill(p, nil)
		}
		u.mu.Unlock()
		return err
	}
	stop := u.stop
	u.mu.Unlock()

	var pages []*page
	if wait {
		var err error
		pages, err = u.budget.acquire(ctx, stop, u.scratch[:0], need, straddles)
		if err != nil {
			return u.writeInterrupted(err)
		}
	} else {
		var ok bool
		if pages, ok = u.budget.tryAcquire(u.scratch[:0], need, straddles); !ok {
			return u.fault("write", ErrBudgetFull)
		}
	}
	u.scratch = pages[:0]

	u.mu.Lock()
	err := u.writable(int64(len(p)))
	if err == nil {
		u.fill(p, pages)
	}
	u.mu.Unlock()
	if err != nil {
		release(pages)
	}
	clear(pages)
	return err
}

// writeInterrupted is the error of a write that got no memory: what ended the upload, or else the caller's cause.
func (u *Upload) writeInterrupted(cause error) error {
	u.mu.Lock()
	err := u.writable(0)
	u.mu.Unlock()
	if err != nil && errors.Is(cause, ErrClosed) {
		return err
	}
	return u.fault("write", cause)
}

// need returns the pages that n more bytes take, and whether they end a part and start the next. Called with the lock
// held; n is at most one part.
func (u *Upload) need(n int64) (pages int, straddles bool) {
	first := min(n, u.partSize-u.tail.size)
	pages = u.tail.missing(first)
	if rest := n - first; rest > 0 {
		return pages + pagesFor(rest), true
	}
	return pages, false
}

// fill appends p and cuts each part that becomes full. Called with the lock held.
func (u *Upload) fill(p []byte, pages []*page) {
	for len(p) > 0 {
		n := int(min(int64(len(p)), u.partSize-u.tail.size))
		pages = u.tail.append(p[:n], pages)
		u.offset += int64(n)
		p = p[n:]
		if u.tail.size == u.partSize {
			u.cut()
		}
	}
}

// writable returns why n more bytes cannot be written. Called with the lock held.
func (u *Upload) writable(n int64) error {
	switch {
	case u.abandoned:
		return u.fault("write", ErrClosed)
	case u.sealed:
		return u.fault("write", ErrSealed)
	case u.err != nil:
		return u.err
	case n > u.partSize*int64(u.maxParts)-u.offset:
		return u.fault("write", ErrTooManyParts)
	}
	return nil
}

func (u *Upload) fits(n int64) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.writable(n)
}
