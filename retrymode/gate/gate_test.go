package gate

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGateThatIsOffGrantsAtOnce(t *testing.T) {
	g := New(Defaults(time.Second, 20*time.Second))
	all := grant(t, g, 0, 1000)
	assert.Equal(t, State{InFlight: 1000}, g.State())
	next, again := g.Next(0)
	assert.Nil(t, next)
	assert.Zero(t, again)
	done(g, ms, Served, all...)
	assert.True(t, g.Idle(0))
}

// The gate is paced: the gaps between grants are 1/rate, but for the few that were saved up.
func TestGrantsAreSpacedByTheRate(t *testing.T) {
	g, now := paced(t)
	rate := g.State().Rate
	require.Greater(t, rate, 1.0)
	for range 101 {
		g.Join(now, &Ticket{})
	}
	_, at := drain(t, g, now)
	require.Len(t, at, 101)
	saved := math.Max(1, rate*Defaults(time.Second, 20*time.Second).Burst.Seconds())
	assert.InDelta(t, 100/rate, (at[100] - at[0]).Seconds(), (saved+1)/rate)
	for i := 20; i < 101; i++ {
		assert.InDelta(t, 1/rate, (at[i] - at[i-1]).Seconds(), 1e-6)
	}
}

// Whoever asks again after exactly the time that was named gets a permission then: there is no wait of nothing that comes back for ever. Rates
// of all sizes, as the rounding of a wait is worst at the ends.
func TestAskingAgainAfterTheNamedTimeIsNotInVain(t *testing.T) {
	for _, rate := range []float64{0.5, 1.0 / 3, 7, 99.99, 1234.567, 1e5, 3e8} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			g, now := paced(t)
			g.rate = rate
			for range 200 {
				g.Join(now, &Ticket{})
			}
			asked := 0
			for granted := 0; granted < 200; {
				ticket, again := g.Next(now)
				if ticket != nil {
					granted, asked = granted+1, 0
					continue
				}
				require.Positive(t, again, "somebody waits")
				now += again
				asked++
				require.Less(t, asked, 4, "asked in vain")
			}
		})
	}
}

// A wait is named also for those who are held back only, and it is the time of the first of them.
func TestNextNamesTheEndOfTheFirstHold(t *testing.T) {
	g := New(Defaults(time.Second, 20*time.Second))
	g.Join(0, &Ticket{Hold: 3 * time.Second})
	g.Join(0, &Ticket{Hold: 2 * time.Second})
	ticket, again := g.Next(0)
	assert.Nil(t, ticket)
	assert.Equal(t, 2*time.Second, again)
	ticket, again = g.Next(2*time.Second - 1)
	assert.Nil(t, ticket)
	assert.Equal(t, time.Duration(1), again)
	ticket, _ = g.Next(2 * time.Second)
	assert.NotNil(t, ticket)
	_, again = g.Next(2 * time.Second)
	assert.Equal(t, time.Second, again)
}

func TestTicketMayLeaveInEveryState(t *testing.T) {
	for name, leave := range map[string]func(g *Gate, now time.Duration, ticket *Ticket){
		"never joined": func(g *Gate, now time.Duration, ticket *Ticket) {},
		"held": func(g *Gate, now time.Duration, ticket *Ticket) {
			ticket.Hold = time.Hour
			g.Join(now, ticket)
			require.Equal(t, 1, g.State().Held)
		},
		"waiting": func(g *Gate, now time.Duration, ticket *Ticket) {
			g.Join(now, ticket)
			require.Equal(t, 1, g.State().Waiting)
		},
		"in flight": func(g *Gate, now time.Duration, ticket *Ticket) {
			g.Join(now, ticket)
			order, _ := drain(t, g, now)
			require.Len(t, order, 1)
		},
		"waiting again": func(g *Gate, now time.Duration, ticket *Ticket) {
			g.Join(now, ticket)
			order, _ := drain(t, g, now)
			require.Len(t, order, 1)
			g.Rejoin(now, ticket)
			require.Equal(t, 1, g.State().Waiting)
		},
		"ended": func(g *Gate, now time.Duration, ticket *Ticket) {
			g.Join(now, ticket)
			order, _ := drain(t, g, now)
			require.Len(t, order, 1)
			g.Done(now, ticket, Served)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, now := paced(t)
			ticket := &Ticket{}
			leave(g, now, ticket)
			now = g.now
			for range 3 {
				g.Leave(now, ticket)
				assert.Zero(t, g.inHand())
				next, again := g.Next(now)
				assert.Nil(t, next)
				assert.Zero(t, again)
			}
			g.Done(now, ticket, Refused)
			g.Rejoin(now, ticket)
			assert.Zero(t, g.inHand())

			other := &Ticket{}
			g.Join(now, other)
			order, _ := drain(t, g, now)
			assert.Equal(t, []*Ticket{other}, order, "the queue still moves")
		})
	}
}

