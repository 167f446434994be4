package s3fs

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/sluice-go/sluice/multipart"
	"golang.org/x/sync/errgroup"
)

// ReadParallel copies the object at p into w by ranges of partSize bytes, up to
// concurrency of them at a time, and returns what the object is. All ranges are
// of one version of the object: ErrChanged otherwise. Where the store keeps a
// checksum of the whole object it is compared, unless checksums are switched
// off. Each range survives broken connections as a reader of Open does.
//
// w is written at every offset exactly once, in any order and from several
// goroutines, which must be safe for disjoint ranges as it is for *os.File.
// After an error some ranges have been written and others not.
func (f *FS) ReadParallel(ctx context.Context, p Path, w io.WriterAt, partSize int64, concurrency int) (Info, error) {
	if partSize < 1 || concurrency < 1 {
		return Info{}, &OpError{
			Op: "read", Path: p, Class: permanent,
			Err: fmt.Errorf("part size %d and concurrency %d have to be positive", partSize, concurrency),
		}
	}
	info, err := f.Stat(ctx, p)
	if err != nil {
		return Info{}, err
	}
	ranges := int((info.Size + partSize - 1) / partSize)
	sums := make([]multipart.CRC, ranges)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for i := range ranges {
		group.Go(func() error {
			off := int64(i) * partSize
			part := window{off: off, end: min(off+partSize, info.Size), etag: info.ETag}
			if ctx.Err() != nil {
				return context.Cause(ctx) // another range has failed
			}
			sum, err := f.copyRange(ctx, p, w, part)
			sums[i] = sum
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Info{}, err
	}
	if !info.HasCRC {
		return info, nil
	}
	var whole multipart.CRC
	for i, sum := range sums {
		off := int64(i) * partSize
		whole = whole.Append(sum, min(partSize, info.Size-off))
	}
	if whole != info.CRC {
		return Info{}, &OpError{
			Op: "read", Path: p, Class: permanent, kind: ErrChecksum,
			Err: fmt.Errorf("%w: %d bytes with %v, the store says %v", ErrChecksum, info.Size, whole, info.CRC),
		}
	}
	return info, nil
}

// copyRange copies one range and returns its checksum.
func (f *FS) copyRange(ctx context.Context, p Path, w io.WriterAt, part window) (multipart.CRC, error) {
	r, err := f.read(ctx, call{op: "read", path: p, permission: "s3:GetObject"}, part)
	if err != nil {
		return 0, err
	}
	var sum multipart.CRC
	n, err := io.Copy(io.MultiWriter(io.NewOffsetWriter(w, part.off), (*crcWriter)(&sum)), r)
	err = errors.Join(err, r.Close())
	if err == nil && n != part.end-part.off {
		err = &OpError{
			Op: "read", Path: p, Class: permanent,
			Err: fmt.Errorf("the range of %d bytes at %d has only %d", part.end-part.off, part.off, n),
		}
	}
	return sum, err
}
