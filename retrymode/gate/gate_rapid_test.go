package gate

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// machine drives a gate at random and keeps books of its own.
type machine struct {
	g   *Gate
	p   Params
	now time.Duration

	kept   map[*Ticket]*entry // joined and not ended
	flying []*Ticket
	old    []*Ticket // ended
	clock  int

	// Grants since the law last changed its mind, for the bound on their number.
	version  int
	since    time.Duration
	granted  float64
	returned float64 // unused permissions, which may be granted again
	maxRate  float64
}

type entry struct {
	joined time.Duration
	order  int // of joining
	flying bool
}

func newMachine() *machine {
	p := Defaults(time.Second, 20*time.Second)
	return &machine{g: New(p), p: p, kept: map[*Ticket]*entry{}}
}

// pump takes all grants and checks each.
func (m *machine) pump(t *rapid.T) {
	for {
		ticket, again := m.g.Next(m.now)
		if ticket == nil {
			m.checkAgain(t, again)
			return
		}
		m.checkGrant(t, ticket)
	}
}

func (m *machine) checkGrant(t *rapid.T, ticket *Ticket) {
	e := m.kept[ticket]
	require.NotNil(t, e, "granted to somebody who is not there")
	require.False(t, e.flying, "granted twice")
	require.GreaterOrEqual(t, m.now, e.joined+ticket.NotBefore, "before the store wanted it")
	for other, o := range m.kept {
		if o.flying || other == ticket || other.Hold > 0 || other.NotBefore > 0 {
			continue // how long a hold lasts is the law's business
		}
		// Priority always goes first; a retry goes before a first attempt, unless the limit is being looked for.
		require.True(t, ticket.Priority || !other.Priority, "overtook priority")
		if s := m.g.State(); ticket.Priority == other.Priority && s.On && !s.SlowStart && !s.Shut {
			require.True(t, ticket.Retry || !other.Retry, "overtook a retry")
		}
		if laneOf(other) == laneOf(ticket) && ticket.Hold == 0 && ticket.NotBefore == 0 {
			require.Less(t, e.order, o.order, "overtook an older one")
		}
	}
	e.flying = true
	m.flying = append(m.flying, ticket)
	m.granted++
}

// checkAgain: something will happen whenever somebody is there, and asking at that moment is not in vain.
func (m *machine) checkAgain(t *rapid.T, again time.Duration) {
	s := m.g.State()
	if s.Waiting+s.Held == 0 {
		require.Zero(t, again)
		return
	}
	require.Positive(t, again)
	require.True(t, s.On || s.Waiting == 0, "a gate that is off delays nobody")
}

func (m *machine) check(t *rapid.T) {
	s := m.g.State()
	require.Equal(t, len(m.flying), s.InFlight)
	require.Equal(t, len(m.kept), s.InFlight+s.Waiting+s.Held, "somebody was lost, or ended and is still there")
	if !s.On {
		require.Zero(t, s.Rate)
		m.since = -1
		return
	}
	require.Positive(t, s.Rate)
	require.False(t, math.IsInf(s.Rate, 0) || math.IsNaN(s.Rate), "rate %g", s.Rate)
	require.Less(t, s.Rate, 1e9)

	// No more grants than the rate allows, plus what may be saved up, plus what a change of mind may add at once.
	if m.since < 0 || m.version != m.g.version {
		m.since, m.version, m.granted, m.returned, m.maxRate = m.now, m.g.version, 0, 0, 0
	}
	m.maxRate = max(m.maxRate, s.Rate)
	burst := max(1, 0.25*m.maxRate)
	require.LessOrEqual(t, m.granted, m.maxRate*(m.now-m.since).Seconds()+burst+m.returned+1e-6)
}

func (m *machine) join(t *rapid.T) {
	hold := rapid.SampledFrom([]time.Duration{0, 0, 0, ms, 300 * ms, 5 * time.Second})
	ticket := &Ticket{
		Retry: rapid.Bool().Draw(t, "retry"), Priority: rapid.Bool().Draw(t, "priority"),
		Hold: hold.Draw(t, "hold"), NotBefore: hold.Draw(t, "not before"),
	}
	m.clock++
	m.kept[ticket] = &entry{joined: m.now, order: m.clock}
	m.g.Join(m.now, ticket)
}

// any picks a ticket that is there, in an order that repeats.
func (m *machine) any(t *rapid.T) *Ticket {
	if len(m.kept) == 0 {
		t.Skip("nobody there")
	}
	all := make([]*Ticket, 0, len(m.kept))
	for ticket := range m.kept {
		all = append(all, ticket)
	}
	slices.SortFunc(all, func(a, b *Ticket) int { return m.kept[a].order - m.kept[b].order })
	return all[rapid.IntRange(0, len(all)-1).Draw(t, "who")]
}

func (m *machine) inFlight(t *rapid.T) *Ticket {
	if len(m.flying) == 0 {
		t.Skip("nothing in flight")
	}
	return m.flying[rapid.IntRange(0, len(m.flying)-1).Draw(t, "which")]
}

func (m *machine) end(ticket *Ticket) {
	m.flying = slices.DeleteFunc(m.flying, func(o *Ticket) bool { return o == ticket })
	delete(m.kept, ticket)
	m.old = append(m.old, ticket)
}

