package retrymode

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/retrymode/gate"
)

var (
	answered = outcome{sent: true, served: true}
	refusal  = outcome{sent: true, class: Throttle}
)

// diary is what happened at a gate, to be told to another one that has no calm path.
type diary struct {
	mu     sync.Mutex
	events []entry
}

// entry is an attempt that came or ended, or with saw what the gate was like.
type entry struct {
	at      time.Duration
	id      int64
	came    bool
	outcome outcome
	saw     *gate.State
}

func (d *diary) note(e entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
}

// replay tells everything to a gate of its own, under the lock so to speak, and compares what was seen. It returns how often the two were compared with the gate on.
func (d *diary) replay(t *testing.T, p gate.Params) (on int) {
	t.Helper()
	g := gate.New(p)
	tickets := map[int64]*gate.Ticket{}
	for _, e := range d.events {
		switch {
		case e.saw != nil:
			require.Equal(t, g.State(), *e.saw, "at %s", e.at)
			if e.saw.On {
				on++
			}
			continue
		case e.came:
			tickets[e.id] = &gate.Ticket{}
			g.Join(e.at, tickets[e.id])
		case e.outcome == refusal:
			g.Done(e.at, tickets[e.id], gate.Refused)
		case e.outcome == answered:
			g.Done(e.at, tickets[e.id], gate.Served)
		case e.outcome.sent:
			g.Done(e.at, tickets[e.id], gate.Nothing)
		default:
			g.Leave(e.at, tickets[e.id])
		}
		for next, _ := g.Next(e.at); next != nil; next, _ = g.Next(e.at) {
			require.True(t, e.came, "nobody waits at a gate that is off, and no more come when it is on")
		}
	}
	return on
}

// traffic is callers that wait, work and rest in whole milliseconds, so that many of them do at the same moment, until the gate is on or the time is over. With the given
// probability, ten times as high after two seconds, an attempt is refused, at a moment of its own.
func traffic(t *testing.T, r *Retryer, seed uint64, callers int, rest time.Duration, refused float64) *diary {
	p := r.gates.gate(writes)
	defer p.users.Add(-1)
	d := &diary{}
	var on atomic.Bool
	var ids atomic.Int64
	look := func() {
		s := gateOf(r, writes)
		on.Store(s.On)
		d.note(entry{at: p.now(), saw: &s})
	}
	caller := func(moment time.Duration, random *rand.Rand) {
		for !on.Load() && p.now() < 4*time.Second {
			id := ids.Add(1)
			d.note(entry{at: p.now(), id: id, came: true})
			permit, err := r.limiter.Wait(t.Context(), attempt{scope: writes, first: true})
			if !assert.NoError(t, err) {
				return
			}
			assert.False(t, permit.Stale())
			assert.Zero(t, permit.Held())
			time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond)
			o, share := answered, refused
			if p.now() > 2*time.Second {
				share *= 10
			}
			switch u := random.Float64(); {
			case u < share:
				o = refusal
			case u < share+0.01:
				o = outcome{}
			case u < share+0.02:
				o = outcome{sent: true, class: Transient}
			}
			if o != answered {
				time.Sleep(moment)
			}
			d.note(entry{at: p.now(), id: id, outcome: o})
			permit.Done(o)
			if o != answered {
				look()
				time.Sleep(time.Millisecond - moment)
			}
			time.Sleep(time.Duration(random.Int64N(int64(rest/time.Millisecond)+1)) * time.Millisecond)
		}
	}
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { caller(time.Duration(i+1)*time.Microsecond, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	wg.Wait()
	look()
	return d
}

// Whatever many callers do at once, a gate turns on at the same refusal, at the same rate, as one that is told of each attempt under its lock: all answers
// and all idle gaps have been counted.
func TestCalmPathChangesNoDecision(t *testing.T) {
	on := 0
	for _, tt := range []struct {
		callers int
		rest    time.Duration
		refused float64
	}{{1, 0, 0.003}, {1, 150 * time.Millisecond, 0.01}, {2, 20 * time.Millisecond, 0.004}, {8, 0, 0.003}, {100, 40 * time.Millisecond, 0.002}, {100, 0, 0.0095}} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%d callers rest %s seed %d", tt.callers, tt.rest, seed), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					r := newRetryer(t, adaptive(0))
					d := traffic(t, r, seed, tt.callers, tt.rest, tt.refused)
					on += min(d.replay(t, r.params), 1)
					nothingLeft(t, r)
				})
			})
		}
	}
	assert.Greater(t, on, 12, "most of them turn the gate on")
}

