package checkpoint

import (
	"context"
	"fmt"
	"hash"
	"io"
)

// OpenBlob implements Store.
func (d *DirStore) OpenBlob(ctx context.Context, ref string) (io.ReadCloser, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r, err := parseRef(ref)
	if err != nil {
		return nil, err
	}
	f, err := d.fs.Open(d.blobPath(r.file))
	if err != nil {
		return nil, d.blobError(r, err)
	}
	size, err := f.Size()
	if err == nil {
		err = d.checkBounds(r, size)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &blobReader{d: d, ref: r, f: f, in: io.NewSectionReader(f, r.offset, r.size), sum: newCRC()}, nil
}

// blobReader checks the bytes while they are read. It belongs to one goroutine.
type blobReader struct {
	d   *DirStore
	ref blobRef
	f   file
	in  *io.SectionReader
	sum hash.Hash32
}

// Read returns a *DamagedError in place of io.EOF if the bytes are not those that were put.
func (r *blobReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.sum.Write(p[:n])
	if err == io.EOF {
		at, _ := r.in.Seek(0, io.SeekCurrent) // of a SectionReader: cannot fail
		if at != r.ref.size || r.sum.Sum32() != r.ref.crc {
			id, _, _ := parseBlobName(r.ref.file)
			return n, &DamagedError{
				File: r.d.blobPath(r.ref.file), ID: id,
				Err: fmt.Errorf("blob %s does not match its checksum", r.ref),
			}
		}
		return n, err
	}
	if err != nil {
		err = fmt.Errorf("read blob %s: %w", r.ref, err)
	}
	return n, err
}

// Close may be called before the end; nothing is checked then.
func (r *blobReader) Close() error {
	if err := r.f.Close(); err != nil {
		return fmt.Errorf("close blob: %w", err)
	}
	return nil
}
