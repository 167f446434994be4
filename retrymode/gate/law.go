package gate

import "time"

// law is what the gate knows about the store.
type law struct {
	window      window
	epochStart  time.Duration // busy time
	ok, refused int           // answers since then; refusals of attempts that were sent before the last cut are left out
	others      int           // attempts that ended since then and taught nothing about the limit
	// The epoch before, while the gate is off: evidence may straddle the border.
	prevOK, prevRefused int
	sentOK              int // answers to attempts that were sent after the last change of the rate
	streak              int // refusals since the last answer that was none

	shut             bool          // nothing passes: only probes go
	shutAt           time.Duration // busy time
	opened           time.Duration // busy time of the last end of that
	passed, passedIn float64       // what was delivered between the two and since then, and in how many seconds between the two

	changed time.Duration // busy time of the last cut or reopening
	latency time.Duration // smoothed, of answers that were no refusals

	waited  time.Duration // for how long somebody had to wait in this epoch
	fresh   bool          // this is the first epoch after a cut
	risen   bool          // this is the first epoch after a reopening or a doubling: few were sent before, whose answers are its first
	slow    bool          // slow start: the limit is unknown
	doubled bool          // slow start has doubled at least once
	run     int           // answers in a row without a refusal
	ceiling float64       // the last rate that was too high
	good    float64       // the last rate that was all right, 0 = none is known
	step    float64       // calls per second and second

	lastRefusal time.Duration // in real time
	noise       []float64     // shares refused right after a cut, newest last
}

// learn takes an answer in.
func (g *Gate) learn(t *Ticket, o Outcome) {
	l := &g.law
	switch o {
	case Nothing:
		l.others++
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
		l.passed++
		if took := g.now - t.grantedAt; l.latency == 0 {
			l.latency = took
		} else {
			l.latency += (took - l.latency) / 16
		}
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
	case l.refused >= g.p.ShutRefusals && l.sentOK == 0, l.streak >= max(g.p.ShutStreak, 2*(g.inHand()+1)):
		g.shut()
	case l.refused >= g.p.SurgeRefusals && l.refused > l.ok:
		g.surge()
	case l.slow && l.doubled && o == Refused && t.version == g.version:
		l.slow = false
		g.cutTo(g.rate / 2)
	case l.slow && l.run >= g.p.Run:
		g.double()
	case (elapsed >= g.epoch() || g.beyond() && elapsed >= g.epoch()/2 && !g.behind(elapsed)) && g.enough(elapsed):
		g.endEpoch(elapsed)
	}
}

// surge is for refusals that outnumber the rest before the epoch is over. A store that has not answered for an epoch is looked for with probes.
func (g *Gate) surge() {
	ok, _, seconds := g.law.window.sum(g.busy, g.p.Epoch)
	if ok < 1 && g.law.sentOK == 0 {
		g.shut()
		return
	}
	g.cut(ok/seconds, ok >= g.p.TrustedAnswers)
}