// openings is how often the calm path of a gate was opened. To look closes it and opens it again.
func openings(r *Retryer, s scope) uint64 {
	p := r.gates.gates[s]
	p.lock()
	defer p.unlock()
	return p.calm.openings
}

func TestCalmTrafficTakesTheLockOncePerSlot(t *testing.T) {
	for _, callers := range []int{1, 50} {
		bubble(t, func(t *testing.T) {
			r := newRetryer(t, adaptive(0))
			d := traffic(t, r, 1, callers, 0, 0)
			s := openings(r, writes)
			looks := len(slices.DeleteFunc(d.events, func(e entry) bool { return e.saw == nil }))
			assert.Less(t, s, uint64(4*10*2+4*looks), "of %d events", len(d.events))
		})
	}
}

// An exchange of the word must fail when it was closed and opened since it was read.
func TestWordsOfTwoOpeningsDiffer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, adaptive(0))
		all := inFlightOn(t, r, 1)
		p := r.gates.gates[writes]
		openings(r, writes)
		before := p.calm.word.Load()
		openings(r, writes)
		after := p.calm.word.Load()
		assert.NotEqual(t, before, after)
		assert.Equal(t, inFlightOf(before), inFlightOf(after))
		assert.Equal(t, servedOf(before), servedOf(after))
		for _, p := range all {
			p.Done(answered)
		}
	})
}

// inFlightOn takes n permissions on the calm path, in front of an attempt that is in flight already. The caller ends them and that one, the first.
func inFlightOn(t *testing.T, r *Retryer, n int) []permit {
	t.Helper()
	wait := func() permit {
		p, err := r.limiter.Wait(t.Context(), attempt{scope: writes, first: true})
		require.NoError(t, err)
		return p
	}
	all := []permit{wait()}
	p := r.gates.gates[writes]
	other := wait()
	time.Sleep(10 * time.Millisecond)
	other.Done(answered)
	require.True(t, p.calm.isOpen())
	before := p.calm.openings
	for range n {
		all = append(all, wait())
	}
	require.True(t, p.calm.isOpen())
	require.Equal(t, before, p.calm.openings, "none of them took the lock")
	return all
}

// refuse turns the gate of writes on.
func refuse(t *testing.T, r *Retryer) {
	t.Helper()
	for range r.params.EnterRefusals {
		p, err := r.limiter.Wait(t.Context(), attempt{scope: writes, first: true})
		require.NoError(t, err)
		p.Done(refusal)
	}
	require.True(t, gateOf(r, writes).On)
}

func TestCalmPermissionIsStaleAfterACut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, adaptive(0))
		all := inFlightOn(t, r, 3)
		for _, p := range all {
			assert.False(t, p.Stale())
		}
		assert.Equal(t, 4, gateOf(r, writes).InFlight)
		refuse(t, r)
		for _, p := range all {
			assert.True(t, p.Stale())
		}
		for _, p := range all {
			p.Done(outcome{})
		}
		nothingLeft(t, r)
	})
}

