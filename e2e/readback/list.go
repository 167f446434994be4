package readback

import "slices"

// DefaultListLimit is how many findings of each sort a report names; all are counted.
const DefaultListLimit = 20

// Ordered is a finding that can be sorted.
type Ordered[T any] interface {
	// Compare is negative, zero or positive when the receiver comes before, is the same as, or
	// comes behind the other finding.
	Compare(other T) int
}

// List counts findings exactly and keeps the first few in order, so that its memory is bounded and
// its content does not depend on which file was read first. The zero value is an empty list. One
// goroutine at a time.
type List[T Ordered[T]] struct {
	Total int64 `json:"total"`
	First []T   `json:"first,omitempty"`
}

// Add counts v as n findings and keeps it when it is among the first limit ones and not there yet.
func (l *List[T]) Add(limit int, n int64, v T) {
	l.Total += n
	at, found := slices.BinarySearchFunc(l.First, v, func(a, b T) int { return a.Compare(b) })
	if found || at >= limit {
		return
	}
	if len(l.First) >= limit {
		l.First = l.First[:limit-1]
	}
	l.First = slices.Insert(l.First, at, v)
}

// Merge adds all findings of o.
func (l *List[T]) Merge(limit int, o List[T]) {
	total := l.Total + o.Total
	for _, v := range o.First {
		l.Add(limit, 0, v)
	}
	l.Total = total
}
