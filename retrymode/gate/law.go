package gate

import (
	"math"
	"time"
)

// law is what the gate knows about the store.
type law struct {
	window      window
	epochStart  time.Duration // busy time
	ok, refused int           // answers since then; refusals of attempts that were sent before the last cut are left out
	// The epoch before, while the gate is off: evidence may straddle the border.
	prevOK, prevRefused int

	sentOK int // answers to attempts that were sent after the last cut

	shut   bool          // nothing passes: only probes go
	shutAt time.Duration // busy time
	opened time.Duration // busy time of the last end of that
	streak int           // refusals since the last answer that was none

	binding bool    // somebody had to wait in this epoch
	fresh   bool    // this is the first epoch after a cut
	slow    bool    // slow start: the limit is unknown
	doubled bool    // slow start has doubled at least once
	run     int     // answers in a row without a refusal
	ceiling float64 // the last rate that was too high
	good    float64 // the last rate that was all right, 0 = none is known
	step    float64 // calls per second and second

	lastRefusal time.Duration // real time
	noise       []float64     // shares refused right after a cut, newest last
}

// learn takes an answer in.
func (g *Gate) learn(t *Ticket, o Outcome) {
	l := &g.law
	switch o {
	case Nothing:
		return
	case Refused:
		l.window.add(g.busy, true)
		l.run, l.lastRefusal = 0, g.now
		l.streak++
		if t.version == g.version {
			l.refused++
		}
	case Served:
		l.window.add(g.busy, false)
		l.run++
		l.ok++
		l.streak = 0
		if t.version == g.version {
			l.sentOK++
		}
	}
	if g.on {
		g.judge(t, o)
	} else {
		g.watch(o)
	}
}

// watch is judge while the gate is off: it looks for evidence of overload.
func (g *Gate) watch(o Outcome) {
	l := &g.law
	refused, answers := l.refused+l.prevRefused, l.ok+l.refused+l.prevOK+l.prevRefused
	if o == Refused && refused >= g.p.EnterRefusals && float64(refused) > g.p.Tolerance*float64(answers) {
		ok, refused, seconds := l.window.sum(g.busy, g.p.Epoch)
		g.on = true
		g.rate = (ok + refused + float64(g.inFlight)) / seconds
		g.tokens = 0
		g.cut(ok/seconds, ok >= g.p.TrustedAnswers)
		return
	}
	if elapsed := g.busy - l.epochStart; elapsed >= g.p.Epoch {
		if l.refused == 0 {
			l.good = float64(l.ok) / elapsed.Seconds()
		}
		l.prevOK, l.prevRefused = l.ok, l.refused
		g.newEpoch()
	}
}

// judge decides whether the rate changes.
func (g *Gate) judge(t *Ticket, o Outcome) {
	l := &g.law
	elapsed := g.busy - l.epochStart
	switch {
	case l.shut:
		g.probe()
	case l.refused >= g.p.ShutRefusals && l.sentOK == 0, l.streak >= max(4, 2*(g.inHand()+1)):
		g.shut()
	case l.refused >= g.p.SurgeRefusals && l.refused > l.ok:
		ok, _, seconds := l.window.sum(g.busy, g.p.Epoch)
		g.cut(ok/seconds, ok >= g.p.TrustedAnswers)
	case l.slow && l.doubled && o == Refused && t.version == g.version:
		l.slow = false
		g.cutTo(g.rate / 2)
	case l.slow && l.run >= g.p.Run:
		g.double()
	case (elapsed >= g.p.Epoch || g.beyond() && elapsed >= g.p.Epoch/2) && g.enough(elapsed):
		g.endEpoch(elapsed)
	}
}

// enough reports whether the epoch has seen enough to be judged.
func (g *Gate) enough(elapsed time.Duration) bool {
	l := &g.law
	need := g.p.EpochAnswers
	if l.fresh {
		need = g.p.FreshAnswers
	}
	return l.ok+l.refused >= need || elapsed.Seconds() >= g.p.MaxEpochs*g.p.Epoch.Seconds()
}

