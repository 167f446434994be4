package gate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// fixedWindow lets limit attempts through in each window, and refuses the rest.
func fixedWindow(limit int, window, latency time.Duration) store {
	var n int
	var of time.Duration
	return func(now time.Duration) (Outcome, time.Duration) {
		if w := now / window; w != of {
			of, n = w, 0
		}
		if n >= limit {
			return Refused, latency
		}
		n++
		return Served, latency
	}
}

// The last epoch of a window of five seconds sees little but refusals. What the store delivers is what it delivered since the last cut.
func TestQuotaWithALongWindowIsPacedAtItsAverage(t *testing.T) {
	const rate = 400
	w := newWorld(t, fixedWindow(5*rate, 5*time.Second, 100*ms))
	w.crowd(96, 0, 0)
	w.run(2 * time.Minute)
	assert.GreaterOrEqual(t, w.goodput(5*time.Second, 15*time.Second), 0.98*rate, "the windows after the one that was used up in two seconds")
	assert.GreaterOrEqual(t, w.goodput(10*time.Second, 2*time.Minute), 0.99*rate)
	assert.LessOrEqual(t, w.refusedShare(10*time.Second, 2*time.Minute), 0.05)
	assert.Zero(t, w.failed)
}

// queueing answers one attempt after the other, so many a second, and none of those whose caller has given up waiting; their work is done all the same.
func queueing(perSecond int, patience time.Duration) store {
	var free time.Duration
	return func(now time.Duration) (Outcome, time.Duration) {
		free = max(free, now) + time.Second/time.Duration(perSecond)
		if wait := free - now; wait <= patience {
			return Served, wait
		}
		return Refused, patience
	}
}

// Nothing is refused while the line inside the store grows, so growth must end when the answers no longer follow. 256 callers fill two seconds of a line of 100 a second.
func TestStoreThatFallsBehindIsNotSentMore(t *testing.T) {
	w := newWorld(t, queueing(100, 2*time.Second))
	w.crowd(256, 0, 0)
	w.run(2 * time.Minute)
	assert.GreaterOrEqual(t, w.goodput(20*time.Second, 2*time.Minute), 80.0)
	assert.LessOrEqual(t, w.refusedShare(20*time.Second, 2*time.Minute), 0.1)
}

// Answers follow what is sent by the time that a call takes. A rate that leaps after a limit that has risen is not taken for a store that falls behind.
func TestAnswersOfSlowCallsAreWaitedFor(t *testing.T) {
	limit := func(now time.Duration) int {
		if now < 30*time.Second {
			return 100
		}
		return 400
	}
	w := newWorld(t, wall(450*ms, limit))
	w.crowd(256, 0, 0)
	w.run(time.Minute)
	assert.GreaterOrEqual(t, w.goodput(40*time.Second, 50*time.Second), 0.9*400)
}

// Callers that come in short bursts have to wait for some moments of each. That they ask for less than they may is nothing that the rate falls for.
func TestUnusedPermissionsAreNoReasonToSlowDown(t *testing.T) {
	w := newWorld(t, wall(50*ms, constant(200)))
	w.crowd(64, 0, 20*time.Second)
	for i := range 40 { // then 20 calls at once, every second, beside a caller that keeps the gate busy
		for range 20 {
			w.caller(time.Duration(20+i)*time.Second, 0, 1, 0)
		}
	}
	w.caller(20*time.Second, time.Minute, -1, 0)
	lowest := 1e9
	w.look = func() {
		if s := w.g.State(); s.On && w.now > 22*time.Second {
			lowest = min(lowest, s.Rate)
		}
	}
	w.run(time.Minute)
	assert.GreaterOrEqual(t, lowest, 180.0)
}

// A client that gets few answers has long epochs; it grows by a step with each of them and not with each of their seconds.
func TestGrowthIsAStepPerEpoch(t *testing.T) {
	const limit = 4
	w := newWorld(t, wall(100*ms, constant(limit)))
	w.crowd(16, 0, 0)
	highest := 0.0
	w.look = func() {
		if w.now > time.Minute {
			highest = max(highest, w.g.State().Rate)
		}
	}
	w.run(5 * time.Minute)
	assert.LessOrEqual(t, highest, 1.2*limit)
	assert.GreaterOrEqual(t, w.goodput(time.Minute, 5*time.Minute), 0.85*limit)
}

// A store that fails a third of what it is sent for reasons of its own has answered all the same: there is no line inside it that a lower rate would drain. A cut counts what
// was served, so the rate is two thirds of the limit at the least, and two thirds of that are served.
func TestErrorsOfTheStoreAreAnswers(t *testing.T) {
	const limit = 200
	inner := wall(100*ms, constant(limit))
	n := 0
	w := newWorld(t, func(now time.Duration) (Outcome, time.Duration) {
		o, latency := inner(now)
		if n++; o == Served && n%3 == 0 {
			o = Nothing
		}
		return o, latency
	})
	w.crowd(128, 0, 0)
	w.run(time.Minute)
	assert.GreaterOrEqual(t, w.goodput(5*time.Second, time.Minute), 0.95*limit*2/3*2/3)
}

// When the gate reopens, and after each doubling, the first answers are those to the few attempts that were sent before. That is no line inside the store either.
func TestAnswersOfSlowCallsAreWaitedForAfterReopening(t *testing.T) {
	const limit, start = 400, 20 * time.Second
	for _, outage := range []time.Duration{2 * time.Second, 8 * time.Second} {
		w := newWorld(t, between(start, start+outage, wall(400*ms, constant(limit))))
		w.crowd(1000, 0, 0)
		end := start + outage
		w.run(end + 10*time.Second)
		assert.GreaterOrEqual(t, w.goodput(end+time.Second, end+5*time.Second), 0.9*limit, "outage of %s", outage)
		assert.GreaterOrEqual(t, w.goodput(end+5*time.Second, end+10*time.Second), 0.95*limit, "outage of %s", outage)
	}
}
