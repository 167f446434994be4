package s3fs

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/retrymode"
)

// closeGrace is how long Close waits for cancelled calls to come back. They
// only have to notice; the bound is there for a credential helper that does not.
const closeGrace = 5 * time.Second

// permanent is short for the class of an error that no repetition mends.
const permanent = retrymode.Permanent

// FS is the file system on one store. It is safe for concurrent use. Open it
// with Open or Clients.Open, end it with Close.
type FS struct {
	client   *client
	settings Settings
	log      *slog.Logger
	release  func() // gives the client back

	// life ends with Close and cancels what is still in flight then. It is stored
	// because it is not the context of a call but of the object, and every call is
	// bound to both.
	life context.Context
	end  context.CancelCauseFunc

	mu     sync.Mutex
	closed bool
	active int           // calls in flight
	idle   chan struct{} // closed when closed and active == 0

	closing sync.Once
	gone    chan struct{} // closed when Close has finished
	err     error         // of Close; valid once gone is closed
}

// Info describes an object.
type Info struct {
	Path         Path
	Size         int64 // bytes
	ETag         string
	LastModified time.Time

	// What follows is known after Stat, not from List.

	// Metadata are the user's own headers, names in lower case without x-amz-meta-.
	Metadata map[string]string
	// CRC is the checksum of the whole object when HasCRC says that the store keeps one.
	CRC    multipart.CRC
	HasCRC bool
}

// Open returns a file system with a client of its own, as the keys of this
// package and of retrymode say. It reads the AWS configuration chain but makes
// no request to the store: CheckBucket does. The error joins all problems.
func Open(ctx context.Context, c *config.Config, opts ...Option) (*FS, error) {
	s, err := FromConfig(c)
	if err != nil {
		return nil, err
	}
	return openAlone(ctx, s, newDeps(opts))
}

// OpenSettings is Open for callers without a config.Config.
func OpenSettings(ctx context.Context, s Settings, opts ...Option) (*FS, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return openAlone(ctx, s, newDeps(opts))
}

func openAlone(ctx context.Context, s Settings, d deps) (*FS, error) {
	c, err := newClient(ctx, s, d)
	if err != nil {
		return nil, err
	}
	return newFS(c, s, d, c.close), nil
}

func newFS(c *client, s Settings, d deps, release func()) *FS {
	f := &FS{client: c, settings: s, log: d.logger, release: release, idle: make(chan struct{}), gone: make(chan struct{})}
	f.life, f.end = context.WithCancelCause(context.Background())
	return f
}

// Settings returns what the file system was opened with. Secrets in it do not
// print.
func (f *FS) Settings() Settings { return f.settings }

// CallTimeout is the end-to-end deadline of a call that moves size bytes:
// s3.call.timeout, or when that is 0 attempts x (20 s + max-backoff) +
// attempts x size / 64 KiB/s. It is generous on purpose: waiting for a throttled
// store is backpressure, not failure.
func (f *FS) CallTimeout(size int64) time.Duration { return f.settings.callTimeout(size) }

// Stats returns what the client has seen so far; file systems that share a
// client share its statistics.
func (f *FS) Stats() retrymode.Stats { return f.client.retryer.Stats() }

// Stat describes the object at p by a HEAD. An error is ErrNotFound, and with it
// fs.ErrNotExist, when nothing is there.
func (f *FS) Stat(ctx context.Context, p Path) (Info, error) {
	return f.head(ctx, call{op: "stat", path: p, permission: "s3:GetObject"})
}

func (f *FS) head(ctx context.Context, c call) (Info, error) {
	if c.path.Key == "" {
		return Info{}, noKey(c)
	}
	in := &s3.HeadObjectInput{Bucket: aws.String(c.path.Bucket), Key: aws.String(c.path.Key)}
	if f.settings.Checksums {
		in.ChecksumMode = types.ChecksumModeEnabled
	}
	out, err := invoke(ctx, f, c, func(ctx context.Context) (*s3.HeadObjectOutput, error) {
		return f.client.s3.HeadObject(ctx, in)
	})
	if err != nil {
		return Info{}, err
	}
	info := Info{
		Path: c.path, Size: aws.ToInt64(out.ContentLength), ETag: unquote(out.ETag),
		LastModified: aws.ToTime(out.LastModified), Metadata: out.Metadata,
	}
	info.CRC, info.HasCRC = f.fullCRC(out.ChecksumCRC64NVME, out.ChecksumType)
	return info, nil
}

// fullCRC reads a checksum that covers a whole object. A composite one, which
// is a checksum of checksums, ends in "-N" and does not parse.
func (f *FS) fullCRC(text *string, kind types.ChecksumType) (multipart.CRC, bool) {
	if text == nil || kind == types.ChecksumTypeComposite || !f.settings.Checksums {
		return 0, false
	}
	crc, err := multipart.ParseCRC(*text)
	return crc, err == nil
}

// noKey is the error of an operation on one object whose path names none.
func noKey(c call) error {
	return &OpError{Op: c.op, Path: c.path, Class: permanent, Err: fmt.Errorf("%w: the key is empty", fs.ErrInvalid)}
}

// Close ends the file system: new calls fail with ErrClosed, calls in flight may
// finish until ctx ends or s3.close.timeout is over and are cancelled then, and
// answers being read fail with ErrClosed. Nothing is aborted or deleted in the
// store. The last file system of a client closes its connections. Close is
// idempotent; every call returns when the work is done, with the same error.
func (f *FS) Close(ctx context.Context) error {
	f.closing.Do(func() {
		defer close(f.gone)
		f.mu.Lock()
		f.closed = true
		if f.active == 0 {
			close(f.idle)
		}
		f.mu.Unlock()
		f.err = f.drain(ctx)
		f.release()
	})
	<-f.gone
	return f.err
}

// drain waits for the calls in flight and cancels those that take too long.
func (f *FS) drain(ctx context.Context) error {
	defer f.end(ErrClosed)
	ctx, cancel := context.WithTimeout(ctx, f.settings.CloseTimeout)
	defer cancel()
	select {
	case <-f.idle:
		return nil
	case <-ctx.Done():
	}
	f.mu.Lock()
	left := f.active
	f.mu.Unlock()
	f.end(ErrClosed)
	select {
	case <-f.idle:
		return fmt.Errorf("close the file system: %d calls were still in flight and have been cancelled", left)
	case <-time.After(closeGrace):
		return fmt.Errorf("close the file system: %d calls were still in flight and do not end", left)
	}
}