// endEpoch judges an epoch: cut, hold, grow or turn off.
func (g *Gate) endEpoch(elapsed time.Duration) {
	l := &g.law
	answers := l.ok + l.refused
	share := 0.0
	if answers > 0 {
		share = float64(l.refused) / float64(answers)
	}
	background := g.background()
	if l.fresh && !l.slow && answers >= g.p.FreshAnswers {
		l.noise = append(l.noise, share)
		if len(l.noise) > g.p.NoiseSamples {
			l.noise = l.noise[1:]
		}
	}
	fresh := l.fresh
	l.fresh = false
	switch {
	case share > background+g.p.Tolerance && (l.refused >= g.p.CutRefusals || l.refused > l.ok):
		g.cut(float64(l.ok)/elapsed.Seconds(), l.ok >= 3)
		return
	case l.binding && share > background:
		l.step = g.firstStep() // hold
	case l.binding && !fresh:
		grow := l.step * elapsed.Seconds()
		if g.beyond() {
			grow = max(grow, g.p.Leap*g.rate)
		}
		g.rate += min(grow, g.rate)
		l.step *= g.p.Acceleration
	case !l.binding && g.now-l.lastRefusal > g.p.Quiet:
		g.on = false
		l.prevOK, l.prevRefused = 0, 0
	}
	g.newEpoch()
}

// cut sets the rate to just below what the store delivers. When too little is known of that, it halves the rate and starts slowly.
func (g *Gate) cut(delivered float64, trusted bool) {
	l := &g.law
	if !l.slow && !l.fresh && g.rate > 0 {
		l.good = g.rate
	}
	l.ceiling = g.rate
	r := g.p.Gamma * delivered
	l.slow = !trusted
	if !trusted {
		r = max(r, g.rate/2)
	}
	g.cutTo(r)
}

func (g *Gate) cutTo(rate float64) {
	g.setRate(min(rate, g.rate))
	g.law.fresh, g.law.doubled = true, false
	g.law.step = g.firstStep()
	g.version++
	g.newEpoch()
}

// shut is for a store of which nothing comes back but refusals: a quota that is used up, or an outage. Only probes go, fewer every second.
func (g *Gate) shut() {
	l := &g.law
	if !l.slow && !l.fresh && g.rate > 0 {
		l.good = g.rate
	}
	l.shut, l.shutAt = true, g.busy
	ok, _, seconds := l.window.sum(g.busy, g.p.Epoch)
	g.rate = min(g.rate, max(ok/seconds*g.p.ProbeShare, g.floor()))
	g.tokens = 0
	g.version++
	g.newEpoch()
}

// probe looks at the answer to a probe.
func (g *Gate) probe() {
	l := &g.law
	switch {
	case l.sentOK > 0:
		g.reopen()
	case g.busy-l.epochStart >= g.p.Epoch:
		g.rate = min(g.rate, max(g.rate/2, g.floor()))
		g.newEpoch()
	}
}

// reopen resumes at the best rate of any time before the store was shut, the time during which it was shut included: that is what a quota lets
// through on average, whatever its window is.
func (g *Gate) reopen() {
	l := &g.law
	closed := g.busy - l.shutAt
	ok, _, seconds := l.window.sum(g.busy, g.busy-max(l.opened, l.window.first))
	best := ok / seconds
	l.shut, l.opened = false, g.busy
	l.slow = closed > g.p.Outage
	g.rate = max(g.p.Gamma*best, g.p.MinRate, g.floor())
	l.fresh, l.doubled, l.step = true, false, g.firstStep()
	g.tokens = 0
	g.version++
	g.newEpoch()
	if l.slow {
		g.wake()
	}
}

// double is slow start finding that the store answers.
func (g *Gate) double() {
	l := &g.law
	g.rate *= 2
	l.slow = g.rate < l.good
	l.run, l.doubled = 0, true
	g.version++
	g.newEpoch()
	g.wake()
}

// beyond reports whether the rate has passed the last one that was too high by so much that the limit must have risen.
func (g *Gate) beyond() bool {
	l := &g.law
	return !l.slow && !l.fresh && l.refused == 0 && l.ceiling > 0 && g.rate > g.p.Beyond*l.ceiling+math.Sqrt(l.ceiling)
}

func (g *Gate) setRate(r float64) {
	g.rate = max(r, g.p.MinRate, g.floor())
}

// floor is the rate that keeps the wait of those in hand within its bound.
func (g *Gate) floor() float64 { return float64(max(g.inHand(), 1)) / g.p.MaxWait.Seconds() }

func (g *Gate) newEpoch() {
	l := &g.law
	l.epochStart, l.ok, l.refused, l.sentOK, l.binding = g.busy, 0, 0, 0, false
}

func (g *Gate) firstStep() float64 {
	return g.p.StepShare*g.rate + g.p.StepRoot*math.Sqrt(g.rate)
}

// background is the share of refusals that no cut has cured.
func (g *Gate) background() float64 {
	if len(g.law.noise) == 0 {
		return 0
	}
	least := g.p.NoiseCap
	for _, s := range g.law.noise {
		least = min(least, s)
	}
	return g.p.NoiseFactor * least
}
