package multipart

import (
	"errors"
	"strings"
	"time"
)

// part is a run of bytes with a part number, on its way into the store or there. The fields below data are guarded by
// the upload's lock.
type part struct {
	number int32
	size   int64
	crc    CRC
	done   chan struct{} // closed once acknowledged

	data  extent // its pages are the upload's reference to them; nil once acknowledged
	acked bool
	etag  string
}

// wire returns what the store knows about an acknowledged part.
func (p *part) wire() Part { return Part{Number: p.number, Size: p.size, ETag: p.etag, CRC: p.crc} }

var errNoETag = errors.New("the store answered without an etag")

// cut makes the tail the next part and queues it. Called with the lock held.
func (u *Upload) cut() {
	u.tail.hash()
	p := u.addPart(u.tail)
	u.tail = extent{}
	u.queue = append(u.queue, p)
	u.kick()
}

// addPart appends a part with the given bytes. Called with the lock held.
func (u *Upload) addPart(data extent) *part {
	p := &part{
		number: int32(len(u.parts)) + 1,
		size:   data.size,
		crc:    data.crc,
		done:   make(chan struct{}),
		data:   data,
	}
	u.parts = append(u.parts, p)
	shift := u.partShift
	if p.size != u.partSize {
		shift = crcShift(p.size)
	}
	u.base = u.base.appendShift(p.crc, shift)
	return p
}

// kick starts as many goroutines as there is work for. Before the upload exists a single one runs, which creates it.
// Called with the lock held.
func (u *Upload) kick() {
	if u.deferred || u.err != nil || u.abandoned || u.committed {
		return
	}
	limit := u.concurrency
	if u.uploadID == "" {
		limit = 1
	}
	for n := len(u.queue); n > 0 && u.active < limit; n-- {
		u.active++
		u.workers.Go(u.send)
	}
}

// send uploads queued parts until none is left or the upload has ended.
func (u *Upload) send() {
	for {
		if err := u.ensureCreated(); err != nil {
			u.leave(nil, err)
			return
		}
		p, b := u.next()
		if p == nil {
			return
		}
		etag, err := u.api.UploadPart(u.life, u.target, u.UploadID(), p.number, b, p.size, p.crc)
		b.close()
		if etag = trimETag(etag); err == nil && etag == "" {
			err = errNoETag
		}
		if err != nil {
			u.leave(p, fault("upload part", u.target, u.UploadID(), p.number, err))
			return
		}
		release(u.acknowledge(p, etag))
	}
}

// ensureCreated creates the multipart upload unless it exists. Only one goroutine runs before it does.
func (u *Upload) ensureCreated() error {
	if u.UploadID() != "" {
		return nil
	}
	at := time.Now().UTC().Round(0)
	id, err := u.api.Create(u.life, u.target, u.token)
	if err == nil && id == "" {
		err = errors.New("the store answered without an upload id")
	}
	if err != nil {
		return u.fault("create upload", err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.uploadID, u.createdAt = id, at
	u.kick()
	return nil
}

// next takes the next part off the queue and opens its bytes; nil ends the goroutine.
func (u *Upload) next() (*part, *body) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.queue) == 0 || u.err != nil || u.abandoned || u.committed {
		u.active--
		return nil, nil
	}
	p := u.queue[0]
	u.queue = u.queue[1:]
	return p, p.data.open()
}

// acknowledge notes that the store has p and returns the upload's reference to its pages.
func (u *Upload) acknowledge(p *part, etag string) []*page {
	u.mu.Lock()
	defer u.mu.Unlock()
	pages := p.data.pages
	p.data.pages = nil
	p.etag, p.acked = etag, true
	close(p.done)
	return pages
}

// leave ends a goroutine that failed, with the part it had taken: the part goes back into the queue for the case that
// Commit tries again. After Abandon the failure is only the cancellation and counts for nothing.
func (u *Upload) leave(p *part, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.active--
	if p != nil {
		u.requeue(p)
	}
	if u.err == nil && !u.abandoned && !u.committed {
		u.err = err
		close(u.stop)
	}
}

// requeue puts p back where its number belongs. Called with the lock held.
func (u *Upload) requeue(p *part) {
	i := 0
	for i < len(u.queue) && u.queue[i].number < p.number {
		i++
	}
	queue := make([]*part, 0, len(u.queue)+1)
	queue = append(append(queue, u.queue[:i]...), p)
	u.queue = append(queue, u.queue[i:]...)
}

// restart lets the uploads in the background go on, after a failure or after they were deferred.
func (u *Upload) restart() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.deferred = false
	if u.err != nil && !u.abandoned {
		u.err = nil
		u.stop = make(chan struct{})
	}
	u.kick()
}

// trimETag removes the quotes that ETags wear on the wire.
func trimETag(s string) string { return strings.Trim(s, `"`) }
