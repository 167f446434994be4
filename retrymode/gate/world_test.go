package gate

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// store decides, when an attempt arrives, what becomes of it and after how long.
type store func(now time.Duration) (Outcome, time.Duration)

// world runs callers through one gate in virtual time against a scripted store. It is the shell of the gate without goroutines.
type world struct {
	t      *testing.T
	p      Params
	g      *Gate
	store  store
	random *rand.Rand

	now    time.Duration
	events events
	order  int
	due    time.Duration // of the next tick, 0 = none

	attempts []sighting
	calls    []time.Duration // how long each finished call took
	failed   int             // calls that used up their retries
	retries  int             // per call
	look     func()          // called after every event
}

// sighting is an attempt that was sent.
type sighting struct {
	queued, at time.Duration // when it came into its lane, when it was granted
	outcome    Outcome
	retry      bool
}

func newWorld(t *testing.T, s store) *world {
	t.Helper()
	p := Defaults(time.Second, 20*time.Second)
	return &world{t: t, p: p, g: New(p), store: s, random: rand.New(rand.NewPCG(7, 7)), retries: 10, look: func() {}}
}

type event struct {
	at    time.Duration
	order int
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

// at does something later.
func (w *world) at(when time.Duration, do func()) {
	w.order++
	heap.Push(&w.events, event{when, w.order, do})
}

// run lets time pass until the given moment, or until nothing is left to happen.
func (w *world) run(until time.Duration) {
	same := 0
	for len(w.events) > 0 && w.events[0].at <= until {
		e := heap.Pop(&w.events).(event)
		if e.at > w.now {
			same = 0
		}
		if same++; same > 100_000 {
			w.t.Fatalf("time stands still at %s", w.now)
		}
		w.now = e.at
		e.do()
		w.look()
	}
	w.now = until
}

// pump is what the shell does after every change.
func (w *world) pump() {
	for {
		t, again := w.g.Next(w.now)
		if t == nil {
			if again == 0 || w.due > w.now && w.due <= w.now+again {
				return
			}
			due := w.now + again
			w.due = due
			w.at(due, func() {
				if w.due == due {
					w.due = 0
				}
				w.pump()
			})
			return
		}
		t.Owner.(*caller).send()
	}
}

// caller makes calls one after the other.
type caller struct {
	w      *world
	left   int           // calls to make
	stop   time.Duration // when it makes no more, 0 = never
	think  time.Duration // between calls
	ticket *Ticket
	began  time.Duration
	n      int // attempts of the call
}

// caller starts a caller; left < 0 means without end.
func (w *world) caller(start, stop time.Duration, left int, think time.Duration) {
	c := &caller{w: w, left: left, stop: stop, think: think}
	w.at(start, c.next)
}

// crowd starts n callers at about the same time that call without a pause.
func (w *world) crowd(n int, start, stop time.Duration) {
	for range n {
		w.caller(start+time.Duration(w.random.Int64N(int64(100*time.Millisecond))), stop, -1, 0)
	}
}

func (c *caller) next() {
	if c.left == 0 || c.stop > 0 && c.w.now >= c.stop {
		return
	}
	c.left--
	c.began, c.n = c.w.now, 0
	c.join(0)
}

func (c *caller) join(hold time.Duration) {
	c.ticket = &Ticket{Retry: c.n > 0, Hold: hold, Owner: c}
	c.w.g.Join(c.w.now, c.ticket)
	c.w.pump()
}

func (c *caller) send() {
	w := c.w
	o, latency := w.store(w.now)
	w.attempts = append(w.attempts, sighting{c.ticket.QueuedAt(), w.now, o, c.n > 0})
	w.at(w.now+latency, func() { c.answered(o) })
}

func (c *caller) answered(o Outcome) {
	w := c.w
	w.g.Done(w.now, c.ticket, o)
	w.pump()
	c.n++
	if o == Refused && c.n <= w.retries {
		c.join(w.p.HoldFor(c.n, w.random.Float64()))
		return
	}
	if o == Refused {
		w.failed++
	} else {
		w.calls = append(w.calls, w.now-c.began)
	}
	if c.think > 0 {
		w.at(w.now+c.think, c.next)
	} else {
		c.next()
	}
}

// served is how many of the attempts that were sent in [from, to) were served, and sent how many there were.
func (w *world) served(from, to time.Duration) (served, sent int) {
	for _, a := range w.attempts {
		if a.at >= from && a.at < to {
			sent++
			if a.outcome == Served {
				served++
			}
		}
	}
	return served, sent
}

// goodput is served per second.
func (w *world) goodput(from, to time.Duration) float64 {
	served, _ := w.served(from, to)
	return float64(served) / (to - from).Seconds()
}

// refusedShare of the attempts sent in [from, to).
func (w *world) refusedShare(from, to time.Duration) float64 {
	served, sent := w.served(from, to)
	return 1 - float64(served)/float64(sent)
}

// longestWait is the longest time that an attempt granted in [from, to) stood in its lane.
func (w *world) longestWait(from, to time.Duration) (longest time.Duration) {
	for _, a := range w.attempts {
		if a.at >= from && a.at < to {
			longest = max(longest, a.at-a.queued)
		}
	}
	return longest
}

func (w *world) slowestCall() time.Duration { return slices.Max(w.calls) }

// healthy serves everything.
func healthy(latency time.Duration) store {
	return func(time.Duration) (Outcome, time.Duration) { return Served, latency }
}

// wall lets limit attempts through in any second and refuses the rest. limit may change with time.
func wall(latency time.Duration, limit func(now time.Duration) int) store {
	var passed []time.Duration
	return func(now time.Duration) (Outcome, time.Duration) {
		for len(passed) > 0 && passed[0] <= now-time.Second {
			passed = passed[1:]
		}
		if len(passed) >= limit(now) {
			return Refused, latency
		}
		passed = append(passed, now)
		return Served, latency
	}
}

func constant(limit int) func(time.Duration) int { return func(time.Duration) int { return limit } }

// between refuses everything that arrives in [from, to).
func between(from, to time.Duration, s store) store {
	return func(now time.Duration) (Outcome, time.Duration) {
		o, latency := s(now)
		if now >= from && now < to {
			o = Refused
		}
		return o, latency
	}
}
