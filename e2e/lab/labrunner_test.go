package lab

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// labRunner runs scenarios for the goals, each combination once and as many at a time as there are processors, in the order in which they
// were asked for. What somebody waits for goes first.
type labRunner struct {
	t         *testing.T
	simulated bool // nothing on real clients

	mu       sync.Mutex
	jobs     map[jobKey]*job
	queue    []*job
	workers  int          // that are at it
	attempts map[bool]int // by whether they were simulated
}

// jobKey names a run. Goals that share a scenario share its runs.
type jobKey struct {
	scenario string
	calm     bool // on a store that refuses nothing
	policy   string
	retries  int
	seed     uint64
}

type job struct {
	key    jobKey
	s      Scenario
	begun  bool
	done   chan struct{}
	result Result
}

func newLabRunner(t *testing.T, simulated bool) *labRunner {
	return &labRunner{t: t, simulated: simulated, jobs: map[jobKey]*job{}, attempts: map[bool]int{}}
}

// run is a [Runner].
func (l *labRunner) run(s Scenario, policy string, retries int, seed uint64) Result {
	j := l.start(s, policy, retries, seed)
	l.mu.Lock()
	if !j.begun {
		l.queue = slices.Insert(l.queue, 0, j) // a worker that finds it begun passes over it
	}
	l.mu.Unlock()
	<-j.done
	return j.result
}

// start puts a run into the queue.
func (l *labRunner) start(s Scenario, policy string, retries int, seed uint64) *job {
	key := jobKey{scenario: s.Name, calm: isCalm(s), policy: policy, retries: retries, seed: seed}
	l.mu.Lock()
	defer l.mu.Unlock()
	if j := l.jobs[key]; j != nil {
		return j
	}
	j := &job{key: key, s: s, done: make(chan struct{})}
	l.jobs[key] = j
	l.queue = append(l.queue, j)
	if l.workers < runtime.GOMAXPROCS(0) {
		l.workers++
		go l.work()
	}
	return j
}

// work makes runs until there are no more.
func (l *labRunner) work() {
	for {
		j := l.next()
		if j == nil {
			return
		}
		simulated := l.simulated || !onRealClients(j.key, j.s)
		if simulated {
			j.result = Simulate(j.s, simulatedPolicies[j.key.policy](j.s), j.key.retries, j.key.seed)
		} else {
			j.result = runReal(l.t, j.s, j.key.policy, j.key.retries, j.key.seed)
		}
		l.mu.Lock()
		l.attempts[simulated] += j.result.Attempts
		l.mu.Unlock()
		close(j.done)
	}
}

func (l *labRunner) next() *job {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) > 0 {
		j := l.queue[0]
		l.queue = l.queue[1:]
		if !j.begun {
			j.begun = true
			return j
		}
	}
	l.workers--
	return nil
}

// judge measures a goal, and standard retries beside it.
func (l *labRunner) judge(g Goal) Row {
	row := Row{Goal: g, Findings: g.Judge(l.run), Rig: l.rig(g)}
	beside := g.results(l.run, onStandard, g.Scenario, standardSeeds(g))
	for _, c := range g.Checks {
		by := 1.0
		if c.Relative != absolute {
			by, _, _ = spread(g.reference(l.run, c.Relative), c.Value)
		}
		f := Finding{Goal: g, Check: c}
		f.Median, f.Low, f.High = spread(beside, func(r Result) float64 { return c.Value(r) / by })
		row.Standard = append(row.Standard, f)
	}
	return row
}

// prepare starts all runs of a goal.
func (l *labRunner) prepare(g Goal) {
	for seed := range g.Seeds {
		l.start(g.Scenario, onGate, g.Retries, uint64(seed)+1)
	}
	for seed := range standardSeeds(g) {
		l.start(g.Scenario, onStandard, g.Retries, uint64(seed)+1)
	}
}

// standardSeeds is how many seeds are enough for what only stands beside.
func standardSeeds(g Goal) int {
	if testing.Short() {
		return 1
	}
	return min(g.Seeds, 5)
}

// rig says what has run the gate of a goal.
func (l *labRunner) rig(g Goal) string {
	real := g.Seeds
	if l.simulated {
		real = 0
	} else if g.Scenario.Workload.Duration >= longRun {
		real = min(realSeeds(g.Scenario), g.Seeds)
	}
	switch real {
	case g.Seeds:
		return seeds(g.Seeds)
	case 0:
		return seeds(g.Seeds) + " simulated"
	default:
		return fmt.Sprintf("%s, %d more simulated", seeds(real), g.Seeds-real)
	}
}

func seeds(n int) string {
	if n == 1 {
		return "1 seed"
	}
	return fmt.Sprintf("%d seeds", n)
}

// isCalm reports whether the store of s is that of [Calm]: the goals put it in the place of a scenario's own and keep the name.
func isCalm(s Scenario) bool {
	_, is := s.Store(1).(calm)
	return is
}

var simulatedPolicies = map[string]func(Scenario) NewPolicy{
	onStandard: func(Scenario) NewPolicy { return Standard },
	onGate:     func(s Scenario) NewPolicy { return Gate(GateDefaults(), s.Scope) },
}

// Half hours are too expensive for real clients in every seed: so many calls of each are made with them, and the rest is simulated, as is
// what they are compared with. A short lab simulates all that is only compared with.
const (
	longRun       = 30 * time.Minute
	realCallsEach = 450_000
)

func onRealClients(k jobKey, s Scenario) bool {
	if testing.Short() && k.policy == onStandard {
		return false
	}
	return s.Workload.Duration < longRun || k.policy == onGate && k.seed <= uint64(realSeeds(s))
}

// realSeeds is how many seeds of a long run are made with real clients.
func realSeeds(s Scenario) int {
	calls := int(s.Workload.Duration.Seconds()) * max(s.Workload.Clients, 1) * s.Workload.Threads * 10
	return max(realCallsEach/calls, 1)
}
