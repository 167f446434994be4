package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/retrymode/gate"
)

// Rehearsal is a workload, what disturbs it, and the retry options of the client.
type Rehearsal struct {
	// Clients are processes, each with so many Threads that make one call after the other; or, when Rate is not 0, so many calls per second.
	Clients, Threads int
	Rate             float64
	CallTime         time.Duration
	// Burst calls are made by each client at a time, with Pause between bursts; 0 = without end.
	Burst    int
	Pause    time.Duration
	Duration time.Duration

	// Limit is how many calls the store lets through in any Window; 0 = all.
	Limit  int
	Window time.Duration
	// Every is the time between 503s, of which Cluster come at a time, Share the share of calls that get one by chance, Outage how long everything is refused from a third of the run on.
	Every   time.Duration
	Cluster int
	Share   float64
	Outage  time.Duration

	Retries int
	Backoff Backoff
	Seed    uint64
}

// DefaultRehearsal is 32 threads with calls of 100 ms for a minute, undisturbed, with the defaults of s3.retry.*.
func DefaultRehearsal() Rehearsal {
	return Rehearsal{
		Clients: 1, Threads: 32, CallTime: defaultLatency, Duration: time.Minute, Pause: 30 * time.Second, Window: time.Second, Cluster: 1, Retries: 3,
		Backoff: DefaultBackoff(), Seed: 1,
	}
}

// maxCalls bounds what is simulated to some seconds of computing. A policy has stepsEach events for each call of an undisturbed run, and no fewer than minSteps: more are
// needed only where calls pile up behind a limiter, and then for ever.
const (
	maxCalls  = 20_000_000
	minSteps  = 5_000_000
	stepsEach = 50
)

// Validate returns every problem, joined.
func (r Rehearsal) Validate() error {
	var problems []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	check(r.Clients >= 1, "clients: %d is less than 1", r.Clients)
	check(r.Threads >= 1, "threads: %d is less than 1", r.Threads)
	check(r.Rate >= 0, "rate: %g is negative", r.Rate)
	check(r.CallTime >= time.Millisecond, "call time: %v is less than 1 ms", r.CallTime)
	check(r.Burst >= 0, "burst: %d is negative", r.Burst)
	check(r.Pause >= 0, "pause: %v is negative", r.Pause)
	check(r.Duration >= time.Second, "duration: %v is less than 1 s", r.Duration)
	check(r.Limit >= 0, "limit: %d is negative", r.Limit)
	check(r.Window >= 10*time.Millisecond, "window: %v is less than 10 ms", r.Window)
	check(r.Every >= 0, "every: %v is negative", r.Every)
	check(r.Cluster >= 1, "cluster: %d is less than 1", r.Cluster)
	check(r.Cluster <= 1 || r.Every > 0 && r.Burst == 0, "cluster: needs the time between clusters, and no bursts")
	check(r.Share >= 0 && r.Share < 1, "share: %g is not between 0 and 1", r.Share)
	check(r.Outage >= 0 && r.Outage < r.Duration, "outage: %v is not between 0 and the duration", r.Outage)
	check(r.Retries >= 0, "retries: %d is negative", r.Retries)
	if len(problems) == 0 {
		calls := r.calls()
		check(calls <= maxCalls, "%.0f calls are more than the %d that are simulated: take fewer clients, threads or a shorter duration", calls, maxCalls)
	}
	return errors.Join(problems...)
}

// demand is the calls per second that a client makes on an undisturbed store.
func (r Rehearsal) demand() float64 {
	if r.Rate > 0 {
		return r.Rate
	}
	return float64(r.Threads) / r.CallTime.Seconds()
}

// calls is how many calls an undisturbed run without rests makes.
func (r Rehearsal) calls() float64 { return float64(r.Clients) * r.demand() * r.Duration.Seconds() }

