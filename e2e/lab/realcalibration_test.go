package lab

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"
)

// The simulator and the real clients are two programs with one store between them. Where these tests hold, what the simulator says about an
// hour of traffic is what real clients would have done.

// tolerance is how far the medians of the two may be apart.
type tolerance struct {
	goodput float64 // as a share
	refused float64 // in points of per cent
	failed  float64 // calls in 10,000
	slowest float64 // as a share
}

// agreement is a scenario on which the two must agree.
type agreement struct {
	s       Scenario
	retries int
	seeds   int
	within  tolerance
	// policies of the real clients, and what stands for them in the simulator; nil = standard retries and the gate
	policies map[string]NewPolicy
}

// realRunner is a [Runner] on real clients.
func realRunner(t *testing.T) Runner {
	return func(s Scenario, policy string, retries int, seed uint64) Result {
		return runReal(t, s, policy, retries, seed)
	}
}

func TestTheSimulatorDoesWhatRealClientsDo(t *testing.T) {
	for _, a := range []agreement{
		{s: FreshOne503(), retries: 3, seeds: 1, within: tolerance{0.02, 0.01, 0, 1}},
		{s: CallDeadline(), retries: 3, seeds: 3, within: tolerance{0.5, 12, 0, 0.25}},
		{s: SixteenThenOne(30 * time.Millisecond), retries: 3, seeds: 3, within: tolerance{0.5, 0, 0, 0.6}},
		{s: WallRun(48, 4*time.Second), retries: 3, seeds: 1, within: tolerance{0.03, 1.5, 10, 1}},
	} {
		t.Log(a.check(t, realRunner(t)))
	}
}

// agreements are those of the lab. Most of them are goals as well, so that their runs have been made.
func agreements() []agreement {
	sdk := map[string]NewPolicy{onSDKStandard: Standard, onSDKAdaptive: SDKGo}
	return []agreement{
		{s: WallRun(96, time.Minute), retries: 10, seeds: 3, within: tolerance{0.01, 0.4, 0, 0.35}},
		{s: WallRun(256, time.Minute), retries: 3, seeds: 3, within: tolerance{0.01, 0.8, 25, 0.35}},
		{s: ClosedWall(1), retries: 10, seeds: 3, within: tolerance{0.01, 1, 2, 0.5}},
		{s: AllAtOnce(32), retries: 3, seeds: 3, within: tolerance{0.005, 0.1, 0, 0.1}},
		{s: OutageRun(10*time.Second, 32), retries: 10, seeds: 3, within: tolerance{0.03, 0.6, 0, 0.5}},
		{s: Quota25(), retries: 10, seeds: 3, within: tolerance{0.01, 0.5, 40, 0.25}},
		{s: Clients(4, 32, 400), retries: 10, seeds: 3, within: tolerance{0.01, 0.5, 0, 0.5}},
		{s: RetryAfterWall(2 * time.Second), retries: 3, seeds: 9, within: tolerance{0.1, 1, 10, 0.35}}, // standard does 220 to 295 calls/s, by seed
		{s: TimeoutCollapse(), retries: 10, seeds: 3, within: tolerance{0.15, 4, 10, 0.3}},
		{s: FreshOne503(), retries: 3, seeds: 11, within: tolerance{0.15, 0.02, 0, 0.5}, policies: sdk},
		{s: AllAtOnce(32), retries: 3, seeds: 3, within: tolerance{0.02, 0.05, 0, 0.2}, policies: sdk},
		{s: WallRun(96, time.Minute), retries: 3, seeds: 9, within: tolerance{0.03, 0.4, 2, 0.5}, policies: sdk}, // whose slowest call takes 12 or 22 s
	}
}

// check runs a scenario with both and compares the medians. It returns them.
func (a agreement) check(t *testing.T, real Runner) string {
	t.Helper()
	policies := a.policies
	if policies == nil {
		policies = map[string]NewPolicy{onStandard: Standard, onGate: Gate(GateDefaults(), a.s.Scope)}
	}
	text := ""
	for _, policy := range slices.Sorted(maps.Keys(policies)) {
		var simulated, measured []Result
		for seed := range uint64(a.seeds) {
			simulated = append(simulated, Simulate(a.s, policies[policy], a.retries, seed+1))
			measured = append(measured, real(a.s, policy, a.retries, seed+1))
		}
		text += fmt.Sprintf("%s, %d retries, %s, simulated / real:", a.s.Name, a.retries, policy)
		for _, c := range []struct {
			what  string
			of    measure
			limit func(simulated float64) float64
		}{
			{"calls/s", Result.Goodput, func(v float64) float64 { return a.within.goodput * v }},
			{"% 503s", refused, func(float64) float64 { return a.within.refused }},
			{"failed in 10k", failed, func(float64) float64 { return a.within.failed }},
			{"s slowest", slowest, func(v float64) float64 { return a.within.slowest * v }},
		} {
			want, _, _ := spread(simulated, c.of)
			got, _, _ := spread(measured, c.of)
			text += fmt.Sprintf(" %.4g / %.4g %s,", want, got, c.what)
			if math.Abs(got-want) > c.limit(want)+1e-9 {
				t.Errorf("%s with %s: %s: simulated %.4g, real clients %.4g", a.s.Name, policy, c.what, want, got)
			}
		}
		text = text[:len(text)-1] + "\n"
	}
	return text
}

// inRealTime runs two short scenarios without the virtual clock. What the machine is busy with else shows in them, so little is asked.
func inRealTime(t *testing.T) (text string) {
	for _, s := range []Scenario{FreshOne503(), WallRun(48, 5*time.Second)} {
		for _, policy := range []string{onStandard, onGate} {
			want := Simulate(s, simulatedPolicies[policy](s), 3, 1)
			got := newRig(t, s, policy, 3, 1).run()
			text += fmt.Sprintf("%s, %s, simulated / in real time: %.4g / %.4g calls/s, %.3g / %.3g %% 503s, %.3g / %.3g s slowest\n", s.Name, policy,
				want.Goodput(), got.Goodput(), refused(want), refused(got), slowest(want), slowest(got))
			if g := got.Goodput() / want.Goodput(); g < 0.8 || g > 1.1 || got.Failed > want.Failed+2 {
				t.Errorf("%s with %s: simulated %.4g calls/s, in real time %.4g", s.Name, policy, want.Goodput(), got.Goodput())
			}
		}
	}
	return text
}
