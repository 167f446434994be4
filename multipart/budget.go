package multipart

import (
	"context"
	"sync"
)

// Budget is the memory that part buffers of a process come from, in pages of [PageSize] bytes. Waiters are served in
// the order they came. Pages that come back are kept for reuse; kept and used pages together never exceed the limit.
//
// Usage exceeds the limit in three cases only, each bounded: while credit is on; for the bytes a checkpoint hands back
// to [Resume], which were in memory once; and by one write that ends a part and starts the next, when usage is at or
// under the limit. The last one keeps files from waiting for each other: as long as the limit is at least [FileBudget]
// for every file being written, some write can always go on, finish its part and so bring memory back.
//
// A Budget is safe for concurrent use.
type Budget struct {
	limit int64 // pages

	mu      sync.Mutex // never held across a wait
	used    int64      // pages handed out
	peak    int64
	credit  int // how many asked for it
	waiters []*waiter
	free    []*page
}

// waiter is a request in the queue. Its fields are written under the budget's lock until ready is closed.
type waiter struct {
	n        int
	overdraw bool
	ready    chan struct{}
	pages    []*page // recycled pages; the rest of n is allocated by the waiter
}

// BudgetStats is a snapshot of a [Budget], in bytes.
type BudgetStats struct {
	Limit   int64
	Used    int64 // held by buffers
	Peak    int64 // the most that was ever used
	Free    int64 // kept for reuse
	Waiting int   // writes that wait for memory
}

// NewBudget returns a budget of the given number of bytes, rounded down to whole pages, but at least one page.
func NewBudget(bytes int64) *Budget {
	return &Budget{limit: max(bytes/PageSize, 1)}
}

// FileBudget returns the bytes of budget that a file with parts of the given size can hold while none of its parts is
// being uploaded: a budget for n files being written at a time should have n times as many.
func FileBudget(partSize int64) int64 { return int64(pagesFor(partSize)) * PageSize }

// Stats returns a snapshot.
func (b *Budget) Stats() BudgetStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return BudgetStats{
		Limit:   b.limit * PageSize,
		Used:    b.used * PageSize,
		Peak:    b.peak * PageSize,
		Free:    int64(len(b.free)) * PageSize,
		Waiting: len(b.waiters),
	}
}

// Credit(true) lets blocked and new writes through whatever the usage, until Credit(false): a pending barrier needs the
// writes that are under way to end. Calls nest: credit is on until each true was followed by a false, so that several
// sinks can share a budget. A false too many is ignored.
func (b *Budget) Credit(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if on {
		b.credit++
	} else if b.credit > 0 {
		b.credit--
	}
	b.serve()
}

// acquire appends n pages, each with one reference, to dst. It waits for its turn until ctx is done or stop is closed;
// then dst comes back unchanged with the cause (ErrClosed for stop). overdraw marks a request that brings memory back
// by itself and may exceed the limit once it is its turn.
func (b *Budget) acquire(ctx context.Context, stop <-chan struct{}, dst []*page, n int, overdraw bool) ([]*page, error) {
	w := waiter{n: n, overdraw: overdraw}
	b.mu.Lock()
	if len(b.waiters) == 0 && b.admits(&w) {
		b.grant(&w)
		b.mu.Unlock()
		return b.fill(dst, w.pages, n), nil
	}
	w.ready = make(chan struct{})
	b.waiters = append(b.waiters, &w)
	b.mu.Unlock()

	var cause error
	select {
	case <-w.ready:
		return b.fill(dst, w.pages, n), nil
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-stop:
		cause = ErrClosed
	}
	if b.leave(&w) {
		return dst, cause
	}
	// Granted in the meantime: the pages are ours, so the request succeeded.
	<-w.ready
	return b.fill(dst, w.pages, n), nil
}

// tryAcquire is acquire without waiting.
func (b *Budget) tryAcquire(dst []*page, n int, overdraw bool) ([]*page, bool) {
	w := waiter{n: n, overdraw: overdraw}
	b.mu.Lock()
	if len(b.waiters) > 0 || !b.admits(&w) {
		b.mu.Unlock()
		return dst, false
	}
	b.grant(&w)
	b.mu.Unlock()
	return b.fill(dst, w.pages, n), true
}

// force is acquire that never waits and always succeeds: for bytes that a checkpoint gives back.
func (b *Budget) force(dst []*page, n int) []*page {
	w := waiter{n: n}
	b.mu.Lock()
	b.grant(&w)
	b.mu.Unlock()
	return b.fill(dst, w.pages, n)
}

// admits says whether w may have its pages now. Called with the lock held.
func (b *Budget) admits(w *waiter) bool {
	return b.credit > 0 || b.used+int64(w.n) <= b.limit || w.overdraw && b.used <= b.limit
}

// grant books w's pages and hands out recycled ones. Called with the lock held.
func (b *Budget) grant(w *waiter) {
	b.used += int64(w.n)
	b.peak = max(b.peak, b.used)
	if k := min(w.n, len(b.free)); k > 0 {
		cut := len(b.free) - k
		w.pages = append([]*page(nil), b.free[cut:]...)
		clear(b.free[cut:])
		b.free = b.free[:cut]
	}
}

// serve grants waiters in order as far as possible. Called with the lock held.
func (b *Budget) serve() {
	k := 0
	for ; k < len(b.waiters) && b.admits(b.waiters[k]); k++ {
		b.grant(b.waiters[k])
		close(b.waiters[k].ready)
	}
	if k > 0 {
		rest := copy(b.waiters, b.waiters[k:])
		clear(b.waiters[rest:])
		b.waiters = b.waiters[:rest]
	}
}

// leave takes w out of the queue; false when it has been granted. Those behind it may go on if it was the obstacle.
func (b *Budget) leave(w *waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, other := range b.waiters {
		if other == w {
			b.waiters = append(b.waiters[:i], b.waiters[i+1:]...)
			b.serve()
			return true
		}
	}
	return false
}

// fill appends n pages to dst: the recycled ones, then new ones. Memory is allocated outside the lock.
func (b *Budget) fill(dst, recycled []*page, n int) []*page {
	for _, p := range recycled {
		p.refs.Store(1)
	}
	dst = append(dst, recycled...)
	for range n - len(recycled) {
		p := &page{budget: b, buf: new([PageSize]byte)}
		p.refs.Store(1)
		dst = append(dst, p)
	}
	return dst
}

// put drops one reference to each page and takes back those whose last one it was.
func (b *Budget) put(pages []*page) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range pages {
		if p.refs.Add(-1) > 0 {
			continue
		}
		b.used--
		if b.used+int64(len(b.free)) < b.limit {
			b.free = append(b.free, p)
		}
	}
	b.serve()
}
