package lab

import (
	"fmt"
	"slices"
	"time"
)

const goalSeeds = 10

// Goals returns the goals of adaptive mode, then those on the stores that nothing is tuned on, then the open problems.
func Goals() []Goal {
	return slices.Concat(wallGoals(), singleGoals(), loadGoals(), heldOutGoals(), openGoals())
}

func wallGoals() []Goal {
	wall := func(s Scenario, retries int, checks ...Check) Goal {
		return Goal{Name: fmt.Sprintf("%s, %d retries", s.Name, retries), Scenario: s, Retries: retries, Seeds: goalSeeds, Checks: checks}
	}
	minute, big := WallRun(96, time.Minute), WallRun(256, time.Minute)
	worst := good(400, 97)
	worst.What, worst.Worst = "goodput of the worst seed, %", true
	asStandard := Check{What: "failed, of standard's", Value: failed, Relative: toStandard, Max: 1, Decimals: 2}
	goals := []Goal{
		wall(minute, 10, good(400, 98.5), refusals(1.8), noFailures(), slowestCall(3.5)),
		wall(minute, 3, good(400, 98.5), refusals(1.8), asStandard, failures(5)),
		wall(WallRun(96, 5*time.Minute), 10, good(400, 99.5), refusals(0.8), noFailures()),
		wall(big, 10, good(400, 98.5), worst, refusals(4), noFailures(),
			Check{What: "p99, s", Value: func(r Result) float64 { return r.Percentile(99).Seconds() }, Max: 1, Decimals: 3}, slowestCall(5)),
		wall(big, 3, failures(20)),
		wall(ClosedWall(1), 10, good(400, 98.5), refusals(1.8), noFailures(), slowestCall(3.5)),
	}
	goals[3].Seeds = 20
	return goals
}

func singleGoals() []Goal {
	goals := []Goal{
		{Name: "fresh client, one 503", Scenario: FreshOne503(), Retries: 3, Seeds: goalSeeds, Checks: []Check{
			{What: "duration, of standard's", Value: end, Relative: toStandard, Max: 1.01, Decimals: 3}, slowestCall(0.3),
		}},
		{Name: "32 of 32 throttled at once", Scenario: AllAtOnce(32), Retries: 3, Seeds: goalSeeds, Checks: []Check{
			slowestCall(0.35),
			{What: "next 45 s, of undisturbed", Relative: toCalm, Min: 0.99, Decimals: 4,
				Value: func(r Result) float64 { return r.Between(AllAtOnceAt, AllAtOnceAt+45*time.Second) }},
		}},
	}
	probe := func(r Result) float64 { return r.Probes[0].Seconds() }
	for _, delay := range []time.Duration{10, 30, 100, 500} {
		delay *= time.Millisecond
		goals = append(goals, Goal{
			Name: fmt.Sprintf("16 throttled, one call at +%v", delay), Scenario: SixteenThenOne(delay), Retries: 3, Seeds: 20 * goalSeeds, Checks: []Check{
				{What: "duration, of untouched", Value: probe, Relative: toCalm, Max: 1.2, Decimals: 2},
				{What: "longer than untouched in any run, s", Value: func(r Result) float64 { return probe(r) - 0.05 }, Max: 0.1, Worst: true, Decimals: 3},
			},
		})
	}
	for _, drip := range []struct {
		rate int
		min  float64
	}{{20, 0.96}, {80, 0.99}, {320, 0.995}} {
		goals = append(goals, Goal{
			Name: fmt.Sprintf("one 503 every 2 s, %d calls/s, 30 min", drip.rate), Scenario: DripRun(drip.rate, 2*time.Second), Retries: 3, Seeds: goalSeeds,
			Checks: []Check{
				{What: "throughput, of undisturbed", Value: Result.Goodput, Relative: toCalm, Min: drip.min, Decimals: 4},
				{What: "last 5 min, of the first 45 s", Value: decay, Min: 0.99, Decimals: 4},
			},
		})
	}
	return append(goals,
		Goal{Name: "bursts after 30 s of rest, one 503 each", Scenario: Bursts(4 * time.Second), Retries: 3, Seeds: goalSeeds, Checks: []Check{
			{What: "mean burst, of undisturbed", Value: func(r Result) float64 { return r.MeanBurst().Seconds() }, Relative: toCalm, Max: 1.01, Decimals: 3},
			{What: "worst burst, of undisturbed", Value: func(r Result) float64 { return r.WorstBurst().Seconds() }, Relative: toCalm, Max: 1.02, Decimals: 3},
		}},
		Goal{Name: "no 503s", Scenario: Unthrottled(), Retries: 3, Seeds: goalSeeds, Checks: []Check{
			{What: "slowest call, of undisturbed", Value: slowest, Relative: toCalm, Max: 1.01, Decimals: 3},
			{What: "throughput, of undisturbed", Value: Result.Goodput, Relative: toCalm, Min: 0.999, Decimals: 4},
		}},
	)
}

