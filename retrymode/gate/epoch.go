package gate

import (
	"math"
	"time"
)

// epoch is the length of an epoch: longer than Epoch when calls are, so that what is judged was sent in it.
func (g *Gate) epoch() time.Duration {
	return max(g.p.Epoch, min(time.Duration(g.p.EpochCalls*float64(g.law.latency)), windowLength))
}

// enough reports whether the epoch has seen enough to be judged. An epoch after a cut is long, unless it shows that the cut was far too small.
func (g *Gate) enough(elapsed time.Duration) bool {
	l := &g.law
	need := g.p.EpochAnswers
	if l.fresh && 4*l.refused <= l.ok+l.refused {
		need = g.p.FreshAnswers
	}
	return l.ok+l.refused >= need || elapsed.Seconds() >= g.p.MaxEpochs*g.epoch().Seconds()
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
		g.sample(share)
	}
	fresh := l.fresh
	l.fresh = false
	switch {
	case share > background+g.p.Tolerance:
		g.cut(g.delivered(elapsed), l.ok >= 3)
		return
	case l.waited > 0 && share > background:
		l.step = g.firstStep() // hold
	case l.waited > 0 && !fresh && !l.risen && g.behind(elapsed):
		g.drain(elapsed)
	case l.waited > 0 && !fresh:
		g.grow()
	case l.waited == 0 && g.now-l.lastRefusal > g.p.Quiet:
		g.on = false
		l.prevOK, l.prevRefused = 0, 0
	}
	g.newEpoch()
}

func (g *Gate) newEpoch() {
	l := &g.law
	l.epochStart, l.ok, l.refused, l.others, l.sentOK, l.risen, l.waited = g.busy, 0, 0, 0, 0, false, 0
}

// delivered is what the store lets through, per second: in this epoch, or since the last cut if that is more. A quota whose window is longer than an epoch refuses
// everything at its end, and the epoch in which it does says too little. Where there are few answers, those before the cut count as well.
func (g *Gate) delivered(elapsed time.Duration) float64 {
	l := &g.law
	rate := float64(l.ok) / elapsed.Seconds()
	over := g.busy - l.changed
	if l.ok > 0 && float64(l.ok) < g.p.DeliveredAnswers {
		over = max(over, span(g.p.DeliveredAnswers, rate))
	}
	ok, _, seconds := l.window.sum(g.busy, over)
	return max(rate, ok/seconds)
}

// grow raises the rate by a step.
func (g *Gate) grow() {
	l := &g.law
	by := l.step
	if g.beyond() {
		by = max(by, g.p.Leap*g.rate)
	}
	g.rate += min(by, g.rate)
	l.step *= g.p.Acceleration
}

// behind reports whether the store answers clearly less than it is sent: what is missing waits inside it.
func (g *Gate) behind(elapsed time.Duration) bool {
	return g.law.ended() < g.p.KeepUp*g.rate*elapsed.Seconds()
}

// ended is how many attempts came back in this epoch, whatever they taught.
func (l *law) ended() float64 { return float64(l.ok + l.refused + l.others) }

// drain lets a store that is behind catch up. When nobody waited for much of the epoch, less was sent than permitted, and nothing follows from it.
func (g *Gate) drain(elapsed time.Duration) {
	l := &g.law
	if l.waited < elapsed*9/10 {
		return
	}
	answered := l.ended() / elapsed.Seconds()
	g.rate = max(g.p.KeepUp*answered, g.p.MinRate)
	l.step = g.firstStep()
}

// sample keeps the share that was refused right after a cut.
func (g *Gate) sample(share float64) {
	l := &g.law
	l.noise = append(l.noise, share)
	if len(l.noise) > g.p.NoiseSamples {
		l.noise = l.noise[1:]
	}
}

// beyond reports whether the rate has passed the last one that was too high by so much that the limit must have risen.
func (g *Gate) beyond() bool {
	l := &g.law
	return !l.slow && !l.fresh && l.refused == 0 && l.ceiling > 0 && g.rate > g.p.Beyond*l.ceiling+g.p.BeyondRoot*math.Sqrt(l.ceiling)
}

func (g *Gate) firstStep() float64 {
	return g.p.StepShare*g.rate + g.p.StepRoot*math.Sqrt(g.rate)
}

// background is the share of refusals that no cut has cured.
func (g *Gate) background() float64 {
	if len(g.law.noise) < g.p.NoiseSamples {
		return 0
	}
	least := g.p.NoiseCap
	for _, s := range g.law.noise {
		least = min(least, s)
	}
	return g.p.NoiseFactor * least
}
