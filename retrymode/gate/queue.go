package gate

import (
	"container/heap"
	"time"
)

// Ticket is one attempt: it waits, is then in flight, and ends. The caller owns it and keeps it until it has ended; it serves one attempt.
type Ticket struct {
	// Retry is true for every attempt of a call but the first.
	Retry bool
	// Priority tickets go before all others: calls that publish what others have uploaded.
	Priority bool
	// Hold keeps a retry back for so long, or until the store comes back. NotBefore, a hint of the store, holds even then.
	Hold, NotBefore time.Duration
	// Owner is the caller's.
	Owner any

	state      state
	arrival    int64         // in its lane, over all lanes
	queuedAt   time.Duration // when it came into its lane
	grantedAt  time.Duration // when it was granted
	version    int           // of the gate when the ticket was granted
	rate       float64       // of the gate when the ticket was granted, infinite when it was off
	due        time.Duration // when a hold ends
	hinted     time.Duration // before which it does not end
	index      int           // in the heap of holds
	prev, next *Ticket       // in a lane
}

// QueuedAt is when the ticket came into its lane, which is when its hold ended.
func (t *Ticket) QueuedAt() time.Duration { return t.queuedAt }

type state int

const (
	idle state = iota
	held
	queued
	flying
	ended
)

// lane is a queue in order of arrival.
type lane struct {
	first, last *Ticket
	n           int
}

func (l *lane) push(t *Ticket) { l.insertAfter(l.last, t) }

// pushBack puts a ticket that has been at the head before into its old place: only such tickets are older than it.
func (l *lane) pushBack(t *Ticket) {
	var before *Ticket
	for next := l.first; next != nil && next.arrival < t.arrival; next = next.next {
		before = next
	}
	l.insertAfter(before, t)
}

// insertAfter inserts t behind before, or first if that is nil.
func (l *lane) insertAfter(before, t *Ticket) {
	l.n++
	t.prev = before
	if before == nil {
		t.next = l.first
		l.first = t
	} else {
		t.next = before.next
		before.next = t
	}
	if t.next == nil {
		l.last = t
	} else {
		t.next.prev = t
	}
}

// upTo is the number of tickets up to and including t.
func (l *lane) upTo(t *Ticket) int {
	n := 1
	for before := t.prev; before != nil; before = before.prev {
		n++
	}
	return n
}

func (l *lane) remove(t *Ticket) {
	l.n--
	if t.prev == nil {
		l.first = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		l.last = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.prev, t.next = nil, nil
}

// lanes are served strictly in their order: retries of priority tickets, priority tickets, retries, first attempts.
const lanes = 4

func laneOf(t *Ticket) int {
	n := 0
	if !t.Priority {
		n = 2
	}
	if !t.Retry {
		n++
	}
	return n
}

// holds is a heap of held tickets, the one that is due first on top.
type holds []*Ticket

var _ heap.Interface = (*holds)(nil)

func (h holds) Len() int           { return len(h) }
func (h holds) Less(i, j int) bool { return h[i].due < h[j].due }
func (h holds) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is for container/heap.
func (h *holds) Push(x any) {
	t := x.(*Ticket)
	t.index = len(*h)
	*h = append(*h, t)
}

// Pop is for container/heap.
func (h *holds) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return t
}