// Scenario is the rehearsal for the simulator.
func (r Rehearsal) Scenario() Scenario {
	latency := Latency{Mean: r.CallTime}
	store := Calm(latency)
	if r.Limit > 0 {
		store = Wall{Limit: r.Limit, Window: r.Window, Latency: latency}.Store
	}
	fault := func() Fault { return Fault{Latency: latency, Over: store} }
	if r.Share > 0 {
		store = Random{Share: r.Share, Fault: fault()}.Store
	}
	if r.Every > 0 && r.Burst > 0 {
		store = OncePerBurst{Rest: max(r.Pause/2, time.Millisecond), Within: r.Every, Fault: fault()}.Store
	} else if r.Every > 0 {
		store = Drip{Every: r.Every, N: r.Cluster, Fault: fault()}.Store
	}
	if r.Outage > 0 {
		from := r.Duration / 3
		store = Outage{From: from, To: from + r.Outage, Fault: fault()}.Store
	}
	w := Workload{Clients: r.Clients, Threads: r.Threads, Rate: r.Rate, Duration: r.Duration, Steps: max(int(stepsEach*r.calls()), minSteps)}
	if r.Burst > 0 {
		w.Calls, w.Pause, w.Bursts = r.Burst, r.Pause, maxCalls // as many as fit
	}
	return Scenario{Name: "rehearsal", Workload: w, Store: store, Latency: latency}
}

// Rehearsed is what one policy made of it.
type Rehearsed struct {
	Policy string
	Result
	// Extra is how much longer a call took on average than on an undisturbed store.
	Extra time.Duration
}

// Run runs the workload with standard retries, with the gate and with the limiter of the Go SDK, and first of all undisturbed. It looks at ctx between
// two of them; its cause is the only error.
func (r Rehearsal) Run(ctx context.Context) (undisturbed Result, all []Rehearsed, err error) {
	s := r.Scenario()
	calm := s
	calm.Store = Calm(s.Latency)
	undisturbed = Simulate(calm, StandardWith(r.Backoff), r.Retries, r.Seed)
	for _, p := range []struct {
		name   string
		policy NewPolicy
	}{
		{"standard", StandardWith(r.Backoff)},
		{"adaptive", Gate(gate.Defaults(r.Backoff.Throttle, r.Backoff.Max), PerClient)},
		{"adaptive, limiter sdk", SDKGo},
	} {
		if ctx.Err() != nil {
			return Result{}, nil, context.Cause(ctx)
		}
		res := Simulate(s, p.policy, r.Retries, r.Seed)
		all = append(all, Rehearsed{Policy: p.name, Result: res, Extra: res.MeanDuration() - undisturbed.MeanDuration()})
	}
	return undisturbed, all, nil
}

// Pattern is how the refusals of a run are spread over time: the question that decides what a limiter costs.
type Pattern int

// The patterns.
const (
	// Untouched is without refusals.
	Untouched Pattern = iota + 1
	// DripPattern is single refusals now and then.
	DripPattern
	// Clusters are moments in which many calls are refused at once.
	Clusters
	// BurstPattern is refusals in a workload that comes in bursts with rests between them.
	BurstPattern
	// Steady is a store that refuses a share of the calls all the time, because it is asked for too much or for a reason of its own.
	Steady
)

// String names the pattern and says what it means.
func (p Pattern) String() string {
	switch p {
	case Untouched:
		return "untouched: nothing is refused, the mode does not matter"
	case DripPattern:
		return "drip: single refusals now and then"
	case Clusters:
		return "clusters: moments in which many calls are refused at once"
	case BurstPattern:
		return "bursts: refusals in a workload with rests"
	case Steady:
		return "steady: the store refuses a share of the calls all the time"
	default:
		return fmt.Sprintf("Pattern(%d)", int(p))
	}
}

// PatternOf says where a workload is, by what standard retries meet: they do not change how the store is asked.
func PatternOf(w Workload, r Result) Pattern {
	busy, touched, most := 0, 0, 0
	for _, s := range r.Seconds {
		if s.OK+s.Throttled > 0 {
			busy++
		}
		if s.Throttled > 0 {
			touched++
		}
		most = max(most, s.Throttled)
	}
	switch {
	case touched == 0:
		return Untouched
	case r.RefusedShare() >= 0.01 && touched*3 >= busy:
		return Steady
	case w.Pause > 0 && w.Calls > 0:
		return BurstPattern
	case most >= 4:
		return Clusters
	default:
		return DripPattern
	}
}
