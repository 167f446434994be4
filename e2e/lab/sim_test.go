package lab

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var still = Latency{Spread: -1}

func run(w Workload, store func(uint64) Store, p NewPolicy, retries int) Result {
	return Simulate(Scenario{Workload: w, Store: store}, p, retries, 1)
}

func TestTheSameSeedGivesTheSameRun(t *testing.T) {
	for name, p := range specimens {
		for _, s := range []Scenario{WallRun(48, 20*time.Second), HotPrefix(10), Bursts(time.Second)} {
			s.Workload.Duration = min(s.Workload.Duration, 20*time.Second)
			assert.Equal(t, Simulate(s, p, 3, 7), Simulate(s, p, 3, 7), "%s, %s", name, s.Name)
		}
	}
	s := WallRun(48, 20*time.Second)
	assert.NotEqual(t, Simulate(s, Standard, 3, 7).Durations, Simulate(s, Standard, 3, 8).Durations)
}

func TestAClosedLoopMakesAsManyCallsAsItsThreadsCan(t *testing.T) {
	r := run(Workload{Threads: 5, Duration: 10 * time.Second}, Calm(still), Standard, 3)
	assert.Equal(t, 500, r.Calls)
	assert.Equal(t, 500, r.Attempts)
	assert.Equal(t, 100*time.Millisecond, r.Slowest())
	assert.InDelta(t, 50, r.Goodput(), 0.6)
}

func TestCallsAreCountedOverAllThreads(t *testing.T) {
	r := run(Workload{Threads: 32, Calls: 1000}, Calm(still), Standard, 3)
	assert.Equal(t, 1000, r.Calls)
	assert.InDelta(t, 3.2, r.End.Seconds(), 0.002)
	require.Len(t, r.Bursts, 1)
	assert.Equal(t, r.End, r.Bursts[0])
}

func TestBurstsArePausesApart(t *testing.T) {
	r := run(Workload{Clients: 2, Threads: 4, Calls: 40, Bursts: 3, Pause: 10 * time.Second}, Calm(still), Standard, 3)
	assert.Equal(t, 240, r.Calls)
	require.Len(t, r.Bursts, 6)
	for _, b := range r.Bursts {
		assert.InDelta(t, 1.0, b.Seconds(), 0.002)
	}
	assert.InDelta(t, 23.0, r.End.Seconds(), 0.01)
	assert.Zero(t, r.Between(2*time.Second, 10*time.Second))
}

func TestBurstsOfAllClientsStartTogether(t *testing.T) {
	w := Workload{Clients: 3, Threads: 1, Calls: 2, Bursts: 3, Every: 20 * time.Second}
	var starts []int
	store := storeFunc(func(now time.Duration, a Attempt) Answer {
		starts = append(starts, int(now/time.Second))
		return Answer{Kind: OK, After: 3*time.Second + time.Duration(a.Client)*2400*time.Millisecond}
	})
	r := run(w, store.make, Standard, 3)
	assert.Equal(t, 18, r.Calls)
	assert.Equal(t, []int{0, 0, 0, 3, 5, 7, 20, 20, 20, 23, 25, 27, 40, 40, 40, 43, 45, 47}, starts)
	w.Every = 12 * time.Second // client 2 takes 15.6 s and misses its turn at 12 s
	starts = nil
	store2 := storeFunc(func(now time.Duration, a Attempt) Answer {
		if a.Client == 2 {
			starts = append(starts, int(now/time.Second))
		}
		return Answer{Kind: OK, After: 3*time.Second + time.Duration(a.Client)*2400*time.Millisecond}
	})
	run(w, store2.make, Standard, 3)
	assert.Equal(t, []int{0, 7, 24, 31, 48, 55}, starts)
}

func TestDurationEndsTheBursts(t *testing.T) {
	r := run(Workload{Threads: 4, Calls: 40, Bursts: 3, Pause: 10 * time.Second, Duration: 5 * time.Second}, Calm(still), Standard, 3)
	assert.Equal(t, 40, r.Calls)
}

