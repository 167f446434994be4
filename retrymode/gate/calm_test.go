package gate

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// twins are two gates that see the same attempts: one is told of each, the other only of what the calm shell cannot count itself.
type twins struct {
	now   time.Duration
	told  *Gate
	calm  *Gate
	shell shell

	here    []int // attempts that have not ended
	tickets map[int]*[2]Ticket
	flying  [2][]int // in order of their grants
	last    int
	counted int
}

// shell is a model of what a shell does with [Calm], on one goroutine.
type shell struct {
	open  bool
	calm  Calm
	tally Tally
}

func newTwins() *twins {
	p := Defaults(time.Second, 20*time.Second)
	return &twins{told: New(p), calm: New(p), tickets: map[int]*[2]Ticket{}}
}

// inTime reports whether the shell counts who was served at this moment for itself.
func (w *twins) inTime() bool { return w.shell.open && w.now < w.shell.calm.Until }

// both does something with either gate, under the lock that a shell would have.
func (w *twins) both(t *rapid.T, do func(g *Gate, i int)) {
	w.close()
	for i, g := range []*Gate{w.told, w.calm} {
		do(g, i)
		for {
			ticket, _ := g.Next(w.now)
			if ticket == nil {
				break
			}
			w.flying[i] = append(w.flying[i], ticket.Owner.(int))
		}
	}
	w.check(t)
	if w.shell.calm, w.shell.open = w.calm.Calm(); w.shell.open {
		w.shell.tally = Tally{InFlight: w.shell.calm.InFlight, Idle: w.now}
	}
}

func (w *twins) close() {
	if w.shell.open {
		w.calm.Absorb(w.shell.tally)
		w.shell.open = false
	}
}

// check: the gates know the same, but for the latency.
func (w *twins) check(t *rapid.T) {
	a, b := w.told, w.calm
	require.InDelta(t, a.law.passed, b.law.passed, 1e-6)
	b.law.passed, b.law.latency = a.law.passed, a.law.latency
	require.Equal(t, a.law, b.law)
	require.Equal(t, [...]any{a.now, a.busy, a.waiting, a.arrivals, len(a.held), a.inFlight, a.on, a.rate, a.tokens, a.version},
		[...]any{b.now, b.busy, b.waiting, b.arrivals, len(b.held), b.inFlight, b.on, b.rate, b.tokens, b.version})
	require.Equal(t, w.flying[0], w.flying[1], "in order of their grants")
	for _, id := range w.here {
		x, y := w.tickets[id][0], w.tickets[id][1]
		require.Equal(t, a.Stale(&x), b.Stale(&y))
		x.prev, x.next, y.prev, y.next = nil, nil, nil, nil
		require.Equal(t, x, y)
	}
}

func (w *twins) join(t *rapid.T, hold time.Duration) {
	w.last++
	id := w.last
	pair := &[2]Ticket{}
	for i := range pair {
		pair[i] = Ticket{Owner: id, Retry: id%3 == 0, Hold: hold}
	}
	w.tickets[id] = pair
	w.here = append(w.here, id)
	if hold > 0 || !w.shell.open {
		w.both(t, func(g *Gate, i int) { g.Join(w.now, &pair[i]) })
		return
	}
	w.counted++
	tally := &w.shell.tally
	if tally.InFlight == 0 {
		tally.Gaps += w.now - tally.Idle
	}
	tally.InFlight++
	pair[1].Pass(w.now, w.shell.calm.Version, w.shell.calm.Arrivals+int64(tally.InFlight+tally.Served-w.shell.calm.InFlight))
	w.told.Join(w.now, &pair[0])
	ticket, _ := w.told.Next(w.now)
	require.Same(t, &pair[0], ticket, "a calm gate lets everybody pass at once")
	w.flying[0], w.flying[1] = append(w.flying[0], id), append(w.flying[1], id)
}

func (w *twins) done(t *rapid.T, id int, o Outcome) {
	w.end(id)
	pair := w.tickets[id]
	if o != Served || !w.inTime() {
		w.both(t, func(g *Gate, i int) { g.Done(w.now, &pair[i], o) })
		return
	}
	w.counted++
	w.shell.tally.Served++
	w.shell.tally.InFlight--
	w.shell.tally.Idle = w.now
	w.told.Done(w.now, &pair[0], o)
}

func (w *twins) end(id int) {
	w.here = slices.DeleteFunc(w.here, func(o int) bool { return o == id })
	for i := range w.flying {
		w.flying[i] = slices.DeleteFunc(w.flying[i], func(o int) bool { return o == id })
	}
}

func (w *twins) inFlight(t *rapid.T) int {
	if len(w.flying[0]) == 0 {
		t.Skip("nothing in flight")
	}
	return rapid.SampledFrom(w.flying[0]).Draw(t, "which")
}

