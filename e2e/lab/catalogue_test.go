package lab

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// short cuts a scenario so that all of them run in a second or two.
func short(s Scenario) Scenario {
	w := &s.Workload
	if w.Duration > 0 {
		w.Duration = min(w.Duration, max(5*time.Second, 200*time.Second/time.Duration(max(w.Threads, 1)*max(w.Clients, 1))))
	}
	w.Bursts = min(w.Bursts, 2)
	w.Latecomer = min(w.Latecomer, time.Second)
	return s
}

func TestEveryScenarioRunsAndHasANameOfItsOwn(t *testing.T) {
	names := map[string]bool{}
	for _, s := range append(Catalogue(), HeldOut()...) {
		assert.False(t, names[s.Name], s.Name)
		names[s.Name] = true
		r := Simulate(short(s), Standard, 3, 1)
		assert.Positive(t, r.Calls-r.Failed, s.Name)
		assert.GreaterOrEqual(t, r.Attempts, r.Calls, s.Name)
		answered := 0
		for _, sec := range r.Seconds {
			answered += sec.OK + sec.Throttled
		}
		assert.LessOrEqual(t, answered, r.Attempts, s.Name)
		assert.Len(t, r.Durations, r.Calls-len(s.Workload.Probes), s.Name)
	}
}

func TestUndisturbedRefusesNothing(t *testing.T) {
	for _, s := range []Scenario{WallRun(48, 5*time.Second), SlowCalls(), RandomRun(0.1), HotPrefix(10)} {
		r := Simulate(short(s).Undisturbed(), Standard, 3, 1)
		assert.Zero(t, r.Throttled, s.Name)
		want := s.Latency.Mean
		if want == 0 {
			want = defaultLatency
		}
		assert.InDelta(t, want.Seconds(), r.MeanDuration().Seconds(), 0.02*want.Seconds())
	}
}

func TestTheFiguresOfAResult(t *testing.T) {
	r := Result{
		Calls: 1000, Failed: 3, Attempts: 1250, Throttled: 250, Span: 4 * time.Second,
		PerClient: []int{300, 100},
		Bursts:    []time.Duration{2 * time.Second, 4 * time.Second},
		Seconds: []Second{
			{OK: 100, PerClient: []int{100, 0}}, {OK: 50, Throttled: 50, PerClient: []int{25, 25}},
			{OK: 90, Throttled: 10, PerClient: []int{60, 30}}, {OK: 100, PerClient: []int{50, 50}}, {OK: 7, PerClient: []int{7, 0}},
		},
	}
	for i := range 100 {
		r.Durations = append(r.Durations, time.Duration(i+1)*time.Millisecond)
	}
	assert.InDelta(t, 85, r.Goodput(), 1e-9)
	assert.InDelta(t, 0.2, r.RefusedShare(), 1e-9)
	assert.InDelta(t, 30, r.FailedPer10k(), 1e-9)
	assert.InDelta(t, 1250.0/997, r.AttemptsPerSuccess(), 1e-9)
	assert.InDelta(t, 75, r.Between(500*time.Millisecond, 1500*time.Millisecond), 1e-9)
	assert.InDelta(t, 60.0/200, r.RefusedShareBetween(time.Second, 3*time.Second), 1e-9)
	assert.Equal(t, 50*time.Millisecond, r.Percentile(50))
	assert.Equal(t, 99*time.Millisecond, r.Percentile(99))
	assert.Equal(t, 100*time.Millisecond, r.Slowest())
	assert.Equal(t, time.Millisecond, r.Percentile(0))
	assert.InDelta(t, 0.8, r.Jain(), 1e-9) // 400^2 / (2 * 100000)
	assert.InDelta(t, 1, r.JainBetween(3*time.Second, 4*time.Second), 1e-9)
	assert.Equal(t, 3*time.Second, r.MeanBurst())
	assert.Equal(t, 4*time.Second, r.WorstBurst())
	assert.Equal(t, time.Second, r.Reaches(time.Second, 90))
	assert.Equal(t, time.Duration(0), r.Reaches(0, 100))
	assert.Equal(t, Never, r.Reaches(0, 101))
	assert.Equal(t, 2*time.Second, r.Calms(time.Second, 0.1))
	assert.Zero(t, Result{}.Slowest())
	assert.Zero(t, Result{}.Goodput())
}
