package s3fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/retrymode"
)

// Open reads the object at p from its start. It returns when the answer has
// begun, so a missing object is reported here.
//
// The reader survives a connection that breaks: it goes on with a range behind
// the last byte it has handed out, on condition that the object is still the
// same (ErrChanged otherwise). It gives up after as many resumptions without a
// single byte as s3.retry.max-num-retries says. At the end it compares what it
// has read with the checksum that the store keeps, if it keeps one and
// s3.checksum-validation.enabled is on; ErrChecksum comes in place of io.EOF.
//
// The reader belongs to one goroutine and must be closed. Until then, or until
// it has reported io.EOF or an error, it holds one of the client's connections;
// three quarters of s3.connection.max can be held like this, and Open waits when
// they are. When ctx ends, reads fail with its cause.
func (f *FS) Open(ctx context.Context, p Path) (io.ReadCloser, error) {
	return f.read(ctx, call{op: "read", path: p, permission: "s3:GetObject"}, window{end: toEnd})
}

// ReadRange reads n bytes of the object at p from offset off; fewer when the
// object ends before. It is like Open, except that no checksum covers a range.
// An offset at or behind the end of the object is an error of the store
// (InvalidRange). n = 0 gives an empty reader without asking the store.
func (f *FS) ReadRange(ctx context.Context, p Path, off, n int64) (io.ReadCloser, error) {
	c := call{op: "read", path: p, permission: "s3:GetObject"}
	if off < 0 || n < 0 || off+n < off {
		return nil, &OpError{Op: c.op, Path: p, Class: permanent, Err: fmt.Errorf("range of %d bytes at %d: negative or too large", n, off)}
	}
	if n == 0 {
		return io.NopCloser(strings.NewReader("")), nil
	}
	return f.read(ctx, c, window{off: off, end: off + n})
}

// toEnd stands for an end that is not known yet.
const toEnd = -1

// window is what is left to read: [off, end), on condition that the object has
// the given ETag, if any.
type window struct {
	off, end int64
	etag     string
}

// httpRange is the header that asks for the window, "" for a whole object.
func (w window) httpRange() string {
	switch {
	case w.end != toEnd:
		return fmt.Sprintf("bytes=%d-%d", w.off, w.end-1)
	case w.off > 0:
		return fmt.Sprintf("bytes=%d-", w.off)
	}
	return ""
}

// objectReader is an answer being read, and what is needed to ask for the rest.
type objectReader struct {
	f    *FS
	call call
	// ctx is that of the call that opened the reader: io.Reader leaves no other way
	// to say when to stop.
	ctx    context.Context
	unbind func()

	left   window
	body   io.ReadCloser  // nil between two answers
	answer *answerContext // of body
	slot   bool           // a body slot is held

	barren int // resumptions in a row that brought nothing
	crc    multipart.CRC
	want   multipart.CRC
	verify bool
	err    error // sticky, io.EOF included
}

func (f *FS) read(ctx context.Context, c call, w window) (*objectReader, error) {
	if c.path.Key == "" {
		return nil, noKey(c)
	}
	if err := f.enter(ctx, c); err != nil {
		return nil, err
	}
	defer f.leave()
	r := &objectReader{f: f, call: c, left: w}
	r.ctx, r.unbind = f.bind(ctx)
	select {
	case f.client.bodies <- struct{}{}:
		r.slot = true
	case <-r.ctx.Done():
		err := explain(r.ctx, c, context.Cause(r.ctx))
		r.unbind()
		return nil, err
	}
	if err := r.ask(); err != nil {
		r.drop()
		return nil, err
	}
	return r, nil
}

// ask sends a GET for what is left.
func (r *objectReader) ask() error {
	in := &s3.GetObjectInput{Bucket: aws.String(r.call.path.Bucket), Key: aws.String(r.call.path.Key), Range: optional(r.left.httpRange())}
	if r.left.etag != "" {
		in.IfMatch = aws.String(`"` + r.left.etag + `"`)
	}
	whole := in.Range == nil
	if whole && r.f.settings.Checksums {
		in.ChecksumMode = types.ChecksumModeEnabled
	}
	ctx := newAnswerContext(r.ctx, r.f.CallTimeout(0))
	out, err := r.f.client.s3.GetObject(ctx, in, withoutSDKValidation)
	ctx.answered()
	if err == nil && ctx.Err() != nil {
		_ = out.Body.Close() // the deadline fired between the answer and here
		err = context.Cause(ctx)
	}
	if err != nil {
		err := explain(ctx, r.call, err)
		ctx.close()
		return err
	}
	if err := r.accept(out, whole); err != nil {
		_ = out.Body.Close()
		ctx.close()
		return &OpError{Op: r.call.op, Path: r.call.path, Class: permanent, Err: err}
	}
	r.body, r.answer = out.Body, ctx
	return nil
}

