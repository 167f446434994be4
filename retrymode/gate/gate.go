package gate

import (
	"container/heap"
	"math"
	"time"
)

// Outcome is what an attempt taught about the store.
type Outcome int

// The outcomes.
const (
	// Nothing: not sent, cancelled, or an error of the store that has nothing to do with load.
	Nothing Outcome = iota
	// Served: any answer that is no refusal, a 404 included.
	Served
	// Refused: 503, 429, a connection closed without an answer, no answer in time.
	Refused
)

// Gate paces the attempts of one scope. It is not safe for concurrent use. All times are since an origin of the caller's choice and never go back; an
// earlier time counts as the latest one given.
//
// After every [Gate.Join], [Gate.Leave] and [Gate.Done] the caller asks [Gate.Next] until it returns no ticket, and again after the time that it names.
type Gate struct {
	p Params

	now      time.Duration
	busy     time.Duration // time during which something was in hand
	lanes    [lanes]lane
	waiting  int // tickets in lanes
	arrivals int64
	held     holds
	inFlight int

	on      bool
	rate    float64 // permissions per second, when on
	tokens  float64
	version int // grows with every cut and every doubling: what was sent before is old news

	law law
}

// New returns a gate that is off.
func New(p Params) *Gate {
	return &Gate{p: p}
}

// Join makes a ticket wait for its permission.
func (g *Gate) Join(now time.Duration, t *Ticket) {
	g.advance(now)
	if wait := max(t.Hold, t.NotBefore); wait > 0 {
		t.state, t.due, t.hinted = held, g.now+wait, g.now+t.NotBefore
		heap.Push(&g.held, t)
		return
	}
	g.enqueue(t)
}

// Rejoin takes a permission back that was not used and puts the ticket back into its place: the attempt waited for something else, and
// the gate has changed its mind since (see [Gate.Stale]).
func (g *Gate) Rejoin(now time.Duration, t *Ticket) {
	g.advance(now)
	if t.state != flying {
		return
	}
	g.inFlight--
	g.refund(t)
	t.state = queued
	g.waiting++
	g.lanes[laneOf(t)].pushBack(t)
}

// Stale reports whether the rate has been cut since the ticket was granted, so that a permission which has not been used is worth nothing.
func (g *Gate) Stale(t *Ticket) bool { return g.on && g.rate < t.rate }

// Leave removes a ticket, be it waiting or in flight: nobody wants it any more and nothing was learnt.
func (g *Gate) Leave(now time.Duration, t *Ticket) {
	g.advance(now)
	switch t.state {
	case held:
		heap.Remove(&g.held, t.index)
	case queued:
		g.lanes[laneOf(t)].remove(t)
		g.waiting--
	case flying:
		g.inFlight--
		g.refund(t)
	}
	t.state = ended
}

// Next grants a permission, or returns nil and after how long to ask again; 0 means not before something else happens.
func (g *Gate) Next(now time.Duration) (*Ticket, time.Duration) {
	g.advance(now)
	for len(g.held) > 0 && g.held[0].due <= g.now {
		g.enqueue(heap.Pop(&g.held).(*Ticket))
	}
	if g.idle() {
		g.wakeNext()
	}
	var again time.Duration
	if len(g.held) > 0 {
		again = g.held[0].due - g.now
	}
	if g.waiting == 0 {
		return nil, again
	}
	if g.on && g.tokens < 1 {
		ready := time.Duration(math.Ceil((1 - g.tokens) / g.pace() * float64(time.Second)))
		if again == 0 || ready < again {
			again = ready
		}
		return nil, max(again, 1)
	}
	if g.on {
		g.tokens--
	}
	t := g.dequeue()
	g.inFlight++
	if t.rate = math.Inf(1); g.on {
		t.rate = g.rate
	}
	t.state, t.version, t.grantedAt = flying, g.version, g.now
	return t, 0
}

// Done ends an attempt that was granted and tells what it taught.
func (g *Gate) Done(now time.Duration, t *Ticket, o Outcome) {
	g.advance(now)
	if t.state != flying {
		return
	}
	t.state = ended
	g.inFlight--
	g.learn(t, o)
}

// Ahead returns how long a ticket would wait, those that are before it included, if the rate stayed what it is; 0 when the gate is off or looks for the limit, as then
// nobody can tell.
func (g *Gate) Ahead(t *Ticket) time.Duration {
	if !g.on || g.probing() || t.state != queued {
		return 0
	}
	own := laneOf(t)
	n := g.lanes[own].upTo(t)
	for i := range own {
		n += g.lanes[i].n
	}
	return time.Duration(float64(n) / g.pace() * float64(time.Second))
}

