package gate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shutGate returns a gate that has served 400 attempts in its first half second, and was shut by refusals then.
func shutGate(t *testing.T) (*Gate, time.Duration) {
	t.Helper()
	g := New(Defaults(time.Second, 20*time.Second))
	all := grant(t, g, 0, 500)
	done(g, 500*ms, Served, all[:400]...)
	done(g, 510*ms, Refused, all[400:]...) // turns it on
	now := 600 * ms
	for !g.State().Shut {
		next, again := g.Next(now)
		if next == nil {
			g.Join(now, &Ticket{})
			now += again
			continue
		}
		g.Done(now+100*ms, next, Refused)
		now += ms
		require.Less(t, now, 3*time.Second, "it is shut by now")
	}
	for _, lane := range g.lanes { // nobody is left
		for lane.first != nil {
			g.Leave(now, lane.first)
			lane = g.lanes[laneOf(&Ticket{})]
		}
	}
	require.Zero(t, g.waiting)
	return g, now
}

// next waits for the next permission.
func next(t *testing.T, g *Gate, now time.Duration) (*Ticket, time.Duration) {
	t.Helper()
	for range 100 {
		ticket, again := g.Next(now)
		if ticket != nil {
			return ticket, now
		}
		require.Positive(t, again, "somebody is waiting")
		now += again
	}
	t.Fatal("no permission after 100 waits")
	return nil, 0
}

// A probe that is refused costs its call a retry. Calls that have all of theirs left are sent, although the others have waited longer.
func TestProbesAreFirstAttempts(t *testing.T) {
	g, now := shutGate(t)
	retry, first := &Ticket{Retry: true}, &Ticket{}
	g.Join(now, retry)
	g.Join(now+ms, first)
	probe, now := next(t, g, now+2*ms)
	assert.Same(t, first, probe)
	probe, _ = next(t, g, now)
	assert.Same(t, retry, probe, "who else")
}

// The store is back: calls that were held back go now, except those that the store itself has told when to come.
func TestReopeningEndsHolds(t *testing.T) {
	g, now := shutGate(t)
	probe := &Ticket{}
	g.Join(now, probe)
	held, hinted := &Ticket{Retry: true, Hold: 15 * time.Second}, &Ticket{Retry: true, Hold: 15 * time.Second, NotBefore: 12 * time.Second}
	g.Join(now, held)
	g.Join(now, hinted)
	got, now := next(t, g, now)
	require.Same(t, probe, got)
	now += 100 * ms
	g.Done(now, probe, Served)
	require.False(t, g.State().Shut)
	got, at := next(t, g, now)
	assert.Same(t, held, got)
	assert.Less(t, at-now, 100*ms)
	assert.Equal(t, 1, g.State().Held)
}

// A store that takes two seconds to fail, and has answered nothing else for longer than an epoch, is not sent half of what it did not answer.
func TestSurgeAfterASilentEpochShuts(t *testing.T) {
	g := New(Defaults(time.Second, 20*time.Second))
	served := grant(t, g, 0, 100)
	lost := grant(t, g, 0, 100)
	done(g, 500*ms, Served, served...)
	done(g, 2*time.Second, Refused, lost[:3]...)
	require.True(t, g.State().On)
	require.False(t, g.State().Shut, "there has been no time to see whether the cut helps")
	var sent []*Ticket
	now := 2 * time.Second
	for len(sent) < g.p.SurgeRefusals {
		g.Join(now, &Ticket{})
		var ticket *Ticket
		ticket, now = next(t, g, now)
		sent = append(sent, ticket)
	}
	done(g, now+2*time.Second, Refused, sent...)
	assert.True(t, g.State().Shut)
}

// New calls keep coming all through an outage and end at their deadlines, so that there is always a first attempt to probe with. A retry does not wait for the end of
// the outage.
func TestRetryIsAProbeWhenItHasWaitedLongEnough(t *testing.T) {
	g, now := shutGate(t)
	retry := &Ticket{Retry: true}
	g.Join(now, retry)
	joined := now
	for retry.state == queued && now < joined+2*g.p.MaxWait {
		for g.lanes[laneOf(&Ticket{})].n < 50 {
			g.Join(now, &Ticket{})
		}
		for probe, _ := g.Next(now); probe != nil; probe, _ = g.Next(now) {
			g.Done(now, probe, Nothing)
		}
		now += 100 * ms
	}
	require.True(t, g.State().Shut)
	assert.InDelta(t, g.p.MaxWait, now-joined, float64(2*time.Second))
}
