package multipart

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// PageSize is the unit in bytes that buffers grow by.
const PageSize = 64 << 10

// pagesFor returns how many pages size bytes need.
func pagesFor(size int64) int { return int((size + PageSize - 1) / PageSize) }

// page is one unit of the budget. Its bytes are append-only while it is referenced: a writer adds bytes behind those
// that readers know of, and nobody changes a byte once written, so reading below a known length needs no lock. The last
// reference that goes returns the page to its budget.
type page struct {
	buf    *[PageSize]byte
	refs   atomic.Int32
	budget *Budget
}

// retain adds one reference to each page; the caller must already hold one.
func retain(pages []*page) {
	for _, p := range pages {
		p.refs.Add(1)
	}
}

// release drops one reference to each page; all are of one budget.
func release(pages []*page) {
	if len(pages) > 0 {
		pages[0].budget.put(pages)
	}
}

// extent is a run of bytes in pages, with its checksum. The slice of pages is shared by all who know the run and never
// changed in place, only appended to. While a run grows its checksum lags behind, so that it is computed over long
// stretches however short the rows are; hash brings it up to date.
type extent struct {
	pages  []*page
	size   int64
	crc    CRC   // of the first hashed bytes
	hashed int64 // bytes
}

// append copies p behind the bytes of e and takes the pages it needs from spare; it returns the unused ones.
func (e *extent) append(p []byte, spare []*page) []*page {
	for len(p) > 0 {
		used := int(e.size % PageSize)
		if int(e.size/PageSize) == len(e.pages) {
			e.pages = append(e.pages, spare[0])
			spare = spare[1:]
		}
		n := copy(e.pages[len(e.pages)-1].buf[used:], p)
		e.size += int64(n)
		p = p[n:]
		if used+n == PageSize {
			e.hash()
		}
	}
	return spare
}

// hash brings the checksum up to date: at most one page is missing, the last.
func (e *extent) hash() {
	if e.hashed < e.size {
		start := e.hashed % PageSize
		e.crc = e.crc.Update(e.pages[len(e.pages)-1].buf[start : start+e.size-e.hashed])
		e.hashed = e.size
	}
}

// missing returns how many more pages e needs to grow by n bytes.
func (e *extent) missing(n int64) int { return pagesFor(e.size+n) - len(e.pages) }

var (
	errBodyClosed = errors.New("body read after its call returned")
	errBodySeek   = errors.New("seek outside the body")
)

// body lends the bytes of an extent to one call. It holds references to the pages for as long as it is open. Transports
// may go on reading after the call that got the body has returned, when the pages may already hold another file's bytes:
// close waits for a read under way and fails later ones.
type body struct {
	mu    sync.Mutex // held while bytes are copied from memory, never across I/O
	pages []*page
	size  int64
	off   int64
}

var _ io.ReadSeeker = (*body)(nil)

// open returns a body over e. The caller must hold references to e's pages while it calls.
func (e *extent) open() *body {
	pages := e.pages[:pagesFor(e.size)]
	retain(pages)
	return &body{pages: pages, size: e.size}
}

// close drops the references. Reads fail from now on.
func (b *body) close() {
	b.mu.Lock()
	pages := b.pages
	b.pages = nil
	b.mu.Unlock()
	release(pages)
}

// Len returns the number of bytes not read yet.
func (b *body) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int(b.size - b.off)
}

// Read copies the next bytes.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pages == nil {
		return 0, errBodyClosed
	}
	if b.off >= b.size {
		return 0, io.EOF
	}
	done := 0
	for done < len(p) && b.off < b.size {
		start := b.off % PageSize
		end := min(int64(PageSize), start+b.size-b.off)
		n := copy(p[done:], b.pages[b.off/PageSize].buf[start:end])
		done += n
		b.off += int64(n)
	}
	return done, nil
}

// Seek sets the position of the next Read.
func (b *body) Seek(offset int64, whence int) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += b.off
	case io.SeekEnd:
		offset += b.size
	default:
		return 0, errBodySeek
	}
	if offset < 0 || offset > b.size {
		return 0, errBodySeek
	}
	b.off = offset
	return offset, nil
}