func (w *twins) actions() map[string]func(*rapid.T) {
	pass := func(most time.Duration) func(*rapid.T) {
		return func(t *rapid.T) { w.now += time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, "passes")) }
	}
	some := func(do func(t *rapid.T)) func(t *rapid.T) {
		return func(t *rapid.T) {
			step := rapid.Int64Range(0, int64(5*ms)).Draw(t, "step")
			for range rapid.IntRange(1, 30).Draw(t, "n") {
				do(t)
				w.now += time.Duration(step)
			}
		}
	}
	round := some(func(t *rapid.T) {
		w.join(t, 0)
		w.done(t, w.inFlight(t), Served)
	})
	return map[string]func(*rapid.T){
		"join":   some(func(t *rapid.T) { w.join(t, 0) }),
		"served": some(func(t *rapid.T) { w.done(t, w.inFlight(t), Served) }),
		"round":  round, "round 2": round, "round 3": round, // many and long: so the gate is calm
		"held":    func(t *rapid.T) { w.join(t, 50*ms) },
		"refused": func(t *rapid.T) { w.done(t, w.inFlight(t), Refused) },
		"nothing": func(t *rapid.T) { w.done(t, w.inFlight(t), Nothing) },
		"leave": func(t *rapid.T) {
			if len(w.here) == 0 {
				t.Skip("nobody there")
			}
			id := rapid.SampledFrom(w.here).Draw(t, "who")
			w.end(id)
			w.both(t, func(g *Gate, i int) { g.Leave(w.now, &w.tickets[id][i]) })
		},
		"rejoin": func(t *rapid.T) {
			id := w.inFlight(t)
			for i := range w.flying {
				w.flying[i] = slices.DeleteFunc(w.flying[i], func(o int) bool { return o == id })
			}
			w.both(t, func(g *Gate, i int) { g.Rejoin(w.now, &w.tickets[id][i]) })
		},
		"look":     func(t *rapid.T) { w.both(t, func(*Gate, int) {}) },
		"a moment": pass(10 * ms),
		"a while":  pass(time.Second),
		"a pause":  pass(time.Minute),
	}
}

// Whatever happens, a gate that has been told in sums knows what a gate knows that was told of each attempt: its decisions are the same.
func TestTalliesOfACalmGateAreWorthTheAttempts(t *testing.T) {
	counted, ons := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newTwins()
		t.Repeat(w.actions())
		w.both(t, func(*Gate, int) {})
		if counted += w.counted; w.told.version > 0 {
			ons++
		}
	})
	require.Positive(t, counted)
	if !testing.Short() { // a few runs may see none
		require.Positive(t, ons)
	}
}

func TestCalmGateIsOffHoldsNobodyAndHasSeenAnAnswerInTheSlot(t *testing.T) {
	p := Defaults(time.Second, 20*time.Second)
	g := New(p)
	calm := func() bool {
		_, ok := g.Calm()
		return ok
	}
	now := time.Duration(0)
	grant := func() *Ticket {
		ticket := &Ticket{}
		g.Join(now, ticket)
		got, _ := g.Next(now)
		require.Same(t, ticket, got)
		return ticket
	}
	require.False(t, calm(), "it has seen nothing")
	first, second, third, fourth := grant(), grant(), grant(), grant()
	now = 10 * ms
	g.Done(now, first, Served)
	c, ok := g.Calm()
	require.True(t, ok)
	require.Equal(t, Calm{Until: 100 * ms, InFlight: 3, Now: now, Arrivals: 4}, c)

	now = 100 * ms
	_, _ = g.Next(now)
	require.False(t, calm(), "nothing was learnt in this slot")
	g.Done(now, second, Served)
	require.True(t, calm())

	held := &Ticket{Hold: time.Millisecond}
	g.Join(now, held)
	require.False(t, calm(), "somebody is held back")
	g.Leave(now, held)
	require.True(t, calm())

	now = 1030 * ms
	g.Done(now, third, Served)
	c, ok = g.Calm()
	require.True(t, ok)
	require.Equal(t, 1100*ms, c.Until)

	now = 2010 * ms
	g.Done(now, grant(), Served)
	c, ok = g.Calm()
	require.True(t, ok)
	require.Equal(t, 2030*ms, c.Until, "an epoch ends")
	now = 2030 * ms
	last := grant()
	require.False(t, calm(), "an epoch is over")
	g.Done(now, last, Served)
	require.True(t, calm())

	for range p.EnterRefusals {
		refused := grant()
		g.Done(now, refused, Refused)
	}
	require.True(t, g.State().On)
	g.Done(now, fourth, Served)
	require.False(t, calm(), "it is on")
}
