package multipart

import (
	"context"
	"errors"
	"fmt"
)

const (
	hintClaim   = "the upload keeps what it needs; commit again, or restart from the checkpoint"
	hintForeign = "a key must be used by one writer only; nothing was overwritten by this commit"
)

// Commit publishes the sealed file and proves it: whatever the store answers, Commit looks at the object and returns nil
// only when it carries the owner token, the size and the content of this upload. It returns the object as the store shows
// it.
//
// The errors are the verdicts: [ErrForeign], another object is at the key; [ErrMissing], nothing is there; [ErrUnknown], it
// cannot be told. The latter two are [ErrUnproven] and wrap the cause, for example [ErrNoSuchUpload]. Any other error came
// before anything was published. After an error Commit may be called again: it looks before it publishes again, and sends parts that had
// failed. After success further calls return the same object.
//
// A file smaller than one part is sent in one PUT from memory. An empty file is never published: Commit returns a zero
// Object and no error. After success all memory is back and the upload's goroutines have ended.
func (u *Upload) Commit(ctx context.Context) (Object, error) {
	if !u.committing.CompareAndSwap(false, true) {
		return Object{}, u.fault("commit", ErrBusy)
	}
	defer u.committing.Store(false)
	u.claims = false
	return u.commit(ctx)
}

// commit is Commit and Publish. With u.claims set it may end without a look, with u.claimed set.
func (u *Upload) commit(ctx context.Context) (Object, error) {
	if object, done, err := u.commitState(ctx); done || err != nil {
		return object, err
	}
	if u.claimed != "" { // acknowledged by an earlier Publish: all that is left to do is to look
		u.claimed = ""
		return u.prove(ctx, "", nil)
	}
	if u.expect().size == 0 {
		return u.finish(Object{}), nil
	}
	if u.look {
		object, v, err := u.inspect(ctx)
		switch {
		case v == ours:
			return u.finish(object), nil
		case v != missing:
			return Object{}, err
		}
	}
	if u.unverified {
		acked, total := u.ackedParts()
		if err := u.verify(ctx, acked, total); err != nil {
			return Object{}, u.lost(err)
		}
	}
	u.restart()
	if u.isSmall() {
		return u.commitSmall(ctx)
	}
	return u.commitParts(ctx)
}

// commitState says whether there is anything to do.
func (u *Upload) commitState(ctx context.Context) (object Object, done bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.committed:
		return u.object, true, nil
	case u.abandoned:
		return Object{}, true, u.fault("commit", ErrClosed)
	case !u.sealed:
		return Object{}, true, u.fault("commit", ErrNotSealed)
	case ctx.Err() != nil:
		return Object{}, true, u.fault("commit", context.Cause(ctx))
	}
	return Object{}, false, nil
}

// lost adds to a verification error after the look found nothing: the bytes are neither published nor in the upload.
func (u *Upload) lost(err error) error {
	if !errors.Is(err, ErrNoSuchUpload) {
		return err
	}
	return &Error{
		Op: "commit", Target: u.target, UploadID: u.UploadID(), Hint: hintUploadGone,
		Err: fmt.Errorf("%w, and the upload is gone: %w", ErrMissing, ErrNoSuchUpload),
	}
}

// ackedParts returns the parts the store has acknowledged, and the number of all parts.
func (u *Upload) ackedParts() (acked []Part, total int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, p := range u.parts {
		if p.acked {
			acked = append(acked, p.wire())
		}
	}
	return acked, len(u.parts)
}

// small reports whether the file is to be published by one PUT. Called with the lock held.
func (u *Upload) small() bool { return len(u.parts) == 0 }

func (u *Upload) isSmall() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.small()
}

// commitParts waits for the parts and completes the upload.
func (u *Upload) commitParts(ctx context.Context) (Object, error) {
	parts, err := u.waitParts(ctx)
	if errors.Is(err, ErrNoSuchUpload) {
		return u.prove(ctx, "upload part", err) // somebody may have completed it
	}
	if err != nil {
		return Object{}, err
	}
	want := u.expect()
	u.look = true
	answer, err := u.api.Complete(ctx, u.target, u.UploadID(), parts, want.size, want.crc)
	if err == nil && u.claims && u.claim(answer, partsETag(parts)) {
		return Object{}, nil
	}
	return u.prove(ctx, "complete", err)
}

