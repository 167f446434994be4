package s3fs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/retrymode"
)

// Put writes body, from its current position to its end, as the whole object at
// p, over whatever is there. It returns when the store has confirmed the write;
// after an error the object is the old one or the new one. The body is read
// twice (once for its checksum) and again for every retry, and is not touched
// after Put has returned.
func (f *FS) Put(ctx context.Context, p Path, body io.ReadSeeker) error {
	c := call{op: "put", path: p, write: true, permission: "s3:PutObject"}
	size, crc, err := measure(body, f.settings.Checksums)
	if err != nil {
		return &OpError{Op: c.op, Path: p, Class: permanent, Err: fmt.Errorf("read the body: %w", err)}
	}
	c.size = size
	_, err = f.put(ctx, c, f.putInput(p, body, size, crc))
	return err
}

// PutIfAbsent writes data as the object at p unless there is one already, in
// which case the error is ErrExists and nothing is changed. Of several callers
// at once, one wins; a store that is busy with the key of another (409) is asked
// again like after any transient error. The call belongs to the priority lane.
//
// After any error the object may be there all the same, ErrExists included,
// because the answer to an earlier attempt can have been lost: look at the
// object before drawing a conclusion.
//
// A store that does not implement conditional writes (501) is asked by HEAD
// first and then written to without a condition; two callers at the same
// instant can then both succeed, and the later one stays. This is logged once.
func (f *FS) PutIfAbsent(ctx context.Context, p Path, data []byte) error {
	ctx = retrymode.WithPriority(ctx)
	if f.client.unconditional.Load() {
		return f.putAfterLook(ctx, p, data)
	}
	var crc multipart.CRC
	if f.settings.Checksums {
		crc = multipart.Checksum(data)
	}
	c := call{op: "put", path: p, size: int64(len(data)), write: true, permission: "s3:PutObject"}
	in := f.putInput(p, bytes.NewReader(data), c.size, crc)
	in.IfNoneMatch = aws.String("*")
	_, err := f.put(ctx, c, in)
	if statusOf(err) != http.StatusNotImplemented {
		return err
	}
	if !f.client.unconditional.Swap(true) {
		f.log.WarnContext(ctx, "the store does not implement conditional writes: objects are looked for before they are written",
			"bucket", p.Bucket)
	}
	return f.putAfterLook(ctx, p, data)
}

// putAfterLook is PutIfAbsent without the help of the store.
func (f *FS) putAfterLook(ctx context.Context, p Path, data []byte) error {
	switch _, err := f.Stat(ctx, p); {
	case err == nil:
		return &OpError{Op: "put", Path: p, Class: permanent, Err: ErrExists}
	case !errors.Is(err, ErrNotFound):
		return err
	}
	return f.Put(ctx, p, bytes.NewReader(data))
}

// Delete removes the object at p. That nothing is there is no error.
func (f *FS) Delete(ctx context.Context, p Path) error {
	c := call{op: "delete", path: p, write: true, permission: "s3:DeleteObject"}
	if p.Key == "" {
		return noKey(c)
	}
	_, err := invoke(ctx, f, c, func(ctx context.Context) (*s3.DeleteObjectOutput, error) {
		return f.client.s3.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(p.Bucket), Key: aws.String(p.Key)})
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// put sends a prepared PutObject.
func (f *FS) put(ctx context.Context, c call, in *s3.PutObjectInput) (*s3.PutObjectOutput, error) {
	if c.path.Key == "" {
		return nil, noKey(c)
	}
	return invoke(ctx, f, c, func(ctx context.Context) (*s3.PutObjectOutput, error) { return f.client.s3.PutObject(ctx, in) })
}

// putInput is the part that all PutObjects have in common.
func (f *FS) putInput(p Path, body io.ReadSeeker, size int64, crc multipart.CRC) *s3.PutObjectInput {
	in := &s3.PutObjectInput{Bucket: aws.String(p.Bucket), Key: aws.String(p.Key), Body: body, ContentLength: aws.Int64(size)}
	if f.settings.Checksums {
		in.ChecksumCRC64NVME = aws.String(crc.String())
	}
	return in
}

// measure returns the length of what is left of body and, when it is wanted,
// its checksum. The position is put back.
func measure(body io.ReadSeeker, checksum bool) (size int64, crc multipart.CRC, err error) {
	start, err := body.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, 0, err
	}
	if checksum {
		size, err = io.Copy((*crcWriter)(&crc), body)
	} else {
		size, err = body.Seek(0, io.SeekEnd)
		size -= start
	}
	if err != nil {
		return 0, 0, err
	}
	_, err = body.Seek(start, io.SeekStart)
	return size, crc, err
}

// crcWriter computes the checksum of what is written to it.
type crcWriter multipart.CRC

// Write implements io.Writer.
func (w *crcWriter) Write(p []byte) (int, error) {
	*w = crcWriter(multipart.CRC(*w).Update(p))
	return len(p), nil
}

// unquote returns an ETag without its quotes, "" when there is none.
func unquote(etag *string) string {
	s := aws.ToString(etag)
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}
