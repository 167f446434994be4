package gate

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// paced returns a gate that is on, knows a store of about 100 calls a second, has nothing in hand and no token.
func paced(t *testing.T) (*Gate, time.Duration) {
	t.Helper()
	p := Defaults(time.Second, 20*time.Second)
	g, now := New(p), time.Duration(0)
	for range 10 {
		all := grant(t, g, now, 10)
		now += 100 * ms
		done(g, now, Served, all...)
	}
	all := grant(t, g, now, p.EnterRefusals+2)
	now += 10 * ms
	done(g, now, Refused, all[:p.EnterRefusals]...)
	require.True(t, g.State().On)
	done(g, now, Served, all[p.EnterRefusals:]...)
	next, _ := g.Next(now)
	require.Nil(t, next)
	require.Zero(t, g.inHand())
	return g, now
}

// drain follows the gate's own waits until it grants no more, and returns what it granted in that order, and when.
func drain(t interface {
	Helper()
	Fatal(args ...any)
}, g *Gate, now time.Duration) (order []*Ticket, at []time.Duration) {
	t.Helper()
	for range 100_000 {
		ticket, again := g.Next(now)
		switch {
		case ticket != nil:
			order, at = append(order, ticket), append(at, now)
		case again == 0:
			return order, at
		default:
			now += again
		}
	}
	t.Fatal("no end")
	return nil, nil
}

func names(ts []*Ticket) []any {
	all := make([]any, len(ts))
	for i, t := range ts {
		all[i] = t.Owner
	}
	return all
}

func TestRetriesGoBeforeFirstAttemptsAndPriorityGoesBeforeAll(t *testing.T) {
	g, now := paced(t)
	for _, ticket := range []*Ticket{
		{Owner: "first 1"},
		{Owner: "retry 1", Retry: true},
		{Owner: "publish 1", Priority: true},
		{Owner: "first 2"},
		{Owner: "publish again 1", Priority: true, Retry: true},
		{Owner: "retry 2", Retry: true},
		{Owner: "publish 2", Priority: true},
		{Owner: "publish again 2", Priority: true, Retry: true},
	} {
		g.Join(now, ticket)
	}
	order, _ := drain(t, g, now)
	assert.Equal(t, []any{
		"publish again 1", "publish again 2", "publish 1", "publish 2", "retry 1", "retry 2", "first 1", "first 2",
	}, names(order))
}

// The permission is given back and asked for again: the ticket is still the oldest of its lane.
func TestRejoinKeepsThePlaceInTheQueue(t *testing.T) {
	g, now := paced(t)
	all := make([]*Ticket, 6)
	for i := range all {
		all[i] = &Ticket{Owner: i}
		g.Join(now, all[i])
	}
	var got []*Ticket
	for len(got) < 3 {
		ticket, again := g.Next(now)
		if ticket != nil {
			got = append(got, ticket)
		}
		now += again
	}
	g.Join(now, &Ticket{Owner: "latecomer"})
	g.Rejoin(now, got[2])
	g.Rejoin(now, got[0])
	g.Rejoin(now, got[1])
	assert.Equal(t, 7, g.State().Waiting)
	order, _ := drain(t, g, now)
	assert.Equal(t, []any{0, 1, 2, 3, 4, 5, "latecomer"}, names(order))
}

// A retry stands in its lane from the end of its hold on, not from when the hold began.
func TestHoldsEndInTheOrderInWhichTheyAreDue(t *testing.T) {
	g := New(Defaults(time.Second, 20*time.Second))
	for i, hold := range []time.Duration{300 * ms, 100 * ms, 500 * ms, 200 * ms, 400 * ms} {
		g.Join(time.Duration(i)*ms, &Ticket{Retry: true, Hold: hold, Owner: i})
	}
	assert.Equal(t, State{Held: 5}, g.State())
	order, at := drain(t, g, 4*ms)
	assert.Equal(t, []any{1, 3, 0, 4, 2}, names(order))
	assert.Equal(t, []time.Duration{101 * ms, 203 * ms, 300 * ms, 404 * ms, 502 * ms}, at)
	for i, ticket := range order {
		assert.Equal(t, at[i], ticket.QueuedAt())
	}
}

