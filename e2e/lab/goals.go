package lab

import (
	"fmt"
	"slices"
	"time"
)

// Policies of the goals: each is measured on the gate, some of them against standard retries or the same workload without any refusal.
const (
	onGate     = "gate"
	onStandard = "standard"
)

// Runner runs a scenario with a policy: "gate" or "standard".
type Runner func(s Scenario, policy string, retries int, seed uint64) Result

// Goal is one row of the table that adaptive mode has to meet.
type Goal struct {
	Name     string
	Scenario Scenario
	Retries  int
	Seeds    int
	Open     bool // an open problem: shown, and not counted
	HeldOut  bool // on a store that nothing is tuned on
	Checks   []Check
}

// Check is one figure of a goal. It must lie between Min and Max; a Max of 0 with a Min above 0 is none.
type Check struct {
	What     string
	Value    func(Result) float64
	Relative relative
	Min, Max float64
	Worst    bool // of all seeds, not their median
	Decimals int
}

// relative says what a figure is divided by: the median of the same figure elsewhere.
type relative int

const (
	absolute   relative = iota
	toStandard          // the same scenario with standard retries
	toCalm              // the same workload on a store that refuses nothing
)

// Finding is what a check has found.
type Finding struct {
	Goal   Goal
	Check  Check
	Median float64
	Low    float64
	High   float64
	OK     bool
}

// Text is the figure: median (lowest-highest).
func (f Finding) Text() string {
	return fmt.Sprintf("%.*f (%.*f-%.*f)", f.Check.Decimals, f.Median, f.Check.Decimals, f.Low, f.Check.Decimals, f.High)
}

// Bound is what the figure must be.
func (c Check) Bound() string {
	switch {
	case c.Min > 0 && c.Max > 0:
		return fmt.Sprintf("%.*f-%.*f", c.Decimals, c.Min, c.Decimals, c.Max)
	case c.Min > 0:
		return fmt.Sprintf(">= %.*f", c.Decimals, c.Min)
	case c.Max == 0:
		return "0"
	default:
		return fmt.Sprintf("<= %.*f", c.Decimals, c.Max)
	}
}

// Judge runs a goal and returns what its checks have found.
func (g Goal) Judge(run Runner) []Finding {
	results := g.results(run, onGate, g.Scenario, g.Seeds)
	cache := map[relative][]Result{}
	var found []Finding
	for _, c := range g.Checks {
		f := Finding{Goal: g, Check: c}
		values := each(results, c.Value)
		if c.Relative != absolute {
			if cache[c.Relative] == nil {
				cache[c.Relative] = g.reference(run, c.Relative)
			}
			divide(values, each(cache[c.Relative], c.Value))
		}
		f.Median, f.Low, f.High = spreadOf(values)
		low, high := f.Median, f.Median
		if c.Worst {
			low, high = f.Low, f.High
		}
		f.OK = (c.Min == 0 || low >= c.Min) && (high <= c.Max || c.Max == 0 && c.Min > 0)
		found = append(found, f)
	}
	return found
}

func (g Goal) results(run Runner, policy string, s Scenario, seeds int) []Result {
	var all []Result
	for seed := range seeds {
		all = append(all, run(s, policy, g.Retries, uint64(seed)+1))
	}
	return all
}

// reference runs what a figure is compared with. It hardly varies, so a few seeds are enough; but held-out stores differ from seed to seed.
func (g Goal) reference(run Runner, to relative) []Result {
	s, seeds := g.Scenario, min(g.Seeds, 5)
	if g.HeldOut {
		seeds = g.Seeds
	}
	if to == toCalm {
		s.Store = Calm(s.Latency)
		seeds = 1
	}
	return g.results(run, onStandard, s, seeds)
}

// each is the value of each result.
func each(rs []Result, value func(Result) float64) []float64 {
	all := make([]float64, len(rs))
	for i, r := range rs {
		all[i] = value(r)
	}
	return all
}

// divide divides each value by the reference of the same seed, or by the median of the references when there are fewer of them.
func divide(values, by []float64) {
	median, _, _ := spreadOf(slices.Clone(by))
	for i := range values {
		if len(by) == len(values) {
			median = by[i]
		}
		values[i] /= median
	}
}

// spread is the median, the lowest and the highest value of some results.
func spread(rs []Result, value func(Result) float64) (median, low, high float64) {
	return spreadOf(each(rs, value))
}

// spreadOf is spread of values, which it sorts.
func spreadOf(all []float64) (median, low, high float64) {
	slices.Sort(all)
	n := len(all)
	return (all[(n-1)/2] + all[n/2]) / 2, all[0], all[n-1]
}

// Figures.

func goodput(limit float64) func(Result) float64 {
	return func(r Result) float64 { return 100 * r.Goodput() / limit }
}

func refused(r Result) float64 { return 100 * r.RefusedShare() }
func failed(r Result) float64  { return r.FailedPer10k() }
func slowest(r Result) float64 { return r.Slowest().Seconds() }
func end(r Result) float64     { return r.End.Seconds() }

func good(limit, atLeast float64) Check {
	return Check{What: "goodput, %", Value: goodput(limit), Min: atLeast, Decimals: 1}
}

func refusals(atMost float64) Check {
	return Check{What: "503s, % of attempts", Value: refused, Max: atMost, Decimals: 2}
}

func noFailures() Check {
	return Check{What: "failed per 10k", Value: failed, Decimals: 1, Worst: true}
}

func failures(atMost float64) Check {
	return Check{What: "failed per 10k", Value: failed, Max: atMost, Decimals: 1}
}

func slowestCall(atMost float64) Check {
	return Check{What: "slowest call, s", Value: slowest, Max: atMost, Decimals: 2}
}

func jainIndex(atLeast float64) Check {
	return Check{What: "Jain", Value: Result.Jain, Min: atLeast, Decimals: 2}
}

func within(what string, seconds float64, f func(Result) time.Duration) Check {
	return Check{What: what, Value: func(r Result) float64 { return min(f(r).Seconds(), 99) }, Max: seconds, Decimals: 1}
}