func TestAnOpenLoopDoesNotWaitForItsCalls(t *testing.T) {
	w := Workload{Rate: 50, Duration: 20 * time.Second}
	r := run(w, Calm(Latency{Mean: 3 * time.Second}), Standard, 3)
	assert.InDelta(t, 1000, r.Calls, 1)
	assert.InDelta(t, 23, r.End.Seconds(), 0.2)
}

func TestSharesSayHowManyCallsHaveAKey(t *testing.T) {
	r := run(Workload{Threads: 10, Duration: time.Minute, Shares: []float64{0.7, 0.2, 0.1}}, Calm(still), Standard, 3)
	require.Len(t, r.ByKey, 3)
	for i, want := range []float64{0.7, 0.2, 0.1} {
		assert.InDelta(t, want, float64(len(r.ByKey[i]))/float64(r.Calls), 0.02)
	}
}

func TestASlowAttemptIsLostAndRetriedWhileTheStoreWorksOn(t *testing.T) {
	arrivals := 0
	store := storeFunc(func(time.Duration, Attempt) Answer {
		arrivals++
		return Answer{Kind: OK, After: 5 * time.Second}
	})
	r := run(Workload{Threads: 1, Calls: 1, AttemptTimeout: 2 * time.Second}, store.make, Standard, 3)
	assert.Equal(t, 4, arrivals)
	assert.Equal(t, 1, r.Failed)
	assert.Equal(t, 4, r.Throttled)
	assert.InDelta(t, 8, r.End.Seconds(), 0.8) // and at most 0.1 + 0.2 + 0.4 s of backoff
}

func TestADeadlineEndsACallWhateverItDoes(t *testing.T) {
	refuse := storeFunc(func(time.Duration, Attempt) Answer { return Answer{Kind: Throttle, After: 100 * time.Millisecond} })
	hang := storeFunc(func(time.Duration, Attempt) Answer { return Answer{Kind: OK, After: time.Hour} })
	for name, store := range map[string]storeFunc{"in backoff": refuse, "in flight": hang} {
		r := run(Workload{Threads: 8, Calls: 8, CallTimeout: 3 * time.Second}, store.make, Standard, 1000)
		assert.Equal(t, 8, r.Failed, name)
		for _, d := range r.Durations {
			assert.Equal(t, 3*time.Second, d, name)
		}
	}
	for name, p := range specimens {
		r := run(Workload{Threads: 40, Duration: 20 * time.Second, CallTimeout: 3 * time.Second}, Wall{Limit: 20}.Store, watched(t, p), 1000)
		assert.LessOrEqual(t, r.Slowest(), 3*time.Second, name)
		assert.Positive(t, r.Failed, name)
	}
}

// Three layers of three attempts make 27 of one call.
func TestLayersOfRetriesMultiply(t *testing.T) {
	refuses := Outage{To: Never}.Store
	r := run(Workload{Threads: 1, Calls: 1, Tries: 9}, refuses, Standard, 2)
	assert.Equal(t, 27, r.Attempts)
	assert.Equal(t, 1, r.Calls)
	assert.Equal(t, 1, r.Failed)
	require.Len(t, r.Durations, 1)
	assert.InDelta(t, r.End.Seconds(), r.Durations[0].Seconds(), 0.01, "all tries count")
	assert.Equal(t, 1, run(Workload{Threads: 1, Calls: 1, Tries: 9}, Calm(still), Standard, 2).Attempts)
}

func TestThoseWhoWereToldTheSameTimeDoNotComeBackTogether(t *testing.T) {
	for name, p := range map[string]NewPolicy{"standard": Standard, "gate": Gate(GateDefaults(), PerClient)} {
		var again []time.Duration
		w := Workload{Threads: 50, Calls: 50}
		store := storeFunc(func(now time.Duration, a Attempt) Answer {
			if a.Number == 1 {
				return Answer{Kind: Throttle, After: 100 * time.Millisecond, RetryAfter: 3 * time.Second}
			}
			again = append(again, now)
			return Answer{Kind: OK, After: 100 * time.Millisecond}
		})
		run(w, store.make, p, 3)
		require.Len(t, again, 50, name)
		assert.GreaterOrEqual(t, again[0], 3*time.Second, name)
		assert.Greater(t, again[49]-again[0], 500*time.Millisecond, name)
	}
}

