package readback

import "slices"

// Tally gives the rows of one file to a Ledger in one pass. It collects before it touches what
// other files share, so that many files can be read in parallel. One goroutine at a time.
type Tally struct {
	l      *Ledger
	file   string
	window int64 // that sums are of
	sums   sums
	rows   int64
	dups   List[Duplicate]
	others List[Unexpected]
}

// File begins a file of the current pass. Close has to be called behind its last row.
func (l *Ledger) File(name string) *Tally { return &Tally{l: l, file: name} }

// Saw takes note of a row. Whether its content is right is for the caller to know: a corrupt row
// must not be given to Saw, so that it counts as missing.
func (t *Tally) Saw(row int64) {
	l := t.l
	switch l.phase {
	case counting:
		if !l.expected.Contains(row) {
			t.others.Add(l.limit, 1, Unexpected{Row: row, File: t.file})
			return
		}
		t.rows++
		if w := row >> l.shift; w != t.window {
			t.flush()
			t.window = w
		}
		t.sums.add(row)
	case looking:
		if !l.expected.Contains(row) {
			return
		}
	default:
		t.trace(row)
		return
	}
	if row>>l.shift == l.focus && l.mark(row) {
		t.dups.Add(l.limit, 1, Duplicate{Row: row})
	}
}

// Close hands over what is left. The tally must not be used any more.
func (t *Tally) Close() {
	t.flush()
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	t.l.res.Rows += t.rows
	t.l.res.Duplicates.Merge(t.l.limit, t.dups)
	t.l.res.Unexpected.Merge(t.l.limit, t.others)
}

func (t *Tally) flush() {
	if t.sums.count > 0 {
		t.l.windows[t.window].add(t.sums)
		t.sums = sums{}
	}
}

// trace notes the file of a listed duplicate.
func (t *Tally) trace(row int64) {
	d := t.l.traced[row]
	if d == nil {
		return
	}
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	d.Times++
	at, found := slices.BinarySearch(d.Files, t.file)
	if found || at >= t.l.limit {
		return
	}
	d.Files = slices.Insert(d.Files, at, t.file)
	d.Files = d.Files[:min(len(d.Files), t.l.limit)]
}
