package lab

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheCalendarGivesEventsInTheOrderOfTimeAndOfEntry(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var c calendar
	var now time.Duration
	entered := map[*timer]int{}
	n, lastAt, lastEntry := 0, time.Duration(-1), -1
	for n < 20_000 || !c.empty() {
		if n < 20_000 && (c.empty() || rng.IntN(2) == 0) {
			tm := &timer{}
			entered[tm] = n
			n++
			c.put(event{at: now + time.Duration(rng.IntN(20)), timer: tm})
			continue
		}
		e := c.take()
		require.GreaterOrEqual(t, e.at, lastAt)
		if e.at == lastAt {
			require.Greater(t, entered[e.timer], lastEntry)
		}
		now, lastAt, lastEntry = e.at, e.at, entered[e.timer]
		delete(entered, e.timer)
	}
	require.Empty(t, entered)
}