func TestALatecomerStartsLate(t *testing.T) {
	r := run(Workload{Clients: 3, Threads: 2, Duration: 10 * time.Second, Latecomer: 4 * time.Second}, Calm(still), Standard, 3)
	assert.Equal(t, []int{200, 200, 120}, r.PerClient)
	assert.Zero(t, r.ClientBetween(2, 0, 4*time.Second))
}

func TestProbesAreReportedApart(t *testing.T) {
	w := Workload{Threads: 1, Calls: 10, Probes: []time.Duration{5 * time.Second, 50 * time.Millisecond}}
	r := run(w, Calm(still), Standard, 3)
	assert.Equal(t, 12, r.Calls)
	assert.Len(t, r.Durations, 10)
	assert.Equal(t, []time.Duration{100 * time.Millisecond, 100 * time.Millisecond}, r.Probes)
	assert.Equal(t, 5100*time.Millisecond, r.End)
}

func TestPoliciesKeepToTheirContract(t *testing.T) {
	for name, p := range specimens {
		for _, s := range []Scenario{WallRun(96, 20*time.Second), Clients(3, 16, 60), ClosedWall(0.5), SlowDependency()} {
			s.Workload.Duration = 20 * time.Second
			w := watched(t, p)
			r := Simulate(s, w, 3, 1)
			assert.Equal(t, r.Calls, len(r.Durations), "%s, %s", name, s.Name)
		}
	}
}

func TestStandardBacksOffFullyJitteredUnderAnExponential(t *testing.T) {
	for _, c := range []struct {
		kind   Kind
		number int
		limit  time.Duration
	}{
		{Throttle, 1, time.Second}, {Throttle, 3, 4 * time.Second}, {Throttle, 6, 20 * time.Second}, {Throttle, 60, 20 * time.Second},
		{Closed, 1, 100 * time.Millisecond}, {Failure, 4, 800 * time.Millisecond}, {Lost, 9, 20 * time.Second},
	} {
		p := Standard(&sim{rng: rand.New(rand.NewPCG(1, 1))}, 100)
		var sum, largest time.Duration
		const n = 2000
		for range n {
			d, ok := p.Retry(&Call{Number: c.number}, c.kind, 0)
			require.True(t, ok)
			sum, largest = sum+d, max(largest, d)
		}
		assert.LessOrEqual(t, largest, c.limit)
		assert.InDelta(t, c.limit.Seconds()/2, (sum / n).Seconds(), 0.03*c.limit.Seconds())
	}
	p := Standard(&sim{rng: rand.New(rand.NewPCG(1, 1))}, 3)
	_, ok := p.Retry(&Call{Number: 3}, Throttle, 0)
	assert.True(t, ok)
	_, ok = p.Retry(&Call{Number: 4}, Throttle, 0)
	assert.False(t, ok)
}

// storeFunc is a store without memory.
type storeFunc func(time.Duration, Attempt) Answer

func (f storeFunc) Arrive(now time.Duration, a Attempt) Answer { return f(now, a) }

func (f storeFunc) make(uint64) Store { return f }

// watched checks that a policy grants every Acquire once and never after Abandon, and counts who waits.
func watched(t *testing.T, p NewPolicy) NewPolicy {
	return func(env Env, retries int) Policy {
		return &watchedPolicy{Policy: p(env, retries), t: t, waits: map[*Call]bool{}}
	}
}

type watchedPolicy struct {
	Policy
	t     *testing.T
	waits map[*Call]bool
}

func (w *watchedPolicy) Acquire(c *Call, grant func()) {
	assert.False(w.t, w.waits[c])
	w.waits[c] = true
	w.Policy.Acquire(c, func() {
		assert.True(w.t, w.waits[c], "granted twice, or after Abandon")
		delete(w.waits, c)
		grant()
	})
	assert.Equal(w.t, len(w.waits), w.Waiting())
}

func (w *watchedPolicy) Abandon(c *Call) {
	delete(w.waits, c)
	w.Policy.Abandon(c)
	assert.Equal(w.t, len(w.waits), w.Waiting())
}
