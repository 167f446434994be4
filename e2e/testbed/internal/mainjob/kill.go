package mainjob

import (
	"math/rand/v2"
	"time"

	"github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"
)

// kill is one planned death of the job. It is aimed at the log of the process
// that it ends: the place is a checkpoint or a pause between two, the moment
// within the place is a fraction of its expected length.
type kill struct {
	inside   bool    // a checkpoint; otherwise between two
	after    int     // checkpoints that the process commits before
	fraction float64 // in [0, 1)
}

// planKills draws n kills, by turns inside and between checkpoints. Some strike
// the very first checkpoint of a process.
func planKills(n int, rng *rand.Rand) []kill {
	kills := make([]kill, n)
	for i := range kills {
		kills[i] = kill{inside: i%2 == 0, after: rng.IntN(3), fraction: rng.Float64()}
	}
	return kills
}

// aim finds the moment of one kill from the events of one process. It is a state
// machine without a clock: the time comes in with each event.
type aim struct {
	kill kill
	// pause and length are the expected lengths of a pause between checkpoints
	// and of a checkpoint. Each miss halves both, so that a moment behind the end
	// of its place comes to lie inside.
	pause, length time.Duration

	committed int
	misses    int
	armed     bool
	open      int64 // id of the checkpoint under way, 0 between two
	last      int64 // id of the last one committed
	begunAt   time.Time
}

// expectedLength is taken for the length of a checkpoint until one was seen.
const expectedLength = 40 * time.Millisecond

// observe takes the next event. When set is true, the kill is due at the time
// returned; a kill that was due before and has not happened is withdrawn, because
// the place that it was aimed at is over.
func (a *aim) observe(e sluicecmd.Event, now time.Time) (due time.Time, set bool) {
	if a.armed {
		a.armed = false
		a.misses++
		a.pause /= 2
		a.length /= 2
	}
	switch e.Kind {
	case sluicecmd.Begun:
		a.open, a.begunAt = e.ID, now
	case sluicecmd.Committed:
		a.committed++
		a.last = e.ID
		if a.open == e.ID {
			a.length = min(a.length, now.Sub(a.begunAt))
		}
		a.open = 0
	}
	if a.kill.inside != (a.open != 0) || a.committed < a.kill.after {
		return time.Time{}, false
	}
	a.armed = true
	place := a.pause
	if a.kill.inside {
		place = a.length
	}
	if a.misses >= maxMisses {
		place = 0
	}
	return now.Add(time.Duration(a.kill.fraction * float64(place))), true
}

// maxMisses is the number of missed moments after which a kill comes at once
// when its place begins.
const maxMisses = 3