// Whoever comes back with a calm permission has the place that it came in, whoever is first to come back.
func TestCalmPermissionsComeBackInTheOrderOfTheirArrival(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, adaptive(0))
		others := inFlightOn(t, r, 20)
		var all []permit
		for range 5 { // each in an opening of its own, with fewer and fewer of the others in flight
			openings(r, writes)
			before := r.gates.gates[writes].calm.openings
			p, err := r.limiter.Wait(t.Context(), attempt{scope: writes, first: true})
			require.NoError(t, err)
			require.Equal(t, before, r.gates.gates[writes].calm.openings, "it took no lock")
			all = append(all, p)
			for _, p := range others[:4] {
				p.Done(answered)
			}
			others = others[4:]
		}
		for _, p := range others {
			p.Done(answered)
		}
		refuse(t, r)
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(all)) {
			wg.Go(func() {
				assert.NoError(t, all[i].Again(t.Context()))
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				assert.False(t, all[i].Stale())
				time.Sleep(time.Millisecond)
				all[i].Done(answered)
			})
			synctest.Wait()
		}
		wg.Wait()
		assert.True(t, slices.IsSorted(order), "%v", order)
		nothingLeft(t, r)
	})
}

// A gap is known to the word a moment before it is counted, and a tally in between misses it: the next one puts the gate's clock ahead by it, and the gate gives nothing
// until the time has caught up. So it must be a short one.
func TestAttemptAfterALongGapTakesTheLock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, adaptive(0))
		for _, p := range inFlightOn(t, r, 0) {
			p.Done(answered)
		}
		c := &r.gates.gates[writes].calm
		for gap, locks := range map[time.Duration]uint64{20 * time.Millisecond: 0, time.Hour: 1} {
			before := c.openings
			time.Sleep(gap)
			p, err := r.limiter.Wait(t.Context(), attempt{scope: writes, first: true})
			require.NoError(t, err)
			assert.Equal(t, locks, c.openings-before, "after %s", gap)
			p.Done(answered)
		}
		nothingLeft(t, r)
	})
}

// A retry after a single 503 is held back although the gate is off and others pass.
func TestHoldIsKeptInFrontOfACalmGate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, adaptive(0))
		all := inFlightOn(t, r, 1)
		start := time.Now()
		p, err := r.limiter.Wait(t.Context(), attempt{scope: writes, hold: 80 * time.Millisecond})
		require.NoError(t, err)
		assert.InDelta(t, 80*time.Millisecond, time.Since(start), float64(time.Millisecond))
		assert.Equal(t, time.Since(start), p.Held())
		for _, p := range append(all, p) {
			p.Done(answered)
		}
		nothingLeft(t, r)
	})
}

// A refusal of an attempt that passed before a cut was that cut's reason. It counts for nothing, also when it passed without the lock.
func TestRefusalOfACalmPermissionFromBeforeTheCutIsOldNews(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, adaptive(0))
		all := inFlightOn(t, r, 40)
		refuse(t, r)
		rate := gateOf(r, writes).Rate
		for i, p := range all {
			if i%2 == 0 {
				p.Done(refusal)
			} else {
				p.Done(answered)
			}
		}
		assert.Equal(t, rate, gateOf(r, writes).Rate)
		assert.False(t, gateOf(r, writes).Shut)
		nothingLeft(t, r)
	})
}

// In real time, on all cores: callers that come, are answered, give up and look, in front of gates that open and close.
func TestCalmPathLosesNobodyUnderLoad(t *testing.T) {
	r := newRetryer(t, adaptive(0))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			var open []permit
			for n := range 3000 {
				p, err := r.limiter.Wait(t.Context(), attempt{scope: writes, first: true})
				if !assert.NoError(t, err) {
					return
				}
				assert.False(t, p.Stale())
				if open = append(open, p); len(open) < i%3 {
					continue
				}
				o := answered
				switch n % 1000 {
				case 7 * i:
					o = outcome{}
				case 11 * i:
					o = outcome{sent: true, class: Transient}
				case 13 * i:
					_ = r.Stats()
					_, err := r.limiter.Wait(ended, attempt{scope: writes})
					assert.ErrorIs(t, err, context.Canceled)
				}
				for _, p := range open {
					p.Done(o)
				}
				open = open[:0]
			}
			for _, p := range open {
				p.Done(answered)
			}
		})
	}
	wg.Wait()
	nothingLeft(t, r)
	p := r.gates.gates[writes]
	p.lock()
	defer p.unlock()
	assert.True(t, p.core.Idle(p.now()))
}
