package mainjob

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"
)

// at is a time of the tests' own clock.
func at(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }

func newAim(k kill) *aim { return &aim{kill: k, pause: time.Second, length: 100 * time.Millisecond} }

func TestPlanKills_StrikesInsideAndBetweenAndIsRepeatable(t *testing.T) {
	plan := planKills(5, rand.New(rand.NewPCG(7, 7)))
	assert.Equal(t, plan, planKills(5, rand.New(rand.NewPCG(7, 7))))
	inside := 0
	for _, k := range plan {
		assert.True(t, k.fraction >= 0 && k.fraction < 1)
		if k.inside {
			inside++
		}
	}
	assert.Equal(t, 3, inside)
}

func TestAim_Inside_ComesWhileTheCheckpointRuns(t *testing.T) {
	a := newAim(kill{inside: true, after: 1, fraction: 0.5})
	_, set := a.observe(sluicecmd.Event{Kind: sluicecmd.Begun, ID: 1}, at(0))
	assert.False(t, set, "one checkpoint has to be committed before")
	_, set = a.observe(sluicecmd.Event{Kind: sluicecmd.Committed, ID: 1}, at(20))
	assert.False(t, set)
	due, set := a.observe(sluicecmd.Event{Kind: sluicecmd.Begun, ID: 2}, at(1000))
	assert.True(t, set)
	assert.Equal(t, at(1010), due, "half of the 20 ms that the last one took")
	assert.Equal(t, "inside checkpoint 2", a.place())
}

func TestAim_InsideTheVeryFirstCheckpoint(t *testing.T) {
	a := newAim(kill{inside: true, fraction: 0.25})
	due, set := a.observe(sluicecmd.Event{Kind: sluicecmd.Begun, ID: 1}, at(0))
	assert.True(t, set)
	assert.Equal(t, at(25), due)
}

func TestAim_Between_ComesInThePause(t *testing.T) {
	a := newAim(kill{after: 2, fraction: 0.5})
	for _, e := range []sluicecmd.Event{{Kind: sluicecmd.Begun, ID: 4}, {Kind: sluicecmd.Committed, ID: 4}, {Kind: sluicecmd.Begun, ID: 5}} {
		_, set := a.observe(e, at(0))
		assert.False(t, set)
	}
	due, set := a.observe(sluicecmd.Event{Kind: sluicecmd.Committed, ID: 5}, at(100))
	assert.True(t, set)
	assert.Equal(t, at(600), due)
	assert.Equal(t, "after checkpoint 5", a.place())
}

func TestAim_Missed_ComesEarlierNextTimeAndInTheEndAtOnce(t *testing.T) {
	a := newAim(kill{inside: true, fraction: 0.5})
	var waits []time.Duration
	for id := range int64(4) {
		now := at(int(id) * 1000)
		due, set := a.observe(sluicecmd.Event{Kind: sluicecmd.Begun, ID: id + 1}, now)
		assert.True(t, set)
		waits = append(waits, due.Sub(now))
		_, set = a.observe(sluicecmd.Event{Kind: sluicecmd.Committed, ID: id + 1}, now.Add(99*time.Millisecond))
		assert.False(t, set, "the place is over")
	}
	assert.Equal(t, []time.Duration{50 * time.Millisecond, 25 * time.Millisecond, 12500 * time.Microsecond, 0}, waits)
}
