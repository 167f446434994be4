package lab

import "time"

// event is what is to happen at a time. Exactly one of call, timer and start is set.
type event struct {
	at    time.Duration
	step  step // of call
	call  *simCall
	timer *timer
	start func()
}

// step says what happens to the call of an event.
type step uint8

const (
	stepAnswer step = iota + 1
	stepRetry
	stepDeadline
)

// timer is a function that a policy wants to have run. A nil function has been cancelled or has run.
type timer struct{ run func() }

// calendar is a binary heap of events; those of the same time come out in the order in which they were put in. It is written out because
// container/heap boxes every element, and a run of half an hour has millions of them. The heap holds no pointers, so that moving its
// entries costs the garbage collector nothing.
type calendar struct {
	heap   []entry
	seq    uint64
	events []event // by slot
	free   []int32 // slots
}

type entry struct {
	at   time.Duration
	seq  uint64
	slot int32
}

func (c *calendar) empty() bool { return len(c.heap) == 0 }

func (c *calendar) put(e event) {
	c.seq++
	n := entry{at: e.at, seq: c.seq, slot: c.keep(e)}
	h := append(c.heap, n)
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !n.before(h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = n
	c.heap = h
}

func (c *calendar) take() event {
	h := c.heap
	slot, last := h[0].slot, h[len(h)-1]
	h = h[:len(h)-1]
	c.heap = h
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(last) {
			break
		}
		h[i] = h[child]
		i = child
	}
	if len(h) > 0 {
		h[i] = last
	}
	e := c.events[slot]
	c.events[slot] = event{}
	c.free = append(c.free, slot)
	return e
}

// keep stores e and says where.
func (c *calendar) keep(e event) int32 {
	if n := len(c.free); n > 0 {
		slot := c.free[n-1]
		c.free = c.free[:n-1]
		c.events[slot] = e
		return slot
	}
	c.events = append(c.events, e)
	return int32(len(c.events) - 1)
}

func (e entry) before(f entry) bool {
	return e.at < f.at || e.at == f.at && e.seq < f.seq
}