func (m *machine) actions() map[string]func(*rapid.T) {
	after := func(do func(t *rapid.T)) func(t *rapid.T) {
		return func(t *rapid.T) {
			do(t)
			m.pump(t)
			m.check(t)
		}
	}
	outcome := rapid.SampledFrom([]Outcome{Served, Served, Served, Refused, Refused, Nothing})
	pass := func(most time.Duration) func(*rapid.T) {
		return func(t *rapid.T) { m.now += time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, "passes")) }
	}
	return map[string]func(*rapid.T){
		"join": after(func(t *rapid.T) {
			for range rapid.IntRange(1, 20).Draw(t, "n") {
				m.join(t)
			}
		}),
		"leave": after(func(t *rapid.T) {
			ticket := m.any(t)
			if m.kept[ticket].flying {
				m.returned++
			}
			m.g.Leave(m.now, ticket)
			m.end(ticket)
		}),
		"done": after(func(t *rapid.T) {
			ticket := m.inFlight(t)
			m.g.Done(m.now, ticket, outcome.Draw(t, "outcome"))
			m.end(ticket)
		}),
		"all done": after(func(t *rapid.T) { // one answer to all in flight, or one each
			same := rapid.Bool().Draw(t, "the same")
			o := outcome.Draw(t, "outcome")
			for _, ticket := range slices.Clone(m.flying) {
				if !same {
					o = outcome.Draw(t, "outcome")
				}
				m.g.Done(m.now, ticket, o)
				m.end(ticket)
			}
		}),
		"rejoin": after(func(t *rapid.T) {
			ticket := m.inFlight(t)
			m.g.Rejoin(m.now, ticket)
			m.returned++
			m.flying = slices.DeleteFunc(m.flying, func(o *Ticket) bool { return o == ticket })
			m.kept[ticket].flying = false
		}),
		"again": after(func(t *rapid.T) { // what has ended stays ended
			if len(m.old) == 0 {
				t.Skip("nothing has ended")
			}
			ticket := m.old[rapid.IntRange(0, len(m.old)-1).Draw(t, "which")]
			m.g.Done(m.now, ticket, Refused)
			m.g.Rejoin(m.now, ticket)
			m.g.Leave(m.now, ticket)
		}),
		"a moment":  after(pass(10 * ms)),
		"a while":   after(pass(time.Second)),
		"a pause":   after(pass(10 * time.Minute)),
		"on time":   after(m.onTime),
		"on time 2": after(m.onTime),
	}
}

// onTime asks again at exactly the time that the gate names, until somebody is granted or comes out of a hold.
func (m *machine) onTime(t *rapid.T) {
	before := m.g.State()
	if before.Waiting+before.Held == 0 {
		t.Skip("nobody waits")
	}
	for range 10 {
		ticket, again := m.g.Next(m.now)
		if ticket != nil {
			m.checkGrant(t, ticket)
			return
		}
		if m.g.State().Held < before.Held {
			return
		}
		m.checkAgain(t, again)
		m.now += again
	}
	t.Fatalf("no progress by asking again: %+v", m.g.State())
}

func TestGateKeepsItsBooksWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine()
		m.since = -1
		t.Repeat(m.actions())
		// Everybody who is still there is served in the end.
		for guard := 0; len(m.kept) > 0; guard++ {
			require.Less(t, guard, 100_000)
			m.pump(t)
			for _, ticket := range slices.Clone(m.flying) {
				m.g.Done(m.now, ticket, Served)
				m.end(ticket)
			}
			m.pump(t)
			if len(m.flying) == 0 {
				if _, again := m.g.Next(m.now); again > 0 {
					m.now += again
				}
			}
		}
		require.Zero(t, m.g.inHand())
	})
}

// Whatever the store, the calls and the outage were: once the store answers everything, nobody waits for more than a small multiple of MaxWait, also
// not a crowd that comes when the rate is what a few callers needed.
func TestNobodyIsForgottenInTheQueue(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		callers := rapid.IntRange(1, 60).Draw(rt, "callers")
		latency := time.Duration(rapid.IntRange(10, 2000).Draw(rt, "latency")) * ms
		limit := rapid.IntRange(1, 100).Draw(rt, "limit")
		outage := time.Duration(rapid.IntRange(0, 30).Draw(rt, "outage")) * time.Second
		late := rapid.IntRange(0, 200).Draw(rt, "latecomers")
		const start = 5 * time.Second
		s := wall(latency, func(now time.Duration) int {
			switch {
			case now < start:
				return limit
			case now < start+outage:
				return 0
			}
			return 1_000_000
		})
		w := newWorld(t, s)
		w.retries = 1000
		for range callers {
			w.caller(time.Duration(w.random.Int64N(int64(100*ms))), start+outage, -1, 0)
		}
		for range late {
			w.caller(start+outage, 0, 1, 0)
		}
		w.run(start + outage + 10*time.Minute)
		require.Zero(rt, w.g.inHand())
		require.LessOrEqual(rt, w.longestWait(start+outage, w.now), 5*w.p.MaxWait)
	})
}
