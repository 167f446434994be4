package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// copyBuffer is how many bytes of a blob are in memory per Put.
const copyBuffer = 256 << 10

// blobRef names a region of a blob file, written as file:offset:size:crc32c.
type blobRef struct {
	file         string
	offset, size int64
	crc          uint32
}

func (r blobRef) String() string {
	return fmt.Sprintf("%s:%d:%d:%08x", r.file, r.offset, r.size, r.crc)
}

// parseRef reads what String wrote, in that spelling only.
func parseRef(text string) (blobRef, error) {
	bad := func() (blobRef, error) { return blobRef{}, fmt.Errorf("%.200q is not a blob ref", text) }
	parts := strings.Split(text, ":")
	if len(parts) != 4 {
		return bad()
	}
	_, _, okName := parseBlobName(parts[0])
	offset, okOffset := parseNumber(parts[1])
	size, okSize := parseNumber(parts[2])
	crc, err := strconv.ParseUint(parts[3], 16, 32)
	r := blobRef{file: parts[0], offset: offset, size: size, crc: uint32(crc)}
	if !okName || !okOffset || !okSize || err != nil || offset > math.MaxInt64-size || r.String() != text {
		return bad()
	}
	return r, nil
}

func newCRC() hash.Hash32 { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }

func (d *DirStore) blobPath(name string) string { return filepath.Join(d.path, blobsName, name) }

// blobError tells a missing blob, which is damage since a manifest names it, from a disk that does not answer.
func (d *DirStore) blobError(r blobRef, err error) error {
	id, _, _ := parseBlobName(r.file)
	if errors.Is(err, fs.ErrNotExist) {
		return &DamagedError{File: d.blobPath(r.file), ID: id, Err: err}
	}
	return fmt.Errorf("blob %s: %w", r, err)
}

func (d *DirStore) checkBounds(r blobRef, fileSize int64) error {
	if r.offset+r.size <= fileSize {
		return nil
	}
	id, _, _ := parseBlobName(r.file)
	return &DamagedError{
		File: d.blobPath(r.file), ID: id,
		Err: fmt.Errorf("it has %d bytes, but blob %s ends at %d", fileSize, r, r.offset+r.size),
	}
}

// dirBlobs packs the blobs of one checkpoint into one file, so that a checkpoint costs one fsync however many blobs it has. Sizes
// are known, so each Put reserves its region and then writes beside the others.
type dirBlobs struct {
	d     *DirStore
	id    ID
	epoch int64
	ready chan struct{} // held while the file is created

	mu    sync.Mutex
	name  string // empty until the first Put
	f     file
	end   int64 // where the next region begins
	puts  int   // running
	ended bool
}

var _ BlobWriter = (*dirBlobs)(nil)

// Blobs implements Store. The file is created with the first Put.
func (d *DirStore) Blobs(ctx context.Context, id ID) (BlobWriter, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	epoch, err := d.claimed()
	if err != nil {
		return nil, err
	}
	if id <= 0 {
		return nil, fmt.Errorf("blobs of checkpoint %d: ids begin at 1", id)
	}
	return &dirBlobs{d: d, id: id, epoch: epoch, ready: make(chan struct{}, 1)}, nil
}

// Put implements Blobs. A region that was not filled stays behind as a hole that no ref names.
func (b *dirBlobs) Put(ctx context.Context, r io.Reader, size int64) (string, error) {
	if size < 0 {
		return "", fmt.Errorf("put blob of %d bytes: %w", size, ErrSize)
	}
	f, offset, err := b.reserve(ctx, size)
	if err != nil {
		return "", fmt.Errorf("put blob: %w", err)
	}
	defer func() {
		b.mu.Lock()
		b.puts--
		b.mu.Unlock()
	}()
	crc, err := b.copy(ctx, f, r, offset, size)
	if err != nil {
		return "", fmt.Errorf("put blob of %d bytes into %s: %w", size, b.d.blobPath(b.name), err)
	}
	return blobRef{file: b.name, offset: offset, size: size, crc: crc}.String(), nil
}

