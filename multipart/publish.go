package multipart

import (
	"context"
	"io"
)

// Publish is Commit for a file among many, whose proof may come from a listing: it asks the store to publish and does not look when the answer is
// exactly what it has to be, a success with the ETag computed from this file's parts. Then proven is false and err is nil; call Listed with what
// a listing shows at the key, and Commit when that does not settle it, which looks as ever.
//
// Everything else is as in Commit: an answer that is lost, cut short or shows another ETag, a file that another process may have published
// already, and a file smaller than one part whose bytes would take longer to hash than a look takes, are looked at at once. proven is true
// then.
func (u *Upload) Publish(ctx context.Context) (object Object, proven bool, err error) {
	if !u.committing.CompareAndSwap(false, true) {
		return Object{}, false, u.fault("commit", ErrBusy)
	}
	defer u.committing.Store(false)
	u.claims = true
	object, err = u.commit(ctx)
	return object, err == nil && u.claimed == "", err
}

// Listed takes what a listing that was begun after Publish had returned shows at the key, and says whether the file is proven by it: the
// size is right and the ETag is the one that Publish was answered, which follows from this file's parts. Then the upload is committed.
// Otherwise nothing has changed.
func (u *Upload) Listed(size int64, etag string) (object Object, proven bool) {
	if !u.committing.CompareAndSwap(false, true) {
		return Object{}, false
	}
	defer u.committing.Store(false)
	object, done, err := u.commitState(context.Background())
	switch {
	case err != nil:
		return Object{}, false
	case done:
		return object, true
	case u.claimed == "" || trimETag(etag) != u.claimed || size != u.expect().size:
		return Object{}, false
	}
	u.claimed = ""
	return u.finish(Object{Size: size, ETag: trimETag(etag)}), true
}

// ClaimedETag returns the ETag for which Listed waits, "" when it waits for none. A store in which it is the same for files of different content
// computes no ETags: none of them may be proven by it. Not beside a running Commit or Publish.
func (u *Upload) ClaimedETag() string { return u.claimed }

// maxHashedBody is the size up to which the MD5 of a body costs less than the look that it saves.
const maxHashedBody = 256 << 10

// claim notes the store's answer to the call that publishes, if it is what it has to be.
func (u *Upload) claim(answer Object, want string) bool {
	if want == "" || trimETag(answer.ETag) != want || answer.HasCRC && answer.CRC != u.expect().crc {
		return false
	}
	u.claimed = want
	return true
}

// partsETag returns the ETag of an object made of parts, "" when theirs are no MD5s.
func partsETag(parts []Part) string {
	etags := make([]string, len(parts))
	for i, p := range parts {
		etags[i] = p.ETag
	}
	return multipartETag(etags)
}

// wholeETag returns the ETag of a body that was sent, from its start.
func wholeETag(b *body) string {
	if _, err := b.Seek(0, io.SeekStart); err != nil {
		return ""
	}
	return bodyETag(b)
}