// decay is the rate of the last five minutes as a share of that of the first 45 s.
func decay(r Result) float64 {
	first := r.Between(0, 45*time.Second) / 45
	return r.Between(r.Span-5*time.Minute, r.Span) / 300 / first
}

func loadGoals() []Goal {
	goals := []Goal{
		{Name: "limit 400 -> 100 -> 400", Scenario: Steps(), Retries: 10, Seeds: goalSeeds, Checks: []Check{
			within("503s under 10 % after the fall, s", 3, func(r Result) time.Duration { return r.Calms(StepDown, 0.1) }),
			within("90 % of the risen limit after, s", 8, func(r Result) time.Duration { return r.Reaches(StepUp, 360) }),
			noFailures(),
		}},
		{Name: "outage of 10 s, 32 threads", Scenario: OutageRun(10*time.Second, 32), Retries: 10, Seeds: goalSeeds, Checks: []Check{
			within("back at 90 % after, s", 5, func(r Result) time.Duration { return r.Reaches(OutageAt+10*time.Second, 288) }),
			noFailures(),
		}},
		{Name: "4 clients x 32 threads", Scenario: Clients(4, 32, 400), Retries: 10, Seeds: goalSeeds,
			Checks: []Check{good(400, 97), refusals(2), jainIndex(0.95)}},
		{Name: "16 clients x 32 threads", Scenario: Clients(16, 32, 400), Retries: 10, Seeds: goalSeeds,
			Checks: []Check{good(400, 97), refusals(7), jainIndex(0.85)}},
		{Name: "256 writers on 25/s", Scenario: Quota25(), Retries: 10, Seeds: goalSeeds,
			Checks: []Check{noFailures(), refusals(10), good(25, 99)}},
		{Name: "hot prefix of 10/s, a gate per prefix", Scenario: HotPrefix(10), Retries: 10, Seeds: goalSeeds,
			Checks: []Check{good(100, 94), refusals(1), noFailures()}},
		{Name: "bucket A throttled", Scenario: Isolation(), Retries: 10, Seeds: goalSeeds, Checks: []Check{
			{What: "bucket B's p99, of undisturbed", Value: func(r Result) float64 { return Percentile(r.ByKey[1], 99).Seconds() }, Relative: toCalm, Max: 1.01, Decimals: 3},
		}},
	}
	for _, random := range []struct{ share, min float64 }{{0.02, 90}, {0.05, 88}} {
		goals = append(goals, Goal{
			Name: fmt.Sprintf("random 503s, %.0f %%", 100*random.share), Scenario: RandomRun(random.share), Retries: 10, Seeds: goalSeeds,
			Checks: []Check{good(320, random.min)},
		})
	}
	return goals
}

func heldOutGoals() (goals []Goal) {
	for _, s := range HeldOut() {
		goals = append(goals, Goal{Name: s.Name, Scenario: s, HeldOut: true, Retries: 10, Seeds: goalSeeds, Checks: []Check{
			{What: "goodput, of standard's", Value: Result.Goodput, Relative: toStandard, Min: 1, Decimals: 3},
			{What: "503s, of standard's", Value: refused, Relative: toStandard, Max: 0.5, Decimals: 2},
			noFailures(),
		}})
	}
	return goals
}

func openGoals() []Goal {
	share := func(r Result) float64 {
		from, to := LatecomerAt, LatecomerAt+time.Minute
		all := 0.0
		for i := range r.PerClient {
			all += r.ClientBetween(i, from, to)
		}
		return 100 * r.ClientBetween(len(r.PerClient)-1, from, to) * float64(len(r.PerClient)) / all
	}
	goals := []Goal{
		{Name: "16 clients x 32 threads", Scenario: Clients(16, 32, 400), Checks: []Check{refusals(4), jainIndex(0.95)}},
		{Name: "16 clients x 16 threads on 25/s", Scenario: SixteenOnQuota25(), Checks: []Check{refusals(12)}},
		{Name: "calls of 1.5 s", Scenario: SlowCalls(), Checks: []Check{refusals(5), good(60, 96)}},
		{Name: "quota of 2,000 per 5 s", Scenario: FixedWindowRun(), Checks: []Check{
			{What: "503s, of standard's", Value: refused, Relative: toStandard, Max: 1, Decimals: 2}, good(400, 99),
		}},
		{Name: "rise 100 -> 400", Scenario: Steps(), Checks: []Check{
			within("90 % of the risen limit after, s", 4, func(r Result) time.Duration { return r.Reaches(StepUp, 360) }),
		}},
		{Name: "latecomer", Scenario: Latecomer(), Checks: []Check{{What: "share in its first minute, % of a fair one", Value: share, Max: 120}}},
		{Name: "collapse by attempt timeout", Scenario: TimeoutCollapse(), Checks: []Check{good(100, 80)}},
		{Name: "one thread, outage of 60 s", Scenario: OneThreadOutage(), Checks: []Check{
			{What: "calls lost", Value: func(r Result) float64 { return float64(r.Failed) }, Worst: true},
		}},
	}
	for i := range goals {
		goals[i].Open, goals[i].Retries, goals[i].Seeds = true, 10, goalSeeds
	}
	return goals
}
