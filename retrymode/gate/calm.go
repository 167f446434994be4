package gate

import (
	"math"
	"time"
)

// Calm is what a shell needs to know to let attempts come and go on its own, by counting alone, while the gate would do nothing else with them.
type Calm struct {
	// Until is the end of what may be counted as served. The gate counts by tenths of seconds, so the moments before that are one to it.
	Until time.Duration
	// InFlight is how many attempts are in flight at the moment, which is Now.
	InFlight int
	Now      time.Duration
	// Version and Arrivals go into the tickets of those that pass: the gate's version, and how many tickets have come so far.
	Version  int
	Arrivals int64
}

// Calm reports whether attempts may come and be served without the gate: it is off, nobody waits or is held back, and an answer has come in the present
// slot of its window, so that it sees at least one answer of each slot itself. The shell must [Gate.Absorb] its tally before it calls anything else.
func (g *Gate) Calm() (Calm, bool) {
	l := &g.law
	if g.on || g.inHand() > g.inFlight || !l.window.any || l.window.last != int64(g.busy/slotLength) {
		return Calm{}, false
	}
	left := min(slotLength-g.busy%slotLength, l.epochStart+g.p.Epoch-g.busy)
	if left <= 0 {
		return Calm{}, false // the next answer begins an epoch
	}
	return Calm{Until: g.now + left, InFlight: g.inFlight, Now: g.now, Version: g.version, Arrivals: g.arrivals}, true
}

// Tally is what a shell has counted since [Gate.Calm].
type Tally struct {
	InFlight int           // attempts in flight now
	Served   int           // attempts that were
	Gaps     time.Duration // how long nothing was in flight, but for the gap that is not over
	Idle     time.Duration // since when nothing is in flight, if nothing is
}

// Absorb takes a tally in. The law cannot tell it from the same attempts one by one, since those that were served fall into one slot of the window and one epoch and a gate
// that is off only counts; it does not learn their latency.
func (g *Gate) Absorb(t Tally) {
	g.arrivals += int64(t.InFlight + t.Served - g.inFlight)
	g.inFlight = t.InFlight
	if t.Served > 0 {
		l := &g.law
		l.window.at(g.busy)
		l.window.slots[l.window.last%(windowSlots+1)].ok += t.Served
		l.run += t.Served
		l.ok += t.Served
		l.sentOK += t.Served
		l.passed += float64(t.Served)
		l.streak = 0
	}
	g.now += t.Gaps // without the busy clock
	if d := t.Idle - g.now; t.InFlight == 0 && d > 0 {
		g.now += d
		g.busy += d
	}
}

// Pass grants the ticket what [Gate.Join] and [Gate.Next] would while the gate is calm. version is that of the gate and arrival the ticket's number among
// all that came: see [Calm].
func (t *Ticket) Pass(now time.Duration, version int, arrival int64) {
	t.state, t.rate, t.version = flying, math.Inf(1), version
	t.arrival, t.queuedAt, t.grantedAt = arrival, now, now
}
