package readback

import (
	"context"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// DefaultWindow is the number of rows a Ledger sees exactly in one pass; it takes 16 MiB.
const DefaultWindow = 1 << 27

// A window is a whole number of 64-bit words, and no larger than a machine's memory.
const (
	minWindow = 64
	maxWindow = 1 << 36
)

// maxWindows bounds the sums, 24 bytes for each window: 2^47 rows with DefaultWindow.
const maxWindows = 1 << 20

// Ledger tells which rows of an expected set were seen how often, in memory that does not depend
// on their number. It needs one pass over the rows, or more:
//
//   - Pass 1 keeps a bit for each row of the first window and the sums (see below) of every window.
//   - Where the sums of a window are not those of the expected set, one pass for each such window
//     keeps its bits.
//   - When a row is there twice, a last pass finds the files of the duplicates that are listed.
//
// So a sound set takes one pass however large it is, and what is wrong with another one is found
// exactly, counts included. The sums are the number of rows and two independent 64-bit mixes of
// the row numbers, summed: a window in which they agree by accident and not because each row was
// there once has a chance of about 2^-128.
//
// File, and the Tallies it returns, may be used by many goroutines; EndPass and Result are called
// between passes, when every Tally is closed.
type Ledger struct {
	expected Expected
	window   int64 // rows, a power of two
	shift    int
	limit    int
	windows  []windowSums

	phase  phase
	focus  int64    // the window that bits stand for
	bits   []uint64 // set with atomic operations
	open   []int64  // windows to look at bit by bit, in order
	traced map[int64]*Duplicate

	mu  sync.Mutex
	res LedgerResult
}

// LedgerResult is what a Ledger found. Rows are sightings: a row seen twice counts twice.
type LedgerResult struct {
	Rows       int64            // of the expected set
	Missing    List[Range]      // Total counts rows
	Duplicates List[Duplicate]  // Total counts sightings after the first
	Unexpected List[Unexpected] // Total counts sightings
	Passes     int
}

type phase int

const (
	counting phase = iota // pass 1
	looking               // bits of one more window
	tracing               // files of duplicates
	settled
)

type windowSums struct {
	count, a, b atomic.Uint64
}

func (w *windowSums) add(s sums) {
	w.count.Add(s.count)
	w.a.Add(s.a)
	w.b.Add(s.b)
}

func (w *windowSums) load() sums { return sums{w.count.Load(), w.a.Load(), w.b.Load()} }

// NewLedger returns a ledger before pass 1. window is the number of rows of a window, a power of
// two from 64 to 2^36 (0 = DefaultWindow); limit is how many findings of each sort are named (0 =
// DefaultListLimit). More than 2^20 windows are an error.
func NewLedger(e Expected, window int64, limit int) (*Ledger, error) {
	if window == 0 {
		window = DefaultWindow
	}
	if limit == 0 {
		limit = DefaultListLimit
	}
	if window < minWindow || window > maxWindow || bits.OnesCount64(uint64(window)) != 1 {
		return nil, fmt.Errorf("window of %d rows: want a power of two from %d to %d", window, minWindow, int64(maxWindow))
	}
	if limit < 1 {
		return nil, fmt.Errorf("list limit %d: want 1 or more", limit)
	}
	shift := bits.TrailingZeros64(uint64(window))
	var windows int64
	if e.end > 0 {
		windows = (e.end-1)>>shift + 1
	}
	if windows > maxWindows {
		return nil, fmt.Errorf("row numbers up to %d are more than %d windows of %d rows", e.end-1, maxWindows, window)
	}
	return &Ledger{
		expected: e, window: window, shift: shift, limit: limit,
		windows: make([]windowSums, windows),
		bits:    make([]uint64, (min(window, e.end)+63)/64), // a small set needs no whole window
		res:     LedgerResult{Passes: 1},
	}, nil
}

// EndPass ends a pass in which every row was given to a Tally. again tells that the ledger needs
// all rows another time, in any order and split over files in the same way; without it the result
// is final. After an error, which is the context's, the ledger is of no more use.
func (l *Ledger) EndPass(ctx context.Context) (again bool, err error) {
	switch l.phase {
	case counting:
		if len(l.windows) > 0 {
			l.settle()
		}
		if err := l.findOpen(ctx); err != nil {
			return false, err
		}
	case looking:
		l.settle()
	}
	l.next()
	if l.phase != settled {
		l.res.Passes++
	}
	return l.phase != settled, context.Cause(ctx)
}

// Result returns what was found; it is final when EndPass has returned again == false.
func (l *Ledger) Result() LedgerResult {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.res
}

// next chooses what the following pass is for.
func (l *Ledger) next() {
	switch {
	case l.phase == tracing || l.phase == settled:
		l.phase, l.traced = settled, nil
	case len(l.open) > 0:
		l.phase, l.focus, l.open = looking, l.open[0], l.open[1:]
		clear(l.bits)
	case len(l.res.Duplicates.First) > 0:
		l.phase = tracing
		l.traced = make(map[int64]*Duplicate, len(l.res.Duplicates.First))
		for i := range l.res.Duplicates.First {
			d := &l.res.Duplicates.First[i]
			l.traced[d.Row] = d
		}
	default:
		l.phase = settled
	}
}

// settle reads the missing rows out of the bits of the focus window. Duplicates were noticed when
// they came.
func (l *Ledger) settle() {
	low := l.focus << l.shift
	e, high := l.expected, min(low+l.window, l.expected.end)
	n := e.step()
	var expected, set int64
	for _, w := range l.bits {
		set += int64(bits.OnesCount64(w))
	}
	for i := range e.next {
		if first, limit := e.window(i, low, high); first < limit {
			expected += (limit-first-1)/n + 1
		}
	}
	if set == expected { // bits are set for expected rows only
		return
	}
	for i := range e.next {
		first, limit := e.window(i, low, high)
		for row := first; row < limit; row += n {
			if l.seen(row) {
				continue
			}
			from := row
			for row+n < limit && !l.seen(row+n) {
				row += n
			}
			r := Range{First: from, Last: row, Step: n}
			l.res.Missing.Add(l.limit, r.Count(), r)
		}
	}
}

// seen tells whether a row of the focus window has its bit.
func (l *Ledger) seen(row int64) bool {
	i := row & (l.window - 1)
	return l.bits[i>>6]>>(i&63)&1 == 1
}

// mark sets the bit of a row of the focus window and tells whether it was set before.
func (l *Ledger) mark(row int64) (again bool) {
	i := row & (l.window - 1)
	mask := uint64(1) << (i & 63)
	return atomic.OrUint64(&l.bits[i>>6], mask)&mask != 0
}

// findOpen compares the sums of every window but the first, which was seen bit by bit.
func (l *Ledger) findOpen(ctx context.Context) error {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for w := int64(1); w < int64(len(l.windows)); w++ {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			low := w << l.shift
			if l.expected.expectedSums(low, min(low+l.window, l.expected.end)) != l.windows[w].load() {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.open = append(l.open, w)
			}
			return nil
		})
	}
	_ = g.Wait() // no error to report
	slices.Sort(l.open)
	return context.Cause(ctx)
}