// The second end of an attempt is not another answer.
func TestDoneTwiceCountsOnce(t *testing.T) {
	p := Defaults(time.Second, 20*time.Second)
	g := New(p)
	one := grant(t, g, 0, 2)
	for range 10 * p.EnterRefusals {
		g.Done(ms, one[0], Refused)
	}
	assert.Equal(t, State{InFlight: 1}, g.State())
	waiting := &Ticket{Hold: time.Hour}
	g.Join(ms, waiting)
	for range 10 * p.EnterRefusals {
		g.Done(ms, waiting, Refused)
	}
	assert.Equal(t, State{InFlight: 1, Held: 1}, g.State())
}

// A permission that was not used is the next one's: somebody gave up at the moment of the grant.
func TestPermissionOfWhoLeavesGoesToTheNext(t *testing.T) {
	g, now := paced(t)
	one, two := &Ticket{}, &Ticket{}
	g.Join(now, one)
	g.Join(now, two)
	order, at := drain(t, g, now)
	gap := at[1] - at[0]
	require.Positive(t, gap)
	done(g, at[1], Served, order...)

	now = at[1]
	one, two = &Ticket{}, &Ticket{}
	g.Join(now, one)
	g.Join(now, two)
	for {
		got, again := g.Next(now)
		if got == one {
			break
		}
		now += again
	}
	got, _ := g.Next(now)
	require.Nil(t, got)
	g.Leave(now, one)
	got, _ = g.Next(now)
	assert.Same(t, two, got, "at the same moment")
}

// Permissions that were granted before the gate went on, or before a cut, are stale; those granted since are not.
func TestPermissionsFromBeforeACutAreStale(t *testing.T) {
	p := Defaults(time.Second, 20*time.Second)
	g := New(p)
	all := grant(t, g, 0, 100)
	for _, ticket := range all {
		require.False(t, g.Stale(ticket))
	}
	done(g, 100*ms, Refused, all[:p.EnterRefusals]...)
	require.True(t, g.State().On)
	for _, ticket := range all[p.EnterRefusals:] {
		assert.True(t, g.Stale(ticket))
	}
	fresh := &Ticket{Priority: true}
	g.Join(100*ms, fresh)
	order, _ := drain(t, g, 100*ms)
	require.Equal(t, []*Ticket{fresh}, order)
	assert.False(t, g.Stale(fresh))
}

// Slow start doubles the rate: what was granted at half of it is as good as ever.
func TestPermissionsFromBeforeADoublingAreNotStale(t *testing.T) {
	g := New(Defaults(time.Second, 20*time.Second))
	all := grant(t, g, 0, 50) // nothing was served yet: the limit is unknown
	done(g, 50*ms, Refused, all...)
	require.True(t, g.State().SlowStart || g.State().Shut)
	now := 50 * ms
	one := &Ticket{}
	g.Join(now, one)
	order, at := drain(t, g, now)
	require.Equal(t, []*Ticket{one}, order)
	now = back(t, g, at[0], 2)
	for range 3 {
		before := &Ticket{}
		g.Join(now, before)
		order, at = drain(t, g, now)
		require.Equal(t, []*Ticket{before}, order)
		rate := g.State().Rate
		now = back(t, g, at[0], 4)
		require.Greater(t, g.State().Rate, rate)
		assert.False(t, g.Stale(before))
		g.Leave(now, before)
	}
}

