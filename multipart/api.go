package multipart

import (
	"context"
	"io"
	"time"
)

// Target names one object.
type Target struct {
	Bucket string
	Key    string
}

// String returns the target as s3://bucket/key.
func (t Target) String() string { return "s3://" + t.Bucket + "/" + t.Key }

// Part is one part the store has acknowledged.
type Part struct {
	Number int32  // 1 is the first
	Size   int64  // bytes
	ETag   string // as the store answered, without quotes
	CRC    CRC    // of the part's bytes; zero when unknown (a store that does not list checksums)
}

// Object is what the store says about an object.
type Object struct {
	Size         int64
	ETag         string // without quotes
	Token        string // the owner token from the object's metadata, "" when there is none
	CRC          CRC    // of the full object; valid only when HasCRC
	HasCRC       bool
	LastModified time.Time
}

// API is the part of an object store that an upload needs. Implementations are safe for concurrent use, own the retries
// of a single call, and return errors that satisfy errors.Is with [ErrNoSuchUpload] and [ErrNotFound] where that is what
// the store said. An implementation may return a *[Error] of its own, for example to report the attempts it made; it is
// completed with what it lacks and otherwise passed on.
//
// A body is valid only until the call returns; reads after that fail. It must be sent from its start, and may be read
// again after a Seek.
type API interface {
	// Create starts a multipart upload. The token is stored as object metadata, so that the finished object carries it.
	Create(ctx context.Context, t Target, token string) (uploadID string, err error)

	// UploadPart sends one part. A second call with the same number replaces the first.
	UploadPart(ctx context.Context, t Target, uploadID string, number int32, body io.ReadSeeker, size int64, crc CRC) (etag string, err error)

	// Complete asks the store to publish the upload as one object of the given size and checksum. Both the object it
	// returns and the absence of an error are claims; the upload looks for itself.
	Complete(ctx context.Context, t Target, uploadID string, parts []Part, size int64, crc CRC) (Object, error)

	// Abort drops a multipart upload and its parts. This package never calls it; it is here for the sweeper.
	Abort(ctx context.Context, t Target, uploadID string) error

	// ListParts returns all parts of an upload, in ascending order.
	ListParts(ctx context.Context, t Target, uploadID string) ([]Part, error)

	// Put writes a whole object with the token in its metadata.
	Put(ctx context.Context, t Target, token string, body io.ReadSeeker, size int64, crc CRC) (Object, error)

	// Head describes the object at the target, or returns an error that is [ErrNotFound].
	Head(ctx context.Context, t Target) (Object, error)
}

// Blobs is where a checkpoint keeps bytes of its own. References are opaque; a blob lives as long as a checkpoint names
// its reference.
type Blobs interface {
	// Put stores exactly size bytes of r. The reader is valid only until Put returns.
	Put(ctx context.Context, r io.Reader, size int64) (ref string, err error)
	// Open returns the bytes of a reference.
	Open(ctx context.Context, ref string) (io.ReadCloser, error)
}
