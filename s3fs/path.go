package s3fs

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxKeyLength is the longest key S3 accepts, in bytes of UTF-8.
const MaxKeyLength = 1024

// maxBucketLength is the longest bucket name any store still accepts: S3 allows
// 63 today, 255 for buckets made under the old us-east-1 rules.
const maxBucketLength = 255

// Path names one object, or a prefix of objects, in one bucket.
//
// The key is opaque: nothing cleans, decodes or normalises it. "a//b", "../x",
// "a%2Fb" and "/x" are keys like any other, because S3 keeps them apart and a
// connector that does not would write one object and read another. An empty
// key names the whole bucket and is only good as a prefix.
type Path struct {
	Bucket string
	Key    string
}

// PathError says why a text is not a path of this file system.
type PathError struct {
	Text   string // as given
	Reason string
}

// Error implements error.
func (e *PathError) Error() string { return fmt.Sprintf("path %q: %s", e.Text, e.Reason) }

// ParsePath reads "s3://bucket/key" or "s3a://bucket/key". Everything after the
// first slash behind the bucket is the key, byte for byte; percent signs,
// question marks and number signs mean nothing special. The scheme is
// case-insensitive. "s3://bucket" and "s3://bucket/" give an empty key. Errors
// are *PathError.
func ParsePath(text string) (Path, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return Path{}, &PathError{text, "no scheme, want s3://bucket/key"}
	}
	if !strings.EqualFold(scheme, "s3") && !strings.EqualFold(scheme, "s3a") {
		return Path{}, &PathError{text, fmt.Sprintf("scheme %q is not s3 or s3a", scheme)}
	}
	bucket, key, _ := strings.Cut(rest, "/")
	p := Path{Bucket: bucket, Key: key}
	if reason := p.problem(); reason != "" {
		return Path{}, &PathError{text, reason}
	}
	return p, nil
}

// Validate reports what no store can accept: a missing or malformed bucket
// name, a key that is too long or not UTF-8. The error is a *PathError.
func (p Path) Validate() error {
	if reason := p.problem(); reason != "" {
		return &PathError{p.String(), reason}
	}
	return nil
}

// problem is deliberately laxer than the naming rules of S3 itself: capitals
// and underscores live on in old buckets and in other stores, and the store
// gives a better answer about its own rules than we could.
func (p Path) problem() string {
	if p.Bucket == "" {
		return "the bucket name is empty"
	}
	if len(p.Bucket) > maxBucketLength {
		return fmt.Sprintf("the bucket name has %d characters, at most %d are allowed", len(p.Bucket), maxBucketLength)
	}
	for _, r := range p.Bucket {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '_':
		default:
			return fmt.Sprintf("%q is not allowed in a bucket name", r)
		}
	}
	if len(p.Key) > MaxKeyLength {
		return fmt.Sprintf("the key has %d bytes, at most %d are allowed", len(p.Key), MaxKeyLength)
	}
	if !utf8.ValidString(p.Key) {
		return "the key is not UTF-8"
	}
	return ""
}

// String writes the path as "s3://bucket/key". ParsePath reads it back to the
// same path.
func (p Path) String() string { return "s3://" + p.Bucket + "/" + p.Key }

// Join returns the path of name below p: one slash is put between the two
// unless p's key is empty or already ends in one. The name is not cleaned.
func (p Path) Join(name string) Path {
	if p.Key != "" && !strings.HasSuffix(p.Key, "/") {
		name = "/" + name
	}
	return Path{Bucket: p.Bucket, Key: p.Key + name}
}