// Stale permissions were worth nothing, so giving them back is worth nothing either: they are paced like all others from now on.
func TestStalePermissionsThatComeBackArePaced(t *testing.T) {
	p := Defaults(time.Second, 20*time.Second)
	g, now := New(p), time.Duration(0)
	for range 10 {
		all := grant(t, g, now, 10)
		now += 100 * ms
		done(g, now, Served, all...)
	}
	all := grant(t, g, now, 100+p.EnterRefusals)
	done(g, now+50*ms, Refused, all[:p.EnterRefusals]...)
	now += 50 * ms
	rate := g.State().Rate
	require.InDelta(t, 100, rate, 20)
	all = all[p.EnterRefusals:]
	var at []time.Duration
	for _, ticket := range all { // one after the other, as slots become free
		require.True(t, g.Stale(ticket))
		g.Rejoin(now, ticket)
		for {
			got, again := g.Next(now)
			if got != nil {
				at = append(at, now)
				require.Same(t, ticket, got)
				break
			}
			now += again
		}
	}
	assert.InDelta(t, 100/rate, (at[len(at)-1] - at[0]).Seconds(), 0.2)
}

// Ahead is what is before a ticket, not what is behind it.
func TestAheadCountsWhatGoesBefore(t *testing.T) {
	g, now := paced(t)
	rate := g.State().Rate
	all := map[string]*Ticket{}
	join := func(name string, ticket *Ticket) {
		all[name] = ticket
		g.Join(now, ticket)
	}
	for i := range 10 {
		join(fmt.Sprint("first ", i), &Ticket{})
	}
	join("retry", &Ticket{Retry: true})
	join("priority", &Ticket{Priority: true})
	join("held", &Ticket{Hold: time.Hour})
	want := map[string]float64{"first 0": 3, "first 4": 7, "first 9": 12, "retry": 2, "priority": 1, "held": 0}
	for name, n := range want { // its own permission is one of them
		assert.InDelta(t, n/rate, g.Ahead(all[name]).Seconds(), 1e-6, name)
	}
	off := New(Defaults(time.Second, 20*time.Second))
	ticket := &Ticket{}
	off.Join(0, ticket)
	assert.Zero(t, off.Ahead(ticket))
}

// A call that has been at the head of the queue already is still there when its permission was stale.
func TestAheadOfARejoinedTicketIsNothingButItself(t *testing.T) {
	g, now := paced(t)
	rate := g.State().Rate
	head := &Ticket{}
	g.Join(now, head)
	order, at := drain(t, g, now)
	require.Equal(t, []*Ticket{head}, order)
	now = at[0]
	for range 500 {
		g.Join(now, &Ticket{})
	}
	g.Rejoin(now, head)
	assert.InDelta(t, 1/rate, g.Ahead(head).Seconds(), 1e-6)
}

// A clock that is read outside a lock may be a little late: it counts as the latest time given.
func TestEarlierTimesCountAsTheLatest(t *testing.T) {
	g, now := paced(t)
	ticket := &Ticket{Hold: time.Second}
	g.Join(now-time.Hour, ticket)
	got, again := g.Next(now)
	assert.Nil(t, got)
	assert.Equal(t, time.Second, again)
	got, again = g.Next(now - time.Minute)
	assert.Nil(t, got)
	assert.Equal(t, time.Second, again)
	order, at := drain(t, g, now)
	assert.Len(t, order, 1)
	assert.Equal(t, now+time.Second, at[0])
	g.Done(0, ticket, Served)
	assert.Zero(t, g.inHand())
}

// A gate that has learnt a limit and is not used any more would otherwise be kept for ever: a job that goes from prefix to prefix has many.
func TestGateThatIsOnIsForgottenWhenNobodyHasUsedItForLong(t *testing.T) {
	g, now := paced(t)
	require.True(t, g.State().On)
	assert.False(t, g.Idle(now))
	assert.False(t, g.Idle(now+time.Minute))
	assert.True(t, g.Idle(now+2*time.Hour))
	g.Join(now, &Ticket{})
	assert.False(t, g.Idle(now+2*time.Hour))
}