// The heap's own order does not show in what comes out of it, whatever leaves early.
func TestHoldsAgreeWithASortedList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := New(Defaults(time.Second, 20*time.Second))
		var all []*Ticket
		for i, hold := range rapid.SliceOfN(rapid.IntRange(1, 50), 1, 40).Draw(rt, "holds") {
			ticket := &Ticket{Hold: time.Duration(hold) * ms, Owner: time.Duration(hold)*ms + time.Duration(i)}
			ticket.Hold += time.Duration(i) // no two are due at the same moment
			all = append(all, ticket)
			g.Join(0, ticket)
		}
		var want []any
		for _, ticket := range all {
			if rapid.IntRange(0, 3).Draw(rt, "leaves") == 0 {
				g.Leave(0, ticket)
			} else {
				want = append(want, ticket.Owner)
			}
		}
		slices.SortFunc(want, func(a, b any) int { return int(a.(time.Duration) - b.(time.Duration)) })
		order, _ := drain(rt, g, 0)
		assert.Equal(rt, want, append([]any(nil), names(order)...))
	})
}

// down brings a gate to where the store has refused everything for a while, with nothing in hand.
func down(t *testing.T) (*Gate, time.Duration) {
	t.Helper()
	g, now := paced(t)
	for end := now + 8*time.Second; now < end; {
		ticket := &Ticket{}
		g.Join(now, ticket)
		order, at := drain(t, g, now)
		require.Len(t, order, 1)
		now = at[0] + 50*ms
		g.Done(now, ticket, Refused)
	}
	return g, now
}

// back lets one call at a time through a gate until the store has answered n of them.
func back(t *testing.T, g *Gate, now time.Duration, n int) time.Duration {
	t.Helper()
	for range n {
		ticket := &Ticket{Priority: true}
		g.Join(now, ticket)
		for {
			got, again := g.Next(now)
			if got == ticket {
				break
			}
			require.Nil(t, got)
			now += again
		}
		now += 50 * ms
		g.Done(now, ticket, Served)
	}
	return now
}

func TestAllHoldsEndWhenTheStoreComesBack(t *testing.T) {
	g, now := down(t)
	for i := range 20 {
		g.Join(now, &Ticket{Retry: true, Hold: time.Hour, Owner: i})
	}
	now = back(t, g, now, 10)
	assert.Zero(t, g.State().Held)
	order, at := drain(t, g, now)
	assert.Len(t, order, 20)
	assert.Less(t, at[19]-now, time.Minute)
}

// What the store itself asked for is kept also when it answers others; the random hold on top of it is not.
func TestHintOfTheStoreHoldsAlsoWhenTheStoreComesBack(t *testing.T) {
	g, now := down(t)
	hinted := now
	g.Join(now, &Ticket{Retry: true, NotBefore: 10 * time.Minute, Owner: "hint"})
	g.Join(now, &Ticket{Retry: true, NotBefore: 5 * time.Minute, Hold: time.Hour, Owner: "hint and hold"})
	g.Join(now, &Ticket{Retry: true, NotBefore: ms, Hold: time.Hour - time.Minute, Owner: "hint that has passed"})
	g.Join(now, &Ticket{Retry: true, Hold: time.Hour, Owner: "hold"})
	now = back(t, g, now, 10)
	assert.Equal(t, 2, g.State().Held)
	order, at := drain(t, g, now)
	require.Equal(t, []any{"hint that has passed", "hold", "hint and hold", "hint"}, names(order))
	assert.Less(t, at[1]-hinted, 5*time.Minute)
	assert.GreaterOrEqual(t, at[2]-hinted, 5*time.Minute)
	assert.Less(t, at[2]-hinted, 10*time.Minute)
	assert.GreaterOrEqual(t, at[3]-hinted, 10*time.Minute)
	assert.Less(t, at[3]-hinted, 11*time.Minute)
}
