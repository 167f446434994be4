package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/s3fs"
)

// OpenBlob implements checkpoint.Store.
func (s *Store) OpenBlob(ctx context.Context, ref string) (io.ReadCloser, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r, err := parseRef(ref)
	if err != nil {
		return nil, err
	}
	in, err := s.fs.Open(retrymode.WithPriority(ctx), s.blobPath(r.name))
	if errors.Is(err, s3fs.ErrNotFound) {
		return nil, s.blobDamage(r, err)
	}
	if err != nil {
		return nil, err
	}
	return &blobReader{s: s, ref: r, in: in}, nil
}

// blobReader checks the bytes while they are read. It belongs to one goroutine.
type blobReader struct {
	s   *Store
	ref blobRef
	in  io.ReadCloser
	at  int64
	crc multipart.CRC
	err error
}

// Read returns a *checkpoint.DamagedError in place of io.EOF if the bytes are not those that were put.
func (r *blobReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.in.Read(p)
	if room := r.ref.size - r.at; int64(n) > room {
		n, err = int(room), fmt.Errorf("it has more than %d bytes", r.ref.size)
		r.err = r.s.blobDamage(r.ref, err)
	} else if err != nil {
		r.err = r.ended(p[:n], err)
	}
	r.crc = r.crc.Update(p[:n])
	r.at += int64(n)
	return n, r.err
}

// ended says what the end of the object, or a failure to read it, means. last are the bytes that came with it.
func (r *blobReader) ended(last []byte, err error) error {
	switch at := r.at + int64(len(last)); {
	case errors.Is(err, s3fs.ErrNotFound), errors.Is(err, s3fs.ErrChanged), errors.Is(err, s3fs.ErrChecksum):
		return r.s.blobDamage(r.ref, err)
	case err != io.EOF:
		return err
	case at != r.ref.size:
		return r.s.blobDamage(r.ref, fmt.Errorf("it has %d bytes, not %d", at, r.ref.size))
	case r.crc.Update(last) != r.ref.crc:
		return r.s.blobDamage(r.ref, fmt.Errorf("blob %s does not match its checksum", r.ref))
	}
	return io.EOF
}

// Close may be called before the end; nothing is checked then.
func (r *blobReader) Close() error { return r.in.Close() }
