package gate

import "time"

// cut sets the rate to just below what the store delivers. When too little is known of that, it halves the rate and starts slowly.
func (g *Gate) cut(delivered float64, trusted bool) {
	l := &g.law
	g.remember()
	l.ceiling = g.rate
	r := g.p.Gamma * delivered
	l.slow = !trusted
	if !trusted {
		r = max(r, g.rate/2)
	}
	g.cutTo(r)
}

// cutTo lowers the rate and begins the epoch that shows whether it helps.
func (g *Gate) cutTo(rate float64) {
	g.change(min(rate, g.rate))
	g.law.changed = g.busy
	g.law.fresh, g.law.doubled = true, false
	g.law.step = g.firstStep()
}

// double is slow start finding that the store answers.
func (g *Gate) double() {
	l := &g.law
	g.change(2 * g.rate)
	l.slow = g.rate < l.good
	l.run, l.doubled, l.risen = 0, true, true
	g.wake()
}

// shut is for a store of which nothing comes back but refusals: a quota that is used up, or an outage. Only probes go, fewer every second.
func (g *Gate) shut() {
	l := &g.law
	g.remember()
	l.shut, l.shutAt = true, g.busy
	l.passed, _, l.passedIn = l.window.sum(g.busy, g.busy-max(l.opened, l.window.first))
	ok, _, seconds := l.window.sum(g.busy, g.p.Epoch)
	g.probeAt(g.p.ProbeShare * ok / seconds)
	g.version++
}

// probe looks at the answer to a probe.
func (g *Gate) probe() {
	l := &g.law
	switch {
	case l.sentOK > 0:
		g.reopen()
	case g.busy-l.epochStart >= g.p.Epoch:
		g.probeAt(g.rate / 2)
	}
}

// probeAt sets the rate of probes. It has no lower bound but [Gate.pace]'s.
func (g *Gate) probeAt(rate float64) {
	g.rate = min(g.rate, rate)
	g.tokens = min(g.tokens, 1)
	g.newEpoch()
}

// reopen resumes at what the store has delivered since it opened the last time, the time during which it was shut included: that is what a quota
// lets through on average, whatever its window is. After an outage that says little, so the rate is doubled up from there.
func (g *Gate) reopen() {
	l := &g.law
	closed := g.busy - l.shutAt
	l.shut, l.opened, l.changed = false, g.busy, g.busy
	l.slow = closed > g.p.Outage
	g.change(g.p.Gamma * l.passed / (l.passedIn + closed.Seconds()))
	l.fresh, l.risen, l.doubled, l.step = false, true, false, g.firstStep()
	g.tokens = g.p.ReopenBurst * g.rate * min(closed.Seconds(), 1)
	g.wake()
}

// remember keeps the rate as one that was all right, if it was a judged one.
func (g *Gate) remember() {
	if l := &g.law; !l.slow && !l.fresh && !l.shut && g.rate > 0 {
		l.good = g.rate
	}
}

// change sets the rate; what was sent before is old news then.
func (g *Gate) change(rate float64) {
	g.rate = max(rate, g.p.MinRate)
	g.tokens = min(g.tokens, g.burst())
	g.version++
	g.newEpoch()
}

// pace is the rate at which permissions are given: the law's, and never so low that those in hand would wait longer than the bound.
func (g *Gate) pace() float64 {
	return max(g.rate, float64(max(g.inHand(), 1))/g.p.MaxWait.Seconds())
}

// span is n answers' worth of time at the given rate.
func span(n, rate float64) time.Duration {
	return time.Duration(n / rate * float64(time.Second))
}
