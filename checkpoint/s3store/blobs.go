package s3store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/s3fs"
)

const (
	// maxBlob is the largest blob in bytes: S3 takes no more in one PUT.
	maxBlob = s3fs.MaxPartSize

	// deletesAtOnce is how many DELETEs run at a time.
	deletesAtOnce = 8

	// abortTime bounds the deletion of an abandoned checkpoint's blobs. What is left then is left to Prune.
	abortTime = time.Minute
)

// blobs are the blobs of one checkpoint that is being written, one object each. They are durable when Put returns.
type blobs struct {
	s     *Store
	id    checkpoint.ID
	epoch int64
	// cleanup is for Abort, which has no context of its own: it has the values of the one given to Store.Blobs, not its end.
	cleanup context.Context

	mu    sync.Mutex
	names []string // put, or tried to
	puts  int      // running
	ended bool
}

var _ checkpoint.BlobWriter = (*blobs)(nil)

// Blobs implements checkpoint.Store. Each Put makes one object of at most 5 GiB. A reader that is an io.ReadSeeker is read up to three times,
// from its position, and not kept; any other is held in memory in full until its Put returns.
func (s *Store) Blobs(ctx context.Context, id checkpoint.ID) (checkpoint.BlobWriter, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c, err := s.claimed()
	if err != nil {
		return nil, err
	}
	if id <= 0 {
		return nil, fmt.Errorf("blobs of checkpoint %d: ids begin at 1", id)
	}
	return &blobs{s: s, id: id, epoch: c.epoch, cleanup: context.WithoutCancel(ctx)}, nil
}

// Put implements checkpoint.Blobs. It is safe for concurrent use.
func (b *blobs) Put(ctx context.Context, r io.Reader, size int64) (string, error) {
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("put blob: %w", context.Cause(ctx))
	case size < 0:
		return "", fmt.Errorf("put blob of %d bytes: %w", size, checkpoint.ErrSize)
	case size > maxBlob:
		return "", fmt.Errorf("put blob of %d bytes, more than the %d of one PUT: %w", size, int64(maxBlob), checkpoint.ErrSize)
	}
	if err := b.enter(); err != nil {
		return "", err
	}
	defer b.leave()
	body, crc, err := seekable(r, size)
	if err != nil {
		return "", fmt.Errorf("put blob of %d bytes: %w", size, err)
	}
	name := blobName(b.id, b.epoch, b.s.next())
	b.register(name)
	if err := b.s.fs.Put(retrymode.WithPriority(ctx), b.s.blobPath(name), body); err != nil {
		return "", err // it names the object
	}
	return blobRef{name: name, size: size, crc: crc}.String(), nil
}

func (b *blobs) enter() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return fmt.Errorf("blobs of checkpoint %d: %w", b.id, checkpoint.ErrClosed)
	}
	b.puts++
	return nil
}

func (b *blobs) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.puts--
}

// register notes a blob before it exists, so that neither Prune takes it nor Abort forgets it.
func (b *blobs) register(name string) {
	b.mu.Lock()
	b.names = append(b.names, name)
	b.mu.Unlock()
	b.s.mu.Lock()
	b.s.live[name] = b.id
	b.s.mu.Unlock()
}

// seekable returns r, or a copy of it in memory, for a PUT that may have to send it again, and the checksum of its bytes. r must have exactly size
// bytes to its end.
func seekable(r io.Reader, size int64) (io.ReadSeeker, multipart.CRC, error) {
	if seeker, ok := r.(io.ReadSeeker); ok {
		if start, err := seeker.Seek(0, io.SeekCurrent); err == nil { // a pipe has the method too
			var sum crcWriter
			n, err := io.Copy(&sum, io.LimitReader(seeker, size+1))
			if err == nil {
				err = checkSize(n, size)
			}
			if err == nil {
				_, err = seeker.Seek(start, io.SeekStart)
			}
			return seeker, sum.crc, err
		}
	}
	data := make([]byte, size)
	n, err := io.ReadFull(r, data)
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		var more [1]byte
		m := 0
		if int64(n) == size {
			m, err = io.ReadFull(r, more[:])
		}
		if err == nil || err == io.EOF || err == io.ErrUnexpectedEOF {
			err = checkSize(int64(n+m), size)
		}
	}
	return bytes.NewReader(data), multipart.Checksum(data), err
}

func checkSize(n, size int64) error {
	switch {
	case n < size:
		return fmt.Errorf("the reader gave %d bytes: %w", n, checkpoint.ErrSize)
	case n > size:
		return fmt.Errorf("the reader gave more: %w", checkpoint.ErrSize)
	}
	return nil
}

// crcWriter computes the checksum of what is written to it.
type crcWriter struct{ crc multipart.CRC }

func (w *crcWriter) Write(p []byte) (int, error) {
	w.crc = w.crc.Update(p)
	return len(p), nil
}

// Open implements checkpoint.Blobs.
func (b *blobs) Open(ctx context.Context, ref string) (io.ReadCloser, error) {
	return b.s.OpenBlob(ctx, ref)
}

// Sync implements checkpoint.BlobWriter. Blobs are durable already; Save checks that the store has them.
func (b *blobs) Sync(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case b.puts > 0:
		return fmt.Errorf("sync of the blobs of checkpoint %d while %d are being written", b.id, b.puts)
	}
	return nil
}

// Close implements checkpoint.BlobWriter.
func (b *blobs) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	return nil
}

// Abort implements checkpoint.BlobWriter. It takes a minute at most.
func (b *blobs) Abort() error {
	b.mu.Lock()
	b.ended = true
	names := b.names
	b.names = nil
	b.mu.Unlock()
	b.s.mu.Lock()
	for _, name := range names {
		delete(b.s.live, name)
	}
	b.s.mu.Unlock()
	ctx, cancel := context.WithTimeout(retrymode.WithPriority(b.cleanup), abortTime)
	defer cancel()
	return b.s.deleteAll(ctx, blobPrefix, names)
}

// deleteAll deletes as many objects as it can, some at a time.
func (s *Store) deleteAll(ctx context.Context, prefix string, names []string) error {
	errs := make([]error, len(names))
	slots := make(chan struct{}, deletesAtOnce)
	var wg sync.WaitGroup
	for i, name := range names {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = s.fs.Delete(ctx, s.path(prefix+name))
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
