package gate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

// grant takes n permissions from a gate that is off.
func grant(t *testing.T, g *Gate, now time.Duration, n int) []*Ticket {
	t.Helper()
	all := make([]*Ticket, n)
	for i := range all {
		all[i] = &Ticket{}
		g.Join(now, all[i])
		got, _ := g.Next(now)
		require.Same(t, all[i], got, "nothing is delayed while the gate is off")
	}
	return all
}

func done(g *Gate, now time.Duration, o Outcome, ts ...*Ticket) {
	for _, t := range ts {
		g.Done(now, t, o)
	}
}

func TestNoRefusalsNoDelay(t *testing.T) {
	w := newWorld(t, healthy(100*ms))
	w.crowd(256, 0, 10*time.Second)
	w.run(time.Minute)
	assert.Zero(t, w.longestWait(0, time.Minute))
	assert.False(t, w.g.State().On)
	assert.Len(t, w.calls, 256*100, "each caller makes ten calls a second for ten seconds")
}

// One 503 in every two seconds is at 20 calls a second 2.5 % of them, and no evidence of overload.
func TestSingleRefusalsNeverTurnTheGateOn(t *testing.T) {
	for _, perSecond := range []int{20, 80} {
		t.Run(fmt.Sprint(perSecond), func(t *testing.T) {
			n := 0
			w := newWorld(t, func(time.Duration) (Outcome, time.Duration) {
				if n++; n%(2*perSecond) == 0 {
					return Refused, 50 * ms
				}
				return Served, 50 * ms
			})
			w.look = func() { require.False(t, w.g.State().On, "at %s", w.now) }
			for i := range 2 {
				w.caller(time.Duration(i)*ms, 0, -1, 2*time.Second/time.Duration(perSecond)-50*ms)
			}
			w.run(5 * time.Minute)
			assert.Zero(t, w.longestWait(0, w.now))
			assert.Zero(t, w.failed)
		})
	}
}

func TestVeryFirstAnswerMayBeARefusal(t *testing.T) {
	w := newWorld(t, between(0, ms, healthy(100*ms)))
	w.caller(0, 0, 1, 0)
	for range 31 {
		w.caller(ms, 0, 30, 0)
	}
	w.look = func() { require.False(t, w.g.State().On) }
	w.run(time.Minute)
	assert.LessOrEqual(t, w.slowestCall(), 200*ms+w.p.FirstHold)
}

func TestEnoughRefusalsAboveTheToleranceTurnTheGateOn(t *testing.T) {
	p := Defaults(time.Second, 20*time.Second)
	few := int(float64(p.EnterRefusals)/p.Tolerance) + 1 // as many answers make that many refusals no more than is tolerated
	for _, tt := range []struct {
		name            string
		served, refused int
		on              bool
	}{
		{"one less", few / 2, p.EnterRefusals - 1, false},
		{"one less, and nothing else", 0, p.EnterRefusals - 1, false},
		{"enough", few / 2, p.EnterRefusals, true},
		{"enough, and nothing else", 0, p.EnterRefusals, true},
		{"enough, but a small share", few, p.EnterRefusals, false},
		{"many, and no small share", few, p.EnterRefusals * 3, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := New(p)
			all := grant(t, g, 0, tt.served+tt.refused)
			done(g, p.Epoch/2, Served, all[:tt.served]...)
			done(g, p.Epoch/2, Refused, all[tt.served:]...)
			assert.Equal(t, tt.on, g.State().On)
		})
	}
}

// Refusals in the same burst are seen together also when the border between two epochs lies between them.
func TestEvidenceMayStraddleTheBorderOfAnEpoch(t *testing.T) {
	p := Defaults(time.Second, 20*time.Second)
	g := New(p)
	all := grant(t, g, 0, 100)
	done(g, p.Epoch-10*ms, Served, all[:50]...)
	done(g, p.Epoch-5*ms, Refused, all[50:52]...)
	done(g, p.Epoch, Served, all[60])
	done(g, p.Epoch+5*ms, Refused, all[52:55]...)
	assert.True(t, g.State().On)
}

// What is no answer of the store is no evidence either, however much of it there is.
func TestOutcomesThatTeachNothingChangeNothing(t *testing.T) {
	g := New(Defaults(time.Second, 20*time.Second))
	for i := range 100 {
		now := time.Duration(i) * 100 * ms
		done(g, now+50*ms, Nothing, grant(t, g, now, 20)...)
	}
	assert.Equal(t, State{}, g.State())
}

