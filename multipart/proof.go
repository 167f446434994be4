package multipart

import (
	"crypto/md5" //nolint:gosec // S3 computes ETags with it; it proves nothing by itself
	"encoding/hex"
	"fmt"
	"io"
	"slices"
)

// verdict is what a look at the object says.
type verdict uint8

const (
	ours     verdict = iota + 1 // token, size and content are this upload's
	foreign                     // somebody else's object
	missing                     // nothing there
	unproven                    // cannot be told
)

// expectation is what the object must look like.
type expectation struct {
	token string
	size  int64
	crc   CRC
	// etags returns the ETags the store may have computed, none when that cannot be known. It is asked only when the store
	// gives no checksum.
	etags func() []string
}

// judge compares an object with the expectation; for anything but ours, why says what differs. Only a missing or
// different token makes an object foreign: evidence about the content can confirm ownership, never deny it, because ETags
// are no MD5 under SSE-KMS and on some stores.
func (e expectation) judge(o Object) (v verdict, why string) {
	switch {
	case o.Token == "":
		return foreign, "it carries no owner token"
	case o.Token != e.token:
		return foreign, fmt.Sprintf("its owner token is %q, not %q", o.Token, e.token)
	case o.Size != e.size:
		return unproven, fmt.Sprintf("the object has our token but %d bytes instead of %d", o.Size, e.size)
	case o.HasCRC && o.CRC == e.crc:
		return ours, ""
	case o.HasCRC:
		return unproven, fmt.Sprintf("the object has our token and size but checksum %v instead of %v", o.CRC, e.crc)
	}
	got, want := trimETag(o.ETag), e.etags()
	switch {
	case len(want) == 0:
		return unproven, "the object has our token and size, but there is no checksum and no computable etag to compare"
	case !slices.Contains(want, got):
		return unproven, fmt.Sprintf("the object has our token and size but etag %q instead of %q, and no checksum", got, want[0])
	}
	return ours, ""
}

// multipartETag returns the ETag S3 gives a completed upload: the MD5 of the parts' binary MD5s, a dash, and their number.
// It is "" when a part's ETag is no MD5.
func multipartETag(etags []string) string {
	sum := md5.New() //nolint:gosec // see the import
	for _, e := range etags {
		b, err := hex.DecodeString(e)
		if err != nil || len(b) != md5.Size {
			return ""
		}
		sum.Write(b)
	}
	return fmt.Sprintf("%x-%d", sum.Sum(nil), len(etags))
}

// bodyETag returns the ETag S3 gives bytes sent in one piece: their MD5.
func bodyETag(b *body) string {
	sum := md5.New() //nolint:gosec // see the import
	if _, err := io.Copy(sum, b); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// expect returns what the published object must look like.
func (u *Upload) expect() expectation {
	u.mu.Lock()
	defer u.mu.Unlock()
	return expectation{token: u.token, size: u.offset, crc: u.digest(), etags: u.etags}
}

// etags computes the ETags the published object may have: from the answers to the part uploads, and for bytes that are
// still here from the bytes, since another process may have sent them. A file of one part has two: that process may have
// sent it by PUT or, after Spill, as a multipart upload, and a handle does not always know which.
func (u *Upload) etags() []string {
	u.mu.Lock()
	parts := make([]string, max(len(u.parts), 1))
	bodies := make(map[int]*body)
	if u.small() && len(u.tail.pages) > 0 {
		bodies[0] = u.tail.open()
	}
	for i, p := range u.parts {
		if parts[i] = p.etag; !p.acked && len(p.data.pages) > 0 {
			bodies[i] = p.data.open()
		}
	}
	u.mu.Unlock()
	for i, b := range bodies {
		parts[i] = bodyETag(b)
		b.close()
	}
	whole := multipartETag(parts)
	switch {
	case whole == "":
		return nil
	case len(parts) == 1:
		return []string{whole, parts[0]}
	}
	return []string{whole}
}
