package retrymode

import (
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/retrymode/gate"
)

// calm lets attempts through a gate that is off without its lock: all that has to be done for them is counting, and here the count is one word.
//
// The word is open or closed, and who takes the pacer's lock closes it. So attempts are counted in one place at a time: in the word while it is open, in
// the gate while it is closed. These hold whenever the word is open:
//
//   - The gate is off, nobody waits or is held back, and nothing but counts has changed since it was opened. So no permission is stale.
//   - Everybody who comes passes. Attempts that were served in time end here, and all others take the lock: so a refusal finds in the gate everything that was
//     served before it.
//   - In time means that all that were served fall into one slot of the gate's window and into one epoch (see [gate.Gate.Calm]).
//   - The time during which nothing is in flight is known, since the gate's busy clock stands still then.
type calm struct {
	// word is 0 when closed, else a composition: see below. An exchange that succeeds proves that it was not closed in between, so that the fields that were read
	// before belong to it.
	word atomic.Uint64

	until, version atomic.Int64 // of gate.Calm
	came           atomic.Int64 // the tickets that had come when it was opened, but for those in flight then
	// gaps is the time without anything in flight. A gap is added when it is over, and right after the exchange: one that misses its own tally is in the next,
	// where it takes from the busy clock what that was given too much. The gate's clock is ahead by a gap then, so gaps are short: a longer one takes the lock.
	gaps atomic.Int64

	openings uint64 // guarded by the pacer's lock
}

// The word, from its lowest bit:
//
//   - 20 bits: attempts served since it was opened;
//   - 27 bits: attempts in flight, whose tickets would fill 20 GB before they fill this; or
//     how long before until the last one went, in nanoseconds, if nothing is in flight: a slot is shorter than this can hold;
//   - 1 bit: nothing is in flight;
//   - 16 bits: the number of the opening, which tells words with the same counts apart.
const (
	oneServed   uint64 = 1
	oneInFlight uint64 = 1 << 20
	idle        uint64 = 1 << 47
	oneOpening  uint64 = 1 << 48

	fullyServed = oneInFlight - oneServed
	longestLeft = time.Duration(idle/oneInFlight - 1)
)

func servedOf(word uint64) uint64 { return word % oneInFlight }

// inFlightOf is 0 for a closed word as well.
func inFlightOf(word uint64) uint64 {
	if word&idle != 0 {
		return 0
	}
	return word % idle / oneInFlight
}

// leftOf is how long before until the last attempt went, if nothing is in flight.
func leftOf(word uint64) time.Duration { return time.Duration(word % idle / oneInFlight) }

// compose makes an open word.
func compose(opening, inFlight, served uint64, left time.Duration) uint64 {
	word := opening*oneOpening + served
	if inFlight == 0 {
		return word + idle + uint64(min(left, longestLeft))*oneInFlight
	}
	return word + inFlight*oneInFlight
}

// enter grants a ticket, or reports that this takes the lock.
func (c *calm) enter(now time.Duration, t *gate.Ticket) bool {
	for {
		word := c.word.Load()
		if word == 0 {
			return false
		}
		inFlight, served := inFlightOf(word), servedOf(word)
		left := time.Duration(c.until.Load()) - now
		if inFlight == 0 && left <= 0 {
			return false
		}
		version := int(c.version.Load())
		arrival := c.came.Load() + int64(inFlight+served) + 1 // to come adds one to the sum and to be served leaves it as it is
		if !c.word.CompareAndSwap(word, compose(word/oneOpening, inFlight+1, served, 0)) {
			continue
		}
		if gap := leftOf(word) - left; inFlight == 0 && gap > 0 {
			c.gaps.Add(int64(gap))
		}
		t.Pass(now, version, arrival)
		return true
	}
}

// served ends an attempt that was served, or reports that this takes the lock.
func (c *calm) served(now time.Duration) bool {
	for {
		word := c.word.Load()
		left := time.Duration(c.until.Load()) - now
		inFlight, served := inFlightOf(word), servedOf(word)
		if inFlight == 0 || served == fullyServed || left <= 0 {
			return false
		}
		if c.word.CompareAndSwap(word, compose(word/oneOpening, inFlight-1, served+1, left)) {
			return true
		}
	}
}

// isOpen reports that no permission is stale at this moment.
func (c *calm) isOpen() bool { return c.word.Load() != 0 }

// close stops the counting and gives the tally to the gate. Called with the pacer's lock held, before anything else.
func (c *calm) close(g *gate.Gate) {
	if c.word.Load() == 0 {
		return // and stays it: opening takes the lock
	}
	word := c.word.Swap(0)
	t := gate.Tally{InFlight: int(inFlightOf(word)), Served: int(servedOf(word)), Gaps: time.Duration(c.gaps.Swap(0))}
	if t.InFlight == 0 {
		t.Idle = time.Duration(c.until.Load()) - leftOf(word)
	}
	g.Absorb(t)
}

// open begins to count, if the gate is calm. Called with the pacer's lock held, after everything else.
func (c *calm) open(g *gate.Gate) {
	k, ok := g.Calm()
	if !ok {
		return
	}
	c.until.Store(int64(k.Until))
	c.version.Store(int64(k.Version))
	c.came.Store(k.Arrivals - int64(k.InFlight))
	c.openings++
	c.word.Store(compose(c.openings, uint64(k.InFlight), 0, k.Until-k.Now))
}