// 32 attempts are in flight when a store that had served 320 a second refuses all of them: one event. The rate goes to what was
// delivered, is not cut 32 times, and nobody notices much.
func TestRefusalsOfAttemptsThatWereInFlightTogetherCountOnce(t *testing.T) {
	w := newWorld(t, between(2*time.Second, 2100*ms, healthy(100*ms)))
	w.crowd(32, 0, 10*time.Second)
	lowest, versions := 1e9, map[int]bool{}
	w.look = func() {
		if s := w.g.State(); s.On {
			lowest = min(lowest, s.Rate)
			versions[w.g.version] = true
		}
	}
	w.run(20 * time.Second)
	require.NotEmpty(t, versions, "it was turned on")
	assert.Greater(t, lowest, 0.7*320)
	assert.Less(t, w.slowestCall(), 700*ms)
	assert.GreaterOrEqual(t, len(w.calls), 32*100*97/100)
}

// The cut goes to the number of answers of the last second that were no refusals, less a little. 96 callers would make 960 calls a second.
func TestCutGoesToWhatWasDelivered(t *testing.T) {
	for _, limit := range []int{100, 400} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			w := newWorld(t, wall(100*ms, constant(limit)))
			w.crowd(96, 0, 0)
			w.run(3 * time.Second)
			s := w.g.State()
			require.True(t, s.On)
			assert.InDelta(t, limit, s.Rate, 0.15*float64(limit))
			w.run(30 * time.Second)
			assert.GreaterOrEqual(t, w.goodput(5*time.Second, 30*time.Second), 0.97*float64(limit))
			assert.LessOrEqual(t, w.refusedShare(5*time.Second, 30*time.Second), 0.025)
			assert.Zero(t, w.failed)
		})
	}
}

// While nothing comes back but refusals, next to nothing is sent; the first answers bring everything back.
func TestStoreThatRefusesEverythingIsProbedAndComesBack(t *testing.T) {
	const down, up = 5 * time.Second, 15 * time.Second
	w := newWorld(t, between(down, up, healthy(100*ms)))
	w.crowd(32, 0, 40*time.Second)
	shut := false
	w.look = func() { shut = shut || w.now < up && w.g.State().Shut }
	w.run(time.Minute)
	assert.True(t, shut)
	_, last := w.served(up-3*time.Second, up)
	assert.LessOrEqual(t, last, 3*32, "at most one attempt per caller and second: 32 callers made 320 before")
	assert.GreaterOrEqual(t, w.goodput(up+5*time.Second, up+10*time.Second), 0.9*320)
	assert.Zero(t, w.failed)
	assert.False(t, w.g.State().Shut)
}

// An answer to a probe opens the gate, and a refusal after it does not shut it again at once.
func TestFirstAnswerReopensAShutGate(t *testing.T) {
	w := newWorld(t, between(5*time.Second, 8*time.Second, healthy(100*ms)))
	w.crowd(16, 0, 0)
	var shutAt, openAt time.Duration
	w.look = func() {
		switch s := w.g.State(); {
		case s.Shut && shutAt == 0:
			shutAt = w.now
		case !s.Shut && shutAt > 0 && openAt == 0:
			openAt = w.now
		}
	}
	w.run(30 * time.Second)
	require.Positive(t, shutAt)
	require.Positive(t, openAt)
	var first time.Duration
	for _, a := range w.attempts {
		if a.outcome == Served && a.at >= 8*time.Second {
			first = a.at + 100*ms
			break
		}
	}
	assert.Equal(t, first, openAt)
}

// The busy clock stands still while nothing is in hand: 160 calls in half a second are 320 a second, also an hour later.
func TestIdleTimeIsNotCounted(t *testing.T) {
	for _, gap := range []time.Duration{0, time.Minute, time.Hour} {
		t.Run(gap.String(), func(t *testing.T) {
			w := newWorld(t, between(gap+time.Second, gap+1100*ms, healthy(100*ms)))
			for range 32 {
				w.caller(0, 0, 5, 0)
				w.caller(gap+500*ms, 0, 5, 0)
				w.caller(gap+time.Second, 0, 1, 0) // all refused
			}
			var first float64
			w.look = func() {
				if s := w.g.State(); s.On && first == 0 {
					first = s.Rate
				}
			}
			w.run(gap + 1100*ms)
			// 320 answers in 1 s, or 1.1 s when the refused ones take part.
			assert.InDelta(t, 320, first, 0.15*320)
		})
	}
}

func TestGateTurnsItselfOffAfterSomeQuiet(t *testing.T) {
	limit := func(now time.Duration) int {
		if now < 10*time.Second {
			return 100
		}
		return 1_000_000
	}
	w := newWorld(t, wall(100*ms, limit))
	w.crowd(32, 0, 10*time.Second)
	w.crowd(4, 10*time.Second, 0)
	var off time.Duration
	w.look = func() {
		if w.now > 10*time.Second && off == 0 && !w.g.State().On {
			off = w.now
		}
	}
	w.run(2 * time.Minute)
	var last time.Duration // when the store refused for the last time
	for _, a := range w.attempts {
		if a.outcome == Refused {
			last = a.at
		}
	}
	assert.Greater(t, off-last, w.p.Quiet)
	assert.Less(t, off-last, w.p.Quiet+10*w.p.Epoch)
	assert.InDelta(t, 40, w.goodput(90*time.Second, 120*time.Second), 0.5, "four callers, ten calls a second each")
}

