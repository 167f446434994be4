package multipart

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Capture is the state of an upload at one offset. It is taken in an instant and made durable later by Store, while the
// writer goes on: later bytes are never part of it. It holds the memory of bytes the store had not acknowledged; Store or
// Release gives it back, and one of the two must be called. A Capture is for one goroutine at a time, which need not be
// the upload's.
type Capture struct {
	upload *Upload
	err    error // why there is nothing to store
	parts  []*part
	open   []extent // by index of parts, from first on: bytes not acknowledged at the capture, with our reference
	first  int      // index of the first part that was not acknowledged
	tail   extent
	offset int64
	crc    CRC
	sealed bool
	ended  atomic.Bool
}

// Capture returns the state at the current offset. It does no I/O, waits for nothing and takes no memory from the budget.
// Storing the capture of an upload that has failed, is abandoned or is committed returns the reason.
func (u *Upload) Capture() *Capture {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := &Capture{upload: u, offset: u.offset, crc: u.digest(), sealed: u.sealed}
	if u.abandoned || u.committed {
		c.err = u.fault("store", ErrClosed)
		return c
	}
	c.parts = u.parts[:len(u.parts):len(u.parts)]
	for c.first < len(c.parts) && c.parts[c.first].acked {
		c.first++
	}
	c.open = make([]extent, len(c.parts)-c.first)
	for i, p := range c.parts[c.first:] {
		c.open[i] = p.data // no pages when acknowledged
		retain(p.data.pages)
	}
	c.tail = u.tail
	retain(c.tail.pages)
	return c
}

// Offset returns the number of bytes the capture stands for.
func (c *Capture) Offset() int64 { return c.offset }

// Release gives up the capture and its memory. It does nothing after Store.
func (c *Capture) Release() {
	if c.ended.CompareAndSwap(false, true) {
		c.free()
	}
}

func (c *Capture) free() {
	for i := range c.open {
		release(c.open[i].pages)
		c.open[i].pages = nil
	}
	release(c.tail.pages)
	c.tail.pages = nil
}

// Store makes the captured state durable and returns its handle. It waits up to Options.PersistWait, in all, for the parts
// that were in flight, writes the bytes of those still not acknowledged and of the tail to b as pieces, in order, and
// releases the capture whether it succeeds or not.
//
// When the multipart upload does not exist yet at the end of the wait, the handle has no upload id and all its bytes are
// pieces. When the upload has failed in the background its error is returned; an Abandon in the meantime does no harm.
func (c *Capture) Store(ctx context.Context, b Blobs) (Handle, error) {
	if !c.ended.CompareAndSwap(false, true) {
		return Handle{}, c.upload.fault("store", ErrClosed)
	}
	defer c.free()
	if c.err != nil {
		return Handle{}, c.err
	}
	if err := c.wait(ctx); err != nil {
		return Handle{}, err
	}
	h, err := c.handle()
	if err != nil {
		return Handle{}, err
	}
	for i, p := range c.parts {
		if part, ok := c.acknowledged(p, h.UploadID); ok {
			h.Parts = append(h.Parts, part)
		} else if err := c.storePiece(ctx, b, &h, p.number, &c.open[i-c.first]); err != nil {
			return Handle{}, err
		}
	}
	if c.tail.size > 0 {
		if err := c.storePiece(ctx, b, &h, int32(len(c.parts))+1, &c.tail); err != nil {
			return Handle{}, err
		}
	}
	if err := h.Validate(); err != nil {
		return Handle{}, c.upload.fault("store", err)
	}
	return h, nil
}

// wait returns when all captured parts are acknowledged or the time is over.
func (c *Capture) wait(ctx context.Context) error {
	if ctx.Err() != nil {
		return c.upload.fault("store", context.Cause(ctx))
	}
	c.upload.mu.Lock()
	stop, idle := c.upload.stop, c.upload.deferred
	c.upload.mu.Unlock()
	if idle {
		return nil // nothing is on its way before a commit
	}
	timer := time.NewTimer(c.upload.persistWait)
	defer timer.Stop()
	for _, p := range c.parts[c.first:] {
		select {
		case <-p.done:
			continue
		default:
		}
		select {
		case <-p.done:
		case <-stop:
			return nil // failed or abandoned: handle tells
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return c.upload.fault("store", context.Cause(ctx))
		}
	}
	return nil
}

// handle returns the handle without its parts and pieces, or the error that ended the upload.
func (c *Capture) handle() (Handle, error) {
	u := c.upload
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err != nil {
		return Handle{}, u.err
	}
	return Handle{
		Target: u.target, UploadID: u.uploadID, CreatedAt: u.createdAt, Epoch: u.epoch, Token: u.token,
		PartSize: u.partSize, Offset: c.offset, CRC: c.crc, Sealed: c.sealed,
	}, nil
}

// acknowledged returns p as the store has it by now. Without the upload id at the end of the wait no part counts.
func (c *Capture) acknowledged(p *part, uploadID string) (Part, bool) {
	if uploadID == "" {
		return Part{}, false
	}
	c.upload.mu.Lock()
	defer c.upload.mu.Unlock()
	return p.wire(), p.acked
}

var errNoRef = errors.New("the checkpoint store answered without a reference")

// storePiece writes bytes as the piece of a part number and drops the capture's reference to them.
func (c *Capture) storePiece(ctx context.Context, b Blobs, h *Handle, number int32, data *extent) error {
	body := data.open()
	release(data.pages)
	data.pages = nil
	ref, err := b.Put(ctx, body, data.size)
	body.close()
	if err == nil && ref == "" {
		err = errNoRef
	}
	if err != nil {
		return fault("store piece", c.upload.target, h.UploadID, number, err)
	}
	h.Pieces = append(h.Pieces, Piece{Number: number, Size: data.size, CRC: data.crc, Ref: ref})
	return nil
}
