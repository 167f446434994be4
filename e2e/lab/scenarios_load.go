package lab

import (
	"fmt"
	"time"
)

// The scenarios of the limiter study and the drills, which have more clients, changing limits or other stores than a wall.

// Steps is 96 threads on a wall that falls from 400/s to 100/s and comes back, one minute each.
func Steps() Scenario {
	return Scenario{
		Name:     "wall 400 -> 100 -> 400, 96 threads",
		Workload: Workload{Threads: 96, Duration: 3 * time.Minute},
		Store:    Wall{Limit: 400, Steps: []Step{{StepDown, 100}, {StepUp, 400}}}.Store,
		Best:     300,
	}
}

// When the limit of Steps changes.
const (
	StepDown = time.Minute
	StepUp   = 2 * time.Minute
)

// OutageRun is threads on a store that refuses everything for d, from OutageAt on. It goes on for a minute after that.
func OutageRun(d time.Duration, threads int) Scenario {
	return Scenario{
		Name:     fmt.Sprintf("outage of %v, %d threads", d, threads),
		Workload: Workload{Threads: threads, Duration: OutageAt + d + time.Minute},
		Store:    Outage{From: OutageAt, To: OutageAt + d}.Store,
	}
}

// OutageAt is when the outages of OutageRun begin.
const OutageAt = 20 * time.Second

// ThreeLayers is an outage of a minute below three layers that retry: the client, and two above it that try what fails three times each.
func ThreeLayers() Scenario {
	s := OutageRun(time.Minute, 32)
	s.Name = "outage of 1m0s, 32 threads, below two more layers of three tries each"
	s.Workload.Tries = 9
	return s
}

// OneThreadOutage is one thread through an outage of a minute.
func OneThreadOutage() Scenario { return OutageRun(time.Minute, 1) }

// PersistentOutage is a store that never comes back, met by calls with a deadline of a minute.
func PersistentOutage() Scenario {
	return Scenario{
		Name:     "503 for ever from 20 s on, 32 threads, deadline 60 s",
		Workload: Workload{Threads: 32, Duration: 2 * time.Minute, CallTimeout: time.Minute},
		Store:    Outage{From: OutageAt, To: Never}.Store,
	}
}

// Clients is n clients of so many threads at one wall, for two minutes.
func Clients(n, threads, limit int) Scenario {
	return Scenario{
		Name:     fmt.Sprintf("%d clients x %d threads, wall %d/s", n, threads, limit),
		Workload: Workload{Clients: n, Threads: threads, Duration: 2 * time.Minute},
		Store:    Wall{Limit: limit}.Store,
		Best:     float64(limit),
	}
}

// SixteenOnQuota25 is 16 clients of 16 threads on 25/s, with calls of 0.6 s.
func SixteenOnQuota25() Scenario {
	s := Quota25()
	s.Name = "16 clients x 16 threads, bucket 25/s, calls of 0.6 s"
	s.Workload.Clients, s.Workload.Threads = 16, 16
	return s
}

// Quota25 is the shape of the pull request's experiment: 256 writers on 25/s, with calls of 0.6 s.
func Quota25() Scenario { return PRShape(256) }

// PRShape is so many writers on 25/s, with calls of 0.6 s; the pull request ran it with 256, 32 and 16.
func PRShape(writers int) Scenario {
	l := Latency{Mean: 600 * time.Millisecond}
	return Scenario{
		Name:     fmt.Sprintf("%d writers, bucket 25/s, calls of 0.6 s", writers),
		Workload: Workload{Threads: writers, Duration: 5 * time.Minute},
		Store:    Bucket{Rate: 25, Burst: 5, Latency: l}.Store,
		Best:     25,
		Latency:  l,
	}
}

// Latecomer is four clients of 32 threads at a wall of 400/s, the last of which comes a minute late. Three minutes.
func Latecomer() Scenario {
	s := Clients(4, 32, 400)
	s.Name = "a fourth client comes a minute late, wall 400/s"
	s.Workload.Latecomer = LatecomerAt
	s.Workload.Duration = 3 * time.Minute
	return s
}

// LatecomerAt is when the last client of Latecomer starts.
const LatecomerAt = time.Minute

// SynchronizedRestarts is 16 clients of 32 threads that start over together every half minute, five times, on a wall of 400/s: 4,000 calls or ten
// seconds of it each time.
func SynchronizedRestarts() Scenario {
	return Scenario{
		Name:     "16 clients x 32 threads restart together every 30 s, 250 calls each, wall 400/s",
		Workload: Workload{Clients: 16, Threads: 32, Calls: 250, Bursts: 5, Every: 30 * time.Second},
		Store:    Wall{Limit: 400}.Store,
		Best:     400,
	}
}

// HotPrefix is 32 threads of whose calls a tenth goes to a prefix with a limit of its own; the rest is free.
func HotPrefix(limit int) Scenario {
	return Scenario{
		Name:     fmt.Sprintf("a tenth of the calls meets %d/s, 32 threads", limit),
		Workload: Workload{Threads: 32, Duration: 2 * time.Minute, Shares: []float64{0.9, 0.1}},
		Store:    ByKey{Calm(Latency{}), Wall{Limit: limit}.Store}.Store,
		Scope:    PerKey,
		Best:     10 * float64(limit),
	}
}