// Random refusals that have nothing to do with the rate: no cut cures them, so in the long run they are not cut for. Middle one of three runs.
func TestRandomRefusalsAreToleratedAsBackground(t *testing.T) {
	for _, share := range []float64{0.02, 0.05} {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			var goodputs []float64
			for seed := range uint64(3) {
				random := rand.New(rand.NewPCG(seed, 1))
				w := newWorld(t, func(time.Duration) (Outcome, time.Duration) {
					if random.Float64() < share {
						return Refused, 100 * ms
					}
					return Served, 100 * ms
				})
				w.crowd(32, 0, 0)
				w.run(2 * time.Minute)
				goodputs = append(goodputs, w.goodput(time.Minute, 2*time.Minute))
			}
			slices.Sort(goodputs)
			assert.GreaterOrEqual(t, goodputs[1], 0.85*320*(1-share))
		})
	}
}

// The limit falls to a quarter and rises again: refusals are under 10 % within three seconds of the fall, and the new limit is found.
func TestRateFollowsALimitThatFallsAndRises(t *testing.T) {
	limit := func(now time.Duration) int {
		if now >= 20*time.Second && now < 40*time.Second {
			return 100
		}
		return 400
	}
	w := newWorld(t, wall(100*ms, limit))
	w.crowd(96, 0, 0)
	w.run(time.Minute)
	assert.LessOrEqual(t, w.refusedShare(23*time.Second, 40*time.Second), 0.1)
	assert.GreaterOrEqual(t, w.goodput(23*time.Second, 40*time.Second), 90.0)
	assert.GreaterOrEqual(t, w.goodput(50*time.Second, time.Minute), 0.9*400)
	assert.Zero(t, w.failed)
}

// A flood of refusals is cut for at once and not at the end of the epoch: 256 callers send 2,560 attempts a second into a wall of 100.
func TestSurgeOfRefusalsDoesNotWaitForTheEndOfTheEpoch(t *testing.T) {
	limit := func(now time.Duration) int {
		if now >= 5*time.Second {
			return 100
		}
		return 1_000_000
	}
	w := newWorld(t, wall(100*ms, limit))
	w.crowd(256, 0, 0)
	w.run(7 * time.Second)
	_, sent := w.served(5500*ms, 6*time.Second)
	assert.Less(t, sent, 2560/2/2, "half of a half second's worth")
}

// The rate is never so low that those in hand would wait for longer than MaxWait, so no queue grows old.
func TestNobodyWaitsMuchLongerThanMaxWait(t *testing.T) {
	for _, callers := range []int{1, 10, 100, 400} {
		t.Run(fmt.Sprint(callers), func(t *testing.T) {
			w := newWorld(t, between(time.Second, 6*time.Second, healthy(100*ms)))
			w.crowd(callers, 0, 8*time.Second)
			w.run(time.Minute)
			assert.LessOrEqual(t, w.longestWait(0, time.Minute), w.p.MaxWait+time.Second)
			assert.Zero(t, w.g.inHand())
		})
	}
	// The rate has fallen to what one caller needs when a thousand more come. They raise it as they are answered.
	t.Run("a crowd that comes after the cut", func(t *testing.T) {
		w := newWorld(t, between(time.Second, 8*time.Second, healthy(100*ms)))
		w.crowd(1, 0, 10*time.Second)
		for range 1000 {
			w.caller(8*time.Second, 0, 1, 0)
		}
		w.run(2 * time.Minute)
		assert.LessOrEqual(t, w.longestWait(0, 2*time.Minute), 2*w.p.MaxWait)
		assert.Zero(t, w.g.inHand())
	})
}

// HoldFor is the random hold before a retry: bounds of FirstHold, Hold, 2 x Hold, 4 x Hold and so on, never more than MaxHold.
func TestHoldsGrowFromTheirBaseUpToTheirCap(t *testing.T) {
	p := Defaults(time.Second, 5*time.Second)
	want := []time.Duration{100 * ms, 500 * ms, time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}
	for i, bound := range want {
		assert.Equal(t, bound/2, p.HoldFor(i+1, 0.5))
		assert.Zero(t, p.HoldFor(i+1, 0))
		assert.Less(t, p.HoldFor(i+1, 0.999), bound)
	}
	for _, n := range []int{60, 63, 64, 65, 1000, 1_000_000} {
		assert.Equal(t, 2500*ms, p.HoldFor(n, 0.5), "attempt %d", n)
	}
}