// reserve returns the file and the region of a Put.
func (b *dirBlobs) reserve(ctx context.Context, size int64) (file, int64, error) {
	if ctx.Err() != nil {
		return nil, 0, context.Cause(ctx)
	}
	select {
	case b.ready <- struct{}{}:
	case <-ctx.Done():
		return nil, 0, context.Cause(ctx)
	}
	defer func() { <-b.ready }()
	b.mu.Lock()
	exists, ended := b.f != nil, b.ended
	b.mu.Unlock()
	if ended {
		return nil, 0, fmt.Errorf("blobs of checkpoint %d: %w", b.id, ErrClosed)
	}
	if !exists {
		if err := b.create(); err != nil {
			return nil, 0, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.end > math.MaxInt64-size {
		return nil, 0, fmt.Errorf("blob file of more than %d bytes: %w", int64(math.MaxInt64), ErrSize)
	}
	offset := b.end
	b.end += size
	b.puts++
	return b.f, offset, nil
}

func (b *dirBlobs) create() error {
	name := blobName(b.id, b.epoch, b.d.next())
	b.d.mu.Lock()
	b.d.live[name] = b.id
	b.d.mu.Unlock()
	f, err := b.d.fs.Create(b.d.blobPath(name))
	if err != nil {
		b.d.forget(name)
		return err
	}
	b.mu.Lock()
	b.name, b.f = name, f
	b.mu.Unlock()
	return nil
}

func (d *DirStore) forget(name string) {
	d.mu.Lock()
	delete(d.live, name)
	d.mu.Unlock()
}

// copy writes exactly size bytes of r at offset.
func (b *dirBlobs) copy(ctx context.Context, f file, r io.Reader, offset, size int64) (uint32, error) {
	buf, done := b.d.buffer(size)
	defer done()
	sum := newCRC()
	for at := int64(0); at < size; {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		chunk := buf[:min(size-at, copyBuffer)]
		n, err := io.ReadFull(r, chunk)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return 0, fmt.Errorf("the reader gave %d bytes: %w", at+int64(n), ErrSize)
		}
		if err != nil {
			return 0, fmt.Errorf("read: %w", err)
		}
		if _, err := f.WriteAt(chunk, offset+at); err != nil {
			return 0, err
		}
		sum.Write(chunk)
		at += int64(n)
	}
	switch _, err := io.ReadFull(r, buf[:1]); {
	case err == io.EOF:
		return sum.Sum32(), nil
	case err == nil:
		return 0, fmt.Errorf("the reader gave more: %w", ErrSize)
	default:
		return 0, fmt.Errorf("read: %w", err)
	}
}

// buffer returns at least one byte, and as many as a Put of size needs at a time.
func (d *DirStore) buffer(size int64) (buf []byte, done func()) {
	if size < copyBuffer {
		return make([]byte, size+1), func() {}
	}
	pooled := d.bufs.Get().(*[]byte)
	return *pooled, func() { d.bufs.Put(pooled) }
}

// Open implements Blobs.
func (b *dirBlobs) Open(ctx context.Context, ref string) (io.ReadCloser, error) {
	return b.d.OpenBlob(ctx, ref)
}

// Sync implements BlobWriter.
func (b *dirBlobs) Sync(ctx context.Context) error {
	b.mu.Lock()
	f, puts := b.f, b.puts
	b.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case f == nil:
		return nil
	case puts > 0:
		return fmt.Errorf("sync of %s while %d blobs are being written", b.name, puts)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", b.d.blobPath(b.name), err)
	}
	if err := b.d.fs.SyncDir(filepath.Join(b.d.path, blobsName)); err != nil {
		return fmt.Errorf("sync blobs directory: %w", err)
	}
	return nil
}

// Close implements BlobWriter.
func (b *dirBlobs) Close() error {
	f, _ := b.finish()
	if f == nil {
		return nil
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close blobs: %w", err)
	}
	return nil
}

// Abort implements BlobWriter.
func (b *dirBlobs) Abort() error {
	f, name := b.finish()
	if f != nil {
		_ = f.Close() // its content does not matter any more
	}
	if name == "" {
		return nil
	}
	b.d.forget(name)
	if err := b.d.fs.Remove(b.d.blobPath(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove blobs: %w", err)
	}
	return nil
}

// finish ends the writer and returns the file, the first time, and its name.
func (b *dirBlobs) finish() (file, string) {
	b.ready <- struct{}{}
	defer func() { <-b.ready }()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	f := b.f
	b.f = nil
	return f, b.name
}