// accept checks that the answer is what was asked for and learns from it.
func (r *objectReader) accept(out *s3.GetObjectOutput, whole bool) error {
	length := toEnd + int64(0)
	if out.ContentLength != nil {
		length = *out.ContentLength
	}
	if !whole {
		first, ok := rangeStart(aws.ToString(out.ContentRange))
		if !ok || first != r.left.off {
			return fmt.Errorf("%w: asked for %s, the Content-Range header says %q", ErrMissingHeader, r.left.httpRange(), aws.ToString(out.ContentRange))
		}
	}
	if length >= 0 && (r.left.end == toEnd || r.left.off+length < r.left.end) {
		r.left.end = r.left.off + length // a range that reaches beyond the object ends with it
	}
	if r.left.etag == "" {
		r.left.etag = unquote(out.ETag)
	}
	if whole {
		r.want, r.verify = r.f.fullCRC(out.ChecksumCRC64NVME, out.ChecksumType)
	}
	return nil
}

// Read implements io.Reader.
func (r *objectReader) Read(p []byte) (int, error) {
	for r.err == nil {
		if err := r.ended(); err != nil {
			r.err = explain(r.ctx, r.call, err)
			break
		}
		if r.body == nil {
			if r.err = r.resume(); r.err != nil {
				break
			}
		}
		limit := p
		if r.left.end != toEnd {
			limit = p[:min(int64(len(p)), r.left.end-r.left.off)]
		}
		n, err := r.body.Read(limit)
		r.left.off += int64(n)
		if r.verify {
			r.crc = r.crc.Update(p[:n])
		}
		if n > 0 {
			r.barren = 0
		}
		switch {
		case r.left.off == r.left.end, err == io.EOF && r.left.end == toEnd:
			r.err = r.finish()
		case err != nil:
			r.hangUp()
			r.err = r.broken(err)
		}
		if n > 0 || len(p) == 0 {
			return n, nil
		}
	}
	r.drop()
	return 0, r.err
}

// ended says why nothing more is to be read, nil when nothing is in the way. The
// life of the file system is asked directly: it ends ctx a moment later only.
func (r *objectReader) ended() error {
	if r.f.life.Err() != nil {
		return context.Cause(r.f.life)
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	return nil
}

// finish compares the checksum.
func (r *objectReader) finish() error {
	if r.verify && r.crc != r.want {
		return &OpError{
			Op: r.call.op, Path: r.call.path, Class: permanent, kind: ErrChecksum,
			Err: fmt.Errorf("%w: %d bytes with %v, the store says %v", ErrChecksum, r.left.off, r.crc, r.want),
		}
	}
	return io.EOF
}

// broken decides whether a body that broke with err is resumed: nil is yes.
func (r *objectReader) broken(err error) error {
	if err := r.ended(); err != nil {
		return explain(r.ctx, r.call, err)
	}
	if r.barren++; r.barren > r.f.settings.Retry.MaxRetries || r.left.end == toEnd {
		// Without a known length nobody can tell a short answer from a whole one.
		return &OpError{
			Op: r.call.op, Path: r.call.path, Class: retrymode.Transient,
			Err: fmt.Errorf("the answer broke off at byte %d, %d times in a row without progress: %w", r.left.off, r.barren, err),
		}
	}
	return nil
}

// resume asks for the rest. The first time at once, since most breaks are of the
// one connection; after that with the waits of a retry, because each answer may
// have begun well and so left the retryer content.
func (r *objectReader) resume() error {
	if r.barren > 1 {
		wait := min(r.f.settings.Retry.BaseDelay<<min(r.barren-2, 20), r.f.settings.Retry.MaxBackoff)
		if err := sleep(r.ctx, r.f.life, wait); err != nil {
			return explain(r.ctx, r.call, err)
		}
	}
	return r.ask()
}

// hangUp gives the connection up.
func (r *objectReader) hangUp() {
	if r.body != nil {
		_ = r.body.Close() // nothing is lost with what was not read
		r.answer.close()
		r.body, r.answer = nil, nil
	}
}

// drop gives everything back that the reader holds. It may be called again.
func (r *objectReader) drop() {
	r.hangUp()
	if r.slot {
		r.slot = false
		<-r.f.client.bodies
		r.unbind()
	}
}

// Close implements io.Closer. It never fails.
func (r *objectReader) Close() error {
	if r.err == nil || errors.Is(r.err, io.EOF) {
		r.err = fmt.Errorf("read %s: %w", r.call.path, errReaderClosed)
	}
	r.drop()
	return nil
}

var errReaderClosed = errors.New("the reader is closed")

// withoutSDKValidation keeps the SDK from checking the body by itself. Its check
// ends with the connection, ours goes on over resumptions; it also takes the
// checksum of the whole object for that of a range, which some stores send.
func withoutSDKValidation(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		_, _ = stack.Deserialize.Remove("AWSChecksum:ValidateOutputPayloadChecksum") // not there: nothing to remove
		return nil
	})
}

// rangeStart reads the first byte's offset from "bytes 5-9/20".
func rangeStart(header string) (int64, bool) {
	var first, last int64
	if _, err := fmt.Sscanf(header, "bytes %d-%d/", &first, &last); err != nil {
		return 0, false
	}
	return first, true
}