// State is a snapshot for statistics.
type State struct {
	On        bool    `json:"on"`         // attempts are paced
	SlowStart bool    `json:"slow_start"` // the limit is being looked for
	Shut      bool    `json:"shut"`       // nothing came back but refusals: only probes go
	Rate      float64 `json:"rate"`       // permissions per second; 0 when off
	Waiting   int     `json:"waiting"`    // tickets that wait for their turn
	Held      int     `json:"held"`       // retries that are held back
	InFlight  int     `json:"in_flight"`  // permissions in use
}

// State returns a snapshot.
func (g *Gate) State() State {
	s := State{On: g.on, SlowStart: g.on && g.law.slow, Shut: g.on && g.law.shut, Waiting: g.waiting, Held: len(g.held), InFlight: g.inFlight}
	if g.on {
		s.Rate = g.pace()
	}
	return s
}

// Idle reports whether the gate can be forgotten: it holds nothing, and is off or has not been used for so long that what it knows is of no use.
func (g *Gate) Idle(now time.Duration) bool {
	return g.inHand() == 0 && (!g.on || now-g.now > forgetAfter*g.p.Quiet)
}

const forgetAfter = 120 // an hour

// inHand is the number of attempts that wait, are held back or are in flight.
func (g *Gate) inHand() int { return g.inFlight + g.waiting + len(g.held) }

func (g *Gate) enqueue(t *Ticket) {
	g.arrivals++
	t.state, t.arrival, t.queuedAt = queued, g.arrivals, g.now
	g.waiting++
	g.lanes[laneOf(t)].push(t)
}

// dequeue takes the next ticket out of its lane. Retries go first, since they have waited already; not while it is unknown whether the store answers at all, when a
// new call would wait for all that were refused. Probes are mostly refused, so they are first attempts, which have all their retries left, but for retries that have waited
// for MaxWait: new calls may never cease to come.
func (g *Gate) dequeue() *Ticket {
	for i := 0; i < lanes; i += 2 {
		t, other := g.lanes[i].first, g.lanes[i+1].first
		if t == nil || other != nil && (g.law.shut && g.now-t.queuedAt < g.p.MaxWait || g.law.slow && other.arrival < t.arrival) {
			t = other
		}
		if t != nil {
			g.lanes[laneOf(t)].remove(t)
			g.waiting--
			return t
		}
	}
	return nil
}

// probing reports whether the limit is unknown.
func (g *Gate) probing() bool { return g.law.slow || g.law.shut }

// refund gives a token back, if one was taken at the present rate: stale permissions were worth nothing.
func (g *Gate) refund(t *Ticket) {
	if g.on && !g.Stale(t) {
		g.tokens = min(g.tokens+1, g.burst())
	}
}

// burst is how many tokens can be saved up.
func (g *Gate) burst() float64 { return max(1, g.rate*g.p.Burst.Seconds()) }

// advance moves the clocks.
func (g *Gate) advance(now time.Duration) {
	d := now - g.now
	if d <= 0 {
		return
	}
	g.now = now
	if g.inHand() > 0 {
		g.busy += d
	}
	if g.waiting > 0 {
		g.law.waited += d
	}
	if g.on {
		g.tokens = min(g.tokens+g.pace()*d.Seconds(), g.burst())
	}
}

// wake ends all holds, but not what the store itself asked for.
func (g *Gate) wake() {
	still := g.held[:0]
	for _, t := range g.held {
		if t.hinted > g.now {
			t.due = t.hinted
			still = append(still, t)
			continue
		}
		g.enqueue(t)
	}
	clear(g.held[len(still):])
	g.held = still
	for i, t := range g.held {
		t.index = i
	}
	heap.Init(&g.held)
}

// idle reports whether a permission is to be had, the store answers, and nobody asks but those who are held back.
func (g *Gate) idle() bool {
	return g.on && g.waiting == 0 && len(g.held) > 0 && g.tokens >= 1 && g.law.run >= g.p.Run && !g.law.slow
}

// wakeNext ends the hold that is due first, but not what the store itself asked for. The gate paces the store's load as well as any hold does.
func (g *Gate) wakeNext() {
	var next *Ticket
	for _, t := range g.held {
		if t.hinted <= g.now && (next == nil || t.due < next.due) {
			next = t
		}
	}
	if next != nil {
		heap.Remove(&g.held, next.index)
		g.enqueue(next)
	}
}
