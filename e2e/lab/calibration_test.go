package lab

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The figures of these tests were measured with real SDK clients: Java's (research: throttling, sections 3 to 6) and Go's (research:
// sdk-retry, part B). The ranges hold the measured medians and their spread; where the simulator is known to differ, a comment says so.

// measure is a figure of a run.
type measure func(Result) float64

func endSeconds(r Result) float64     { return r.End.Seconds() }
func slowestSeconds(r Result) float64 { return r.Slowest().Seconds() }
func probeSeconds(r Result) float64   { return r.Probes[0].Seconds() }
func refusedPer100(r Result) float64  { return 100 * r.RefusedShare() }
func failedCount(r Result) float64    { return float64(r.Failed) }
func burstSeconds(r Result) float64   { return r.MeanBurst().Seconds() }

func after15(r Result) float64 { return r.Between(AllAtOnceAt, time.Minute) }
func in40(r Result) float64    { return r.Between(0, 40*time.Second) }

// results are those of n seeds.
func results(s Scenario, p NewPolicy, retries, n int) []Result {
	var out []Result
	for seed := range n {
		out = append(out, Simulate(s, p, retries, uint64(seed+1)))
	}
	return out
}

// figures are those of the results, sorted.
func figures(rs []Result, m measure) []float64 {
	var out []float64
	for _, r := range rs {
		out = append(out, m(r))
	}
	slices.Sort(out)
	return out
}

func median(sorted []float64) float64 { return sorted[len(sorted)/2] }

// figure is a measured median: the simulated one must lie from low to high.
type figure struct {
	policy    string
	measure   measure
	low, high float64
}

var specimens = map[string]NewPolicy{"standard": Standard, "Go": SDKGo, "Java 2.51": JavaOld, "Java 2.52": JavaNew, "quota": StandardQuota}

func check(t *testing.T, s Scenario, retries, seeds int, figs []figure) {
	t.Helper()
	t.Run(s.Name, func(t *testing.T) {
		runs := map[string][]Result{}
		for i, f := range figs {
			if runs[f.policy] == nil {
				runs[f.policy] = results(s, specimens[f.policy], retries, seeds)
			}
			got := median(figures(runs[f.policy], f.measure))
			assert.True(t, f.low <= got && got <= f.high, "%d: %s: got %.4g, want %.4g to %.4g", i, f.policy, got, f.low, f.high)
		}
	})
}

func TestOneThrottleOnAFreshClientCostsWhatWasMeasured(t *testing.T) {
	check(t, FreshOne503(), 3, 31, []figure{
		{"standard", endSeconds, 3.1, 3.6},
		{"standard", slowestSeconds, 0.3, 1.0},
		{"Go", endSeconds, 10.0, 11.9},
		{"Java 2.52", endSeconds, 9.5, 11.5},
	})
	check(t, FirstEight(), 3, 15, []figure{
		{"standard", in40, 3020, 3180}, // Java 3,060, Go 3,150
		{"Go", in40, 2720, 2830},
		{"Java 2.51", in40, 2250, 2420},
		{"Java 2.52", in40, 2600, 2740},
	})
}

func TestTheOldJavaClientIsALotteryOnItsFirstThrottle(t *testing.T) {
	ends := figures(results(FreshOne503(), JavaOld, 3, 60), endSeconds)
	stalled := 0
	for _, e := range ends {
		assert.True(t, e > 5 && e < 13 || e > 60 && e < 68, "%v", e)
		if e > 60 {
			stalled++
		}
	}
	assert.Greater(t, stalled, 5, "runs that stall for a minute")
	assert.Less(t, stalled, 55, "runs that stall for a minute")
}

func TestThrottlingAllAtOnceCostsWhatWasMeasured(t *testing.T) {
	check(t, AllAtOnce(32), 3, 7, []figure{
		{"standard", slowestSeconds, 1.1, 1.22},
		{"Go", slowestSeconds, 8.1, 9.7},
		{"Java 2.51", slowestSeconds, 61, 66},
		{"Java 2.52", slowestSeconds, 5.3, 7.9}, // Java 6.5 to 7.9; the simulator is a second faster
		{"standard", after15, 14100, 14300},
		{"Go", after15, 11700, 12050},
		{"Java 2.51", after15, 1900, 5000}, // 72 to 87 % below standard; the simulator 68 %
		{"Java 2.52", after15, 11400, 12000},
	})
	check(t, AllAtOnce(8), 3, 7, []figure{
		{"standard", after15, 3500, 3600},
		{"Go", slowestSeconds, 6.4, 7.6},
		{"Go", after15, 3100, 3200},
	})
}

func TestACallAfterSixteenThrottlesWaitsAsLongAsWasMeasured(t *testing.T) {
	check(t, SixteenThenOne(10*time.Millisecond), 3, 41, []figure{
		{"standard", probeSeconds, 0.049, 0.056},
		{"Go", probeSeconds, 4.2, 5.9},
		{"Go", slowestSeconds, 5.2, 6.05},
	})
	check(t, SixteenThenOne(1100*time.Millisecond), 3, 41, []figure{
		{"Go", probeSeconds, 3.0, 4.7},
		{"Java 2.51", probeSeconds, 31, 34},
		{"Java 2.52", probeSeconds, 4.2, 6.5}, // 5.9; how long after the throttles is not said,
	})
	check(t, SecondClient(), 3, 5, []figure{
		{"Go", probeSeconds, 0.049, 0.056},
		{"Java 2.51", probeSeconds, 0.049, 0.056},
		{"Java 2.52", probeSeconds, 0.049, 0.056},
	})
	check(t, CallDeadline(), 3, 41, []figure{
		{"standard", failedCount, 0, 0},
		{"Go", failedCount, 3, 11},
		{"Java 2.51", failedCount, 10, 15},
		{"Java 2.52", failedCount, 10, 13},
	})
}

func TestTheWallCostsWhatWasMeasured(t *testing.T) {
	check(t, WallRun(96, time.Minute), 3, 3, []figure{
		{"standard", Result.Goodput, 388, 392},
		{"standard", refusedPer100, 17, 18.1},
		{"standard", Result.FailedPer10k, 2.5, 7},
		{"standard", slowestSeconds, 6.5, 7.4},
		{"Go", Result.Goodput, 104.5, 108},
		{"Go", refusedPer100, 1.9, 2.4},
		{"Go", slowestSeconds, 11.5, 23.6},
		{"Java 2.52", Result.Goodput, 104.5, 108.5},
		{"Java 2.52", refusedPer100, 1, 2.4}, // Java 1.0 to 1.1, Go 2.2
		{"Java 2.52", slowestSeconds, 6.5, 8.5},
		{"quota", Result.FailedPer10k, 45, 95}, // Go 46 to 69
	})
	check(t, WallRun(96, time.Minute), 10, 3, []figure{
		{"standard", Result.Goodput, 388, 392},
		{"standard", Result.FailedPer10k, 0, 0},
		{"standard", slowestSeconds, 11.5, 24},
	})
	check(t, WallRun(48, time.Minute), 3, 2, []figure{
		{"standard", Result.Goodput, 383, 388},
		{"standard", refusedPer100, 3.4, 4.2},
		{"Go", Result.Goodput, 103, 107},
		{"Go", refusedPer100, 1.35, 1.8},
	})
}

func TestTheOldJavaClientIsALotteryAtTheWall(t *testing.T) {
	goodput := figures(results(WallRun(96, time.Minute), JavaOld, 3, 12), Result.Goodput)
	assert.GreaterOrEqual(t, goodput[0], 0.6)
	assert.LessOrEqual(t, goodput[len(goodput)-1], 194.0)
	assert.Greater(t, goodput[len(goodput)-1], 3*goodput[0])
}

func TestBurstsAfterARestCostWhatWasMeasured(t *testing.T) {
	check(t, Bursts(time.Second), 3, 7, []figure{
		{"standard", burstSeconds, 3.15, 3.35},
		{"Go", burstSeconds, 5.5, 8.5}, // 6.7 (3.6 to 12.1)
		{"Java 2.52", burstSeconds, 5.5, 11.3},
		{"Java 2.52", func(r Result) float64 { return r.WorstBurst().Seconds() }, 10, 12.3},
	})
}

func TestADripTakesWhatWasMeasured(t *testing.T) {
	over := func(d time.Duration, base float64) measure {
		return func(r Result) float64 { return 100 * r.Between(0, d) / (base * d.Seconds()) }
	}
	const half = 30 * time.Minute
	standard := map[int]float64{20: 18, 80: 78, 320: 318} // calls/s of standard on these drips, within 1 %
	for _, c := range []struct {
		rate  int
		every time.Duration
		seeds int
		figs  []figure
	}{
		// Go 84, 46 and 27 %; Java 86, 57 and 34 %.
		{80, 3 * time.Second, 2, []figure{
			{"standard", over(half, 80), 97, 98},
			{"Go", over(45*time.Second, 78), 79, 86},
			{"Go", over(5*time.Minute, 78), 42, 58},
			{"Go", over(half, 78), 23, 38},
			{"Java 2.52", over(half, 78), 25, 38},
		}},
		{320, 5 * time.Second, 1, []figure{{"Java 2.52", over(half, standard[320]), 46, 58}}},
		{320, 3 * time.Second, 2, []figure{{"Java 2.52", over(half, standard[320]), 7, 13}}},
		{80, 5 * time.Second, 1, []figure{{"Go", over(half, standard[80]), 88, 96}}},
		{20, 3 * time.Second, 3, []figure{{"Go", over(half, standard[20]), 65, 90}}}, // Go 81, Java 100
		{80, 2 * time.Second, 3, []figure{{"Java 2.52", over(half, standard[80]), 1, 10}}},
	} {
		check(t, DripRun(c.rate, c.every), 3, c.seeds, c.figs)
	}
}

// The simulator and the limiter study are two programs; where they model the same, they agree.
func TestStandardAgreesWithTheLimiterStudy(t *testing.T) {
	for _, c := range []struct {
		s       Scenario
		retries int
		figs    []figure
	}{
		{Clients(4, 32, 400), 3, []figure{{"standard", refusedPer100, 22.5, 24}}},
		{Clients(16, 32, 400), 10, []figure{{"standard", refusedPer100, 42, 44}, {"standard", Result.Jain, 0.98, 1}}},
		{SmallWall(), 3, []figure{{"standard", refusedPer100, 60.5, 62.5}, {"standard", Result.FailedPer10k, 1500, 1710}}},
		{WallRun(256, time.Minute), 10, []figure{{"standard", refusedPer100, 32.5, 34}}},
		{Quota25(), 10, []figure{{"standard", Result.FailedPer10k, 250, 310}}},
		{Steps(), 3, []figure{{"standard", Result.FailedPer10k, 80, 105}, {"standard", refusedPer100, 22, 23.5}}},
		{FixedWindowRun(), 3, []figure{{"standard", refusedPer100, 11, 12.2}, {"standard", Result.Goodput, 399, 400.5}}},
		{TimeoutCollapse(), 10, []figure{{"standard", Result.Goodput, 19, 22}}},
		{TimeoutCollapse(), 3, []figure{{"standard", Result.FailedPer10k, 9500, 9550}}},
		{RandomRun(0.02), 3, []figure{{"standard", Result.Goodput, 280, 290}}},
		{RandomRun(0.05), 3, []figure{{"standard", Result.Goodput, 235, 245}}},
		{ScalingRun(true), 3, []figure{{"standard", Result.Goodput, 615, 650}}},
		{QueueRun(0), 3, []figure{{"standard", Result.Goodput, 398, 400.5}}},
	} {
		check(t, c.s, c.retries, 1, c.figs)
	}
}

func ExampleSimulate() {
	s := WallRun(96, time.Minute)
	r := Simulate(s, Standard, 10, 1)
	fmt.Println(r.Failed, "failed;", r.Goodput() > 380, r.RefusedShare() > 0.15)
	// Output: 0 failed; true true
}