// waitParts returns the parts once all are acknowledged.
func (u *Upload) waitParts(ctx context.Context) ([]Part, error) {
	u.mu.Lock()
	parts, stop := u.parts, u.stop
	u.mu.Unlock()
	for _, p := range parts {
		select {
		case <-p.done:
			continue
		default:
		}
		select {
		case <-p.done:
		case <-stop:
			if err := u.Err(); err != nil {
				return nil, err
			}
			return nil, u.fault("commit", ErrClosed)
		case <-ctx.Done():
			return nil, u.fault("commit", context.Cause(ctx))
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	list := make([]Part, len(parts))
	for i, p := range parts {
		list[i] = p.wire()
	}
	return list, nil
}

// commitSmall publishes a file of less than one part.
func (u *Upload) commitSmall(ctx context.Context) (Object, error) {
	want := u.expect()
	u.mu.Lock()
	if u.abandoned {
		u.mu.Unlock()
		return Object{}, u.fault("commit", ErrClosed)
	}
	b := u.tail.open()
	u.mu.Unlock()
	u.look = true
	answer, err := u.api.Put(ctx, u.target, u.token, b, want.size, want.crc)
	claimed := err == nil && u.claims && want.size <= maxHashedBody && u.claim(answer, wholeETag(b))
	b.close()
	if claimed {
		return Object{}, nil
	}
	return u.prove(ctx, "put", err)
}

// prove looks at the object after an attempt to publish it; said is what the store said to that, nil for success.
func (u *Upload) prove(ctx context.Context, op string, said error) (Object, error) {
	cause := reason(op, said)
	object, v, err := u.inspect(ctx)
	if v == ours {
		return u.finish(object), nil
	}
	if cause == nil && v != missing {
		return Object{}, err
	}
	out := &Error{Op: "commit", Target: u.target, UploadID: u.UploadID()}
	switch {
	case v == missing && cause == nil:
		out.Hint = hintClaim
		out.Err = fmt.Errorf("%w, although the store reported success", ErrMissing)
	case v == missing:
		out.Hint = hintOf(said)
		out.Err = fmt.Errorf("%w: %w", ErrMissing, cause)
	default: // foreign or unproven, as err says
		out.Hint = hintOf(err)
		out.Err = fmt.Errorf("%w; before that: %w", reason("look", err), cause)
	}
	return Object{}, out
}

// inspect looks at the object. The error is nil for ours and missing; otherwise it is the one to return.
func (u *Upload) inspect(ctx context.Context) (Object, verdict, error) {
	object, err := u.api.Head(ctx, u.target)
	out := &Error{Op: "commit", Target: u.target, UploadID: u.UploadID()}
	switch {
	case errors.Is(err, ErrNotFound):
		return Object{}, missing, nil
	case err != nil:
		out.Hint = hintOf(err)
		out.Err = fmt.Errorf("%w: %w", ErrUnknown, reason("head", err))
		return Object{}, unproven, out
	}
	object.ETag = trimETag(object.ETag)
	v, why := u.expect().judge(object)
	switch v {
	case foreign:
		out.Hint = hintForeign
		out.Err = fmt.Errorf("%w: %s", ErrForeign, why)
	case unproven:
		out.Err = fmt.Errorf("%w: %s", ErrUnknown, why)
	default:
		return object, v, nil
	}
	return Object{}, v, out
}

// finish ends the upload after success: the goroutines are joined and the memory goes back.
func (u *Upload) finish(object Object) Object {
	u.mu.Lock()
	u.committed, u.object = true, object
	u.mu.Unlock()
	u.cancel(errCommitted)
	u.workers.Wait()
	release(u.drop())
	return object
}

var errCommitted = errors.New("the object is already published")
