package lab

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// arrival is an attempt and what became of it.
type arrival struct {
	at      time.Duration
	attempt Attempt
	answer  Answer
}

// drive sends attempts at random moments, rate per second on average but in clumps, and with three keys and sizes.
func drive(s Store, rate float64, d time.Duration, seed uint64) []arrival {
	rng := rand.New(rand.NewPCG(seed, 99))
	var out []arrival
	for now := time.Duration(0); now < d; {
		a := Attempt{Key: rng.IntN(3), Bytes: 1 + rng.Int64N(1000), Number: 1}
		out = append(out, arrival{now, a, s.Arrive(now, a)})
		if gap := rng.ExpFloat64(); rng.IntN(4) > 0 {
			now += time.Duration(gap / rate * 4 / 3 * float64(time.Second))
		}
	}
	return out
}

func oks(as []arrival) []time.Duration {
	var out []time.Duration
	for _, a := range as {
		if a.answer.Kind == OK {
			out = append(out, a.at)
		}
	}
	return out
}

// most is the largest number of times in any window that is open at its start.
func most(times []time.Duration, window time.Duration) int {
	most, first := 0, 0
	for i, t := range times {
		for times[first] <= t-window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

func TestAWallLetsItsLimitThroughInEveryRollingSecondAndNoMore(t *testing.T) {
	for seed := range uint64(5) {
		as := drive(Wall{Limit: 100}.Store(seed), 300, 30*time.Second, seed)
		assert.Equal(t, 100, most(oks(as), time.Second))
		// It refuses only when the second is full.
		var through []time.Duration
		for _, a := range as {
			inside := 0
			for i := len(through) - 1; i >= 0 && through[i] > a.at-time.Second; i-- {
				inside++
			}
			assert.Equal(t, inside < 100, a.answer.Kind == OK)
			if a.answer.Kind == OK {
				through = append(through, a.at)
			}
		}
	}
}

func TestAWallChangesItsLimitAtItsSteps(t *testing.T) {
	w := Wall{Limit: 100, Steps: []Step{{10 * time.Second, 20}, {20 * time.Second, 60}}}
	s := w.Store(1)
	through := oks(drive(s, 400, 30*time.Second, 1))
	counts := make([]int, 30)
	for _, at := range through {
		counts[at/time.Second]++
	}
	for i, n := range counts {
		want := 100
		switch {
		case i == 10:
			continue // the second before still counts against the new limit
		case i >= 20:
			want = 60
		case i > 10:
			want = 20
		}
		assert.InDelta(t, want, n, 4, "second %d", i)
	}
	assert.Len(t, w.Steps, 2)
}

func TestABucketLetsItsRateThroughAndItsBurst(t *testing.T) {
	const rate, burst = 50.0, 20.0
	through := oks(drive(Bucket{Rate: rate, Burst: burst}.Store(1), 200, time.Minute, 1))
	for i := range through {
		for j := i; j < len(through); j += 37 {
			assert.LessOrEqual(t, float64(j-i+1), burst+rate*(through[j]-through[i]).Seconds()+1e-6)
		}
	}
	assert.InDelta(t, rate*60+burst, len(through), 3)
}

func TestAFixedWindowLetsItsLimitThroughInEachWindow(t *testing.T) {
	counts := map[time.Duration]int{}
	for _, at := range oks(drive(FixedWindow{Limit: 200, Window: 5 * time.Second}.Store(1), 100, time.Minute, 1)) {
		counts[at/(5*time.Second)]++
	}
	assert.Len(t, counts, 12)
	for w, n := range counts {
		assert.Equal(t, 200, n, "window %d", w)
	}
}

func TestAByteWallCountsBytes(t *testing.T) {
	const limit = 20_000
	var through []arrival
	var inside int64
	for _, a := range drive(ByteWall{Limit: limit}.Store(1), 200, 20*time.Second, 1) {
		for len(through) > 0 && through[0].at <= a.at-time.Second {
			inside -= through[0].attempt.Bytes
			through = through[1:]
		}
		assert.Equal(t, inside+a.attempt.Bytes <= limit, a.answer.Kind == OK)
		if a.answer.Kind == OK {
			inside += a.attempt.Bytes
			through = append(through, a)
		}
	}
}

func TestAQueueServesInTurn(t *testing.T) {
	q := Queue{Rate: 10, Latency: Latency{Mean: 50 * time.Millisecond, Spread: -1}}.Store(1)
	for i := 1; i <= 5; i++ {
		assert.Equal(t, Answer{Kind: OK, After: 50*time.Millisecond + time.Duration(i)*100*time.Millisecond}, q.Arrive(0, Attempt{}))
	}
	assert.Equal(t, 150*time.Millisecond, q.Arrive(time.Minute, Attempt{}).After)
}

func TestAQueueRefusesWhoWouldWaitTooLong(t *testing.T) {
	q := Queue{Rate: 10, RefuseAfter: 300 * time.Millisecond}.Store(1)
	var kinds []Kind
	for range 6 {
		kinds = append(kinds, q.Arrive(0, Attempt{}).Kind)
	}
	assert.Equal(t, []Kind{OK, OK, OK, OK, Throttle, Throttle}, kinds)
	assert.Equal(t, OK, q.Arrive(100*time.Millisecond, Attempt{}).Kind)
}

func TestAScalingStoreDoublesUnderLoad(t *testing.T) {
	last := func(s Scaling, rate float64) int {
		through := oks(drive(s.Store(1), rate, 20*time.Second, 1))
		return most(through[len(through)*3/4:], time.Second)
	}
	s := Scaling{Limit: 100, Max: 200, After: 10 * time.Second}
	assert.Equal(t, 200, last(s, 600))
	assert.Equal(t, 100, most(oks(drive(s.Store(1), 600, 9*time.Second, 1)), time.Second), "not yet")
	assert.Less(t, last(s, 50), 100)
	s.NeedsRefusals = true
	assert.Equal(t, 200, last(s, 600))
	s.Limit, s.Max = 200, 400
	s.NeedsRefusals = false
	assert.Greater(t, last(s, 190), 200)
}

func TestTheFaultyStoresRefuseWhatTheySay(t *testing.T) {
	refusals := func(s Store, rate float64) []time.Duration {
		var out []time.Duration
		for _, a := range drive(s, rate, 30*time.Second, 1) {
			if a.answer.Kind != OK {
				out = append(out, a.at)
			}
		}
		return out
	}
	for _, at := range refusals(Outage{From: 5 * time.Second, To: 6 * time.Second}.Store(1), 100) {
		assert.True(t, at >= 5*time.Second && at < 6*time.Second)
	}
	assert.InDelta(t, 100, len(refusals(Outage{From: 5 * time.Second, To: 6 * time.Second}.Store(1), 100)), 50)

	drips := refusals(Drip{Every: 3 * time.Second}.Store(1), 100)
	require.Len(t, drips, 9) // at 3, 6, ... 27 s
	for i, at := range drips {
		assert.InDelta(t, float64(3*(i+1)), at.Seconds(), 0.2)
	}

	first := refusals(FirstAfter{At: 2 * time.Second, N: 7}.Store(1), 100)
	require.Len(t, first, 7)
	assert.GreaterOrEqual(t, first[0], 2*time.Second)
	assert.Less(t, first[6], 3*time.Second)
	assert.Empty(t, refusals(FirstAfter{N: 7, OnlyClient: 2}.Store(1), 100))

	n := len(drive(Random{Share: 0.2}.Store(1), 1000, 30*time.Second, 1))
	assert.InDelta(t, 0.2, float64(len(refusals(Random{Share: 0.2}.Store(1), 1000)))/float64(n), 0.01)
}

func TestOncePerBurstRefusesOneAttemptOfEach(t *testing.T) {
	s := OncePerBurst{Within: time.Second}.Store(1)
	for burst := range 20 {
		start := time.Duration(burst) * time.Minute
		var hits []time.Duration
		for at := time.Duration(0); at < 4*time.Second; at += 10 * time.Millisecond {
			if s.Arrive(start+at, Attempt{}).Kind != OK {
				hits = append(hits, at)
			}
		}
		require.Len(t, hits, 1)
		assert.LessOrEqual(t, hits[0], 1010*time.Millisecond)
	}
}

func TestKeysHaveStoresOfTheirOwn(t *testing.T) {
	counts := map[int]map[Kind]int{0: {}, 1: {}, 2: {}}
	hot := FixedWindow{Limit: 10, Window: time.Hour}
	for _, a := range drive(ByKey{Calm(Latency{}), hot.Store}.Store(1), 100, 10*time.Second, 1) {
		counts[a.attempt.Key][a.answer.Kind]++
	}
	assert.Zero(t, counts[0][Throttle])
	assert.Equal(t, 10, counts[1][OK]+counts[2][OK])
}

func TestRefusalsAreAsTheStoreSays(t *testing.T) {
	w := Wall{
		Limit:   1,
		Refusal: Refusal{Closed: 0.5, RetryAfter: 2 * time.Second},
		Latency: Latency{Mean: time.Second, Spread: 0.1, Refused: 10 * time.Millisecond},
	}.Store(1)
	kinds := map[Kind]int{}
	for i := range 4000 {
		a := w.Arrive(time.Duration(i)*time.Millisecond, Attempt{})
		kinds[a.Kind]++
		mean := 10 * time.Millisecond
		if a.Kind == OK {
			mean = time.Second
		}
		assert.LessOrEqual(t, math.Abs(a.After.Seconds()/mean.Seconds()-1), 0.1)
		assert.Equal(t, a.Kind == Throttle, a.RetryAfter == 2*time.Second)
	}
	assert.Equal(t, 4, kinds[OK])
	assert.InDelta(t, 0.5, float64(kinds[Closed])/3996, 0.03)
}

func TestASlowStoreIsSlowForAWhile(t *testing.T) {
	s := Slow{From: time.Second, To: 2 * time.Second, Factor: 40, Over: Calm(still)}.Store(1)
	assert.Equal(t, 100*time.Millisecond, s.Arrive(999*time.Millisecond, Attempt{}).After)
	assert.Equal(t, 4*time.Second, s.Arrive(time.Second, Attempt{}).After)
	assert.Equal(t, 100*time.Millisecond, s.Arrive(2*time.Second, Attempt{}).After)
}

func TestTheHeldOutStoresKeepTheirLimits(t *testing.T) {
	tiers := oks(drive(Tiers{{40, time.Second}, {300, 10 * time.Second}}.Store(1), 100, time.Minute, 1))
	assert.Equal(t, 40, most(tiers, time.Second))
	assert.Equal(t, 300, most(tiers, 10*time.Second))

	crowd := Crowd{Slots: 8, Slowdown: 1, Latency: still}.Store(1)
	var ends []time.Duration
	for _, a := range drive(crowd, 200, 20*time.Second, 1) {
		ends = slices.DeleteFunc(ends, func(end time.Duration) bool { return end <= a.at })
		assert.Equal(t, len(ends) < 8, a.answer.Kind == OK)
		if a.answer.Kind == OK {
			ends = append(ends, a.at+a.answer.After)
			assert.True(t, a.answer.After >= 100*time.Millisecond && a.answer.After <= 200*time.Millisecond)
		}
	}

	wander := Wandering{Low: 50, High: 200, Every: time.Second, Stride: 0.3}.Store(1)
	through := oks(drive(wander, 400, time.Minute, 1))
	assert.LessOrEqual(t, most(through, time.Second), 200+20+1)
	assert.GreaterOrEqual(t, len(through), 50*60)

	tides := oks(drive(Tides{Low: 50, High: 150, Period: 20 * time.Second, Softness: 0.1}.Store(1), 400, time.Minute, 1))
	assert.LessOrEqual(t, most(tides, time.Second), 165)
	assert.InDelta(t, 100, float64(len(tides))/60, 15)
}

func TestTheStoresOfOneSeedAnswerAlike(t *testing.T) {
	for _, s := range append(Catalogue(), HeldOut()...) {
		assert.Equal(t, drive(s.Store(3), 200, 3*time.Second, 1), drive(s.Store(3), 200, 3*time.Second, 1), s.Name)
	}
}