// Isolation is two buckets, half of the calls each; the first has a limit of 50/s, the second none. The second's durations are
// Result.ByKey[1].
func Isolation() Scenario {
	return Scenario{
		Name:     "bucket A throttled at 50/s, bucket B free, 64 threads",
		Workload: Workload{Threads: 64, Duration: 2 * time.Minute, Shares: []float64{0.5, 0.5}},
		Store:    ByKey{Wall{Limit: 50}.Store, Calm(Latency{})}.Store,
		Scope:    PerKey,
		Best:     100,
	}
}

// RandomRun is 32 threads on a store that refuses a share of all attempts.
func RandomRun(share float64) Scenario {
	return Scenario{
		Name:     fmt.Sprintf("random 503s, %.1f %%, 32 threads", 100*share),
		Workload: Workload{Threads: 32, Duration: 2 * time.Minute},
		Store:    Random{Share: share}.Store,
		Best:     320,
	}
}

// LostAnswers is RandomRun where the connection is closed instead: the store has done the work, the answer is lost.
func LostAnswers(share float64) Scenario {
	s := RandomRun(share)
	s.Name = fmt.Sprintf("answers lost at random, %.1f %%, 32 threads", 100*share)
	s.Store = Random{Share: share, Fault: Fault{Refusal: Refusal{Closed: 1}}}.Store
	return s
}

// FixedWindowRun is 96 threads on 2,000 calls per 5 s.
func FixedWindowRun() Scenario {
	s := wallOf("quota of 2,000 per 5 s, 96 threads", Wall{Limit: 400})
	s.Store = FixedWindow{Limit: 2000, Window: 5 * time.Second}.Store
	return s
}

// SlowCalls is six clients of 20 threads on a wall of 60/s with calls of 1.5 s.
func SlowCalls() Scenario {
	l := Latency{Mean: 1500 * time.Millisecond}
	return Scenario{
		Name:     "6 clients x 20 threads, wall 60/s, calls of 1.5 s",
		Workload: Workload{Clients: 6, Threads: 20, Duration: 2 * time.Minute},
		Store:    Wall{Limit: 60, Latency: l}.Store,
		Best:     60,
		Latency:  l,
	}
}

// TimeoutCollapse is 256 threads with an attempt timeout of 2 s on a queue of 100/s, which does the work of timed-out attempts too.
func TimeoutCollapse() Scenario {
	return Scenario{
		Name:     "queue 100/s, 256 threads, attempt timeout 2 s",
		Workload: Workload{Threads: 256, Duration: 2 * time.Minute, AttemptTimeout: 2 * time.Second},
		Store:    Queue{Rate: 100}.Store,
		Best:     100,
	}
}

// SlowDependency is a store that is 40 times as slow for 20 s, met with an attempt timeout of 2 s.
func SlowDependency() Scenario {
	return Scenario{
		Name:     "40 x slower for 20 s, 32 threads, attempt timeout 2 s",
		Workload: Workload{Threads: 32, Duration: 80 * time.Second, AttemptTimeout: 2 * time.Second},
		Store:    Slow{From: OutageAt, To: OutageAt + 20*time.Second, Factor: 40, Over: Calm(Latency{})}.Store,
	}
}

// QueueRun is 96 threads on a queue of 400/s which refuses nobody, or whoever would wait longer than so long.
func QueueRun(refuseAfter time.Duration) Scenario {
	s := wallOf("queue 400/s, 96 threads", Wall{Limit: 400})
	if refuseAfter > 0 {
		s.Name += fmt.Sprintf(", 503 beyond a wait of %v", refuseAfter)
		s.Workload.Threads = 256
	}
	s.Store = Queue{Rate: 400, RefuseAfter: refuseAfter}.Store
	return s
}

// ByteWallRun is 96 threads that upload parts of 5 MB, three in ten of them of 0.5 MB, on 1 GB/s.
func ByteWallRun() Scenario {
	const part, limit = 5_000_000, 1_000_000_000
	return Scenario{
		Name:     "1 GB/s, 96 threads, parts of 5 MB and 0.5 MB",
		Workload: Workload{Threads: 96, Duration: time.Minute, Bytes: part, SmallShare: 0.3},
		Store:    ByteWall{Limit: limit}.Store,
		Best:     limit / (part * 0.73),
	}
}

// ScalingRun is a store of 400/s that doubles under load, for five minutes. It may have to see 503s for that.
func ScalingRun(needsRefusals bool) Scenario {
	name := "400/s, doubles after 2 min of load, 96 threads"
	if needsRefusals {
		name = "400/s, doubles after 2 min of load and 503s, 96 threads"
	}
	return Scenario{
		Name:     name,
		Workload: Workload{Threads: 96, Duration: 5 * time.Minute},
		Store:    Scaling{Limit: 400, Max: 800, NeedsRefusals: needsRefusals}.Store,
		Best:     640,
	}
}

// ScalingPrefix is an S3 prefix of 3,500/s that doubles under load, met by 800 threads for five minutes.
func ScalingPrefix() Scenario {
	return Scenario{
		Name:     "3,500/s, doubles after 2 min of load, 800 threads",
		Workload: Workload{Threads: 800, Duration: 5 * time.Minute},
		Store:    Scaling{Limit: 3500, Max: 7000}.Store,
		Best:     5600,
	}
}

// Unthrottled is 32 threads on a store that refuses nothing.
func Unthrottled() Scenario {
	return Scenario{
		Name:     "no 503s, 32 threads",
		Workload: Workload{Threads: 32, Duration: time.Minute},
		Store:    Calm(Latency{}),
	}
}
