package lab

import (
	"fmt"
	"time"
)

// The scenarios of the measurements that this project answers (research: throttling), with their figures.

// quick is the latency of the scenarios in which a client's first moments count.
var quick = Latency{Mean: 50 * time.Millisecond}

// FreshOne503 is a burst of 1,000 calls by 32 threads of a fresh client, with one 503 at 0.3 s.
func FreshOne503() Scenario {
	return Scenario{
		Name:     "fresh client, 32 threads, 1,000 calls, one 503 at 0.3 s",
		Workload: Workload{Threads: 32, Calls: 1000},
		Store:    FirstAfter{At: 300 * time.Millisecond, N: 1}.Store,
	}
}

// FreshAll503 is the same burst where the first answer to every thread is a 503.
func FreshAll503() Scenario {
	return Scenario{
		Name:     "fresh client, 32 threads, 1,000 calls, the first 32 refused",
		Workload: Workload{Threads: 32, Calls: 1000},
		Store:    FirstAfter{N: 32}.Store,
	}
}

// AllAtOnce throttles all threads at once after 15 s; the run ends 45 s later.
func AllAtOnce(threads int) Scenario {
	return Scenario{
		Name:     fmt.Sprintf("%d of %d throttled at once", threads, threads),
		Workload: Workload{Threads: threads, Duration: time.Minute},
		Store:    FirstAfter{At: AllAtOnceAt, N: threads}.Store,
		Parts:    []Part{{"the next 5 s", AllAtOnceAt, AllAtOnceAt + 5*time.Second}, {"the next 45 s", AllAtOnceAt, AllAtOnceAt + 45*time.Second}},
	}
}

// AllAtOnceAt is when AllAtOnce throttles.
const AllAtOnceAt = 15 * time.Second

// SixteenThenOne throttles 16 calls of a fresh client and probes it with one more, delay after the last 503. Calls take 50 ms.
func SixteenThenOne(delay time.Duration) Scenario {
	return Scenario{
		Name:     fmt.Sprintf("16 throttled, then one call at +%v", delay),
		Workload: Workload{Threads: 16, Calls: 16, Probes: []time.Duration{firstAnswers + delay}},
		Store:    FirstAfter{N: 16, Fault: Fault{Latency: quick}}.Store,
		Latency:  quick,
	}
}

// firstAnswers is when the first answers of quick are all there: 50 ms and 2 %, and what the threads start apart.
const firstAnswers = 52 * time.Millisecond

// SecondClient is SixteenThenOne where another client of the same process is throttled; the probe must not notice.
func SecondClient() Scenario {
	s := SixteenThenOne(10 * time.Millisecond)
	s.Name = "16 calls of a second client throttled, then one call"
	s.Workload.Clients = 2
	s.Store = FirstAfter{N: 16, OnlyClient: 2, Fault: Fault{Latency: quick}}.Store
	return s
}

// CallDeadline throttles 16 calls of a fresh client that have 5 s in all.
func CallDeadline() Scenario {
	s := SixteenThenOne(0)
	s.Name = "16 throttled calls with a deadline of 5 s"
	s.Workload.Probes = nil
	s.Workload.CallTimeout = 5 * time.Second
	return s
}

// FirstEight is a fresh client with 8 threads whose first calls are all refused, for 40 s.
func FirstEight() Scenario {
	return Scenario{
		Name:     "fresh client, 8 threads, each one's first call refused, 40 s",
		Workload: Workload{Threads: 8, Duration: 40 * time.Second},
		Store:    FirstAfter{N: 8}.Store,
		Parts:    []Part{{"first 10 s", 0, 10 * time.Second}, {"last 10 s", 30 * time.Second, 40 * time.Second}},
	}
}

// DripRun is half an hour of so many calls per second, a multiple of ten, with one 503 every so often.
func DripRun(rate int, every time.Duration) Scenario {
	return Scenario{
		Name:     fmt.Sprintf("one 503 every %v at %d calls/s, 30 min", every, rate),
		Workload: Workload{Threads: rate / 10, Duration: 30 * time.Minute},
		Store:    Drip{Every: every}.Store,
		Parts:    []Part{{"first 45 s", 0, 45 * time.Second}, {"minute 5", 4 * time.Minute, 5 * time.Minute}, {"last 5 min", 25 * time.Minute, 30 * time.Minute}},
	}
}

// DripOn is DripRun after 32 threads (or all, if fewer) were throttled at the start, so that the limiters are on.
func DripOn(rate int, every time.Duration) Scenario {
	s := DripRun(rate, every)
	s.Name += ", throttled at the start"
	n := min(rate/10, 32)
	s.Store = FirstAfter{At: 5 * time.Second, N: n, Fault: Fault{Over: Drip{Every: every, From: 5*time.Second + every}.Store}}.Store
	return s
}

// Bursts is ten bursts of 1,000 calls by 32 threads, 30 s apart, with one 503 in each: within so long of the burst's start.
func Bursts(within time.Duration) Scenario {
	return Scenario{
		Name:     fmt.Sprintf("10 bursts after 30 s of rest, one 503 in the first %v of each", within),
		Workload: Workload{Threads: 32, Calls: 1000, Bursts: 10, Pause: 30 * time.Second},
		Store:    OncePerBurst{Within: within}.Store,
	}
}

// BurstsAtWall is ten bursts of 1,000 calls by 32 threads, 30 s apart, on a wall of 200/s.
func BurstsAtWall() Scenario {
	return Scenario{
		Name:     "10 bursts of 1,000 calls after 30 s of rest, wall 200/s",
		Workload: Workload{Threads: 32, Calls: 1000, Bursts: 10, Pause: 30 * time.Second},
		Store:    Wall{Limit: 200}.Store,
		Best:     200,
	}
}

// WallRun is threads at a wall of 400/s.
func WallRun(threads int, d time.Duration) Scenario {
	return Scenario{
		Name:     fmt.Sprintf("wall 400/s, %d threads, %v", threads, d),
		Workload: Workload{Threads: threads, Duration: d},
		Store:    Wall{Limit: 400}.Store,
		Best:     400,
	}
}

// wallOf is WallRun with 96 threads for one minute on another wall.
func wallOf(name string, w Wall) Scenario {
	s := WallRun(96, time.Minute)
	s.Name = name
	s.Store = w.Store
	s.Best = float64(w.Limit)
	s.Latency = w.Latency
	return s
}

// Fast503 is the wall whose refusals take 10 ms.
func Fast503() Scenario {
	return wallOf("wall 400/s, 96 threads, 503s after 10 ms", Wall{Limit: 400, Latency: Latency{Refused: 10 * time.Millisecond}})
}

// ClosedWall is the wall that closes connections instead of answering 503: a share of them, 1 = all.
func ClosedWall(share float64) Scenario {
	name := fmt.Sprintf("wall 400/s, 96 threads, %.0f %% of the refusals by closed connections", 100*share)
	return wallOf(name, Wall{Limit: 400, Refusal: Refusal{Closed: share}})
}

// RetryAfterWall is the wall that says when to come back.
func RetryAfterWall(d time.Duration) Scenario {
	return wallOf(fmt.Sprintf("wall 400/s, 96 threads, Retry-After %v", d), Wall{Limit: 400, Refusal: Refusal{RetryAfter: d}})
}

// ScatteredLatency is the wall with latencies of 100 ms +-60 %.
func ScatteredLatency() Scenario {
	return wallOf("wall 400/s, 96 threads, latency +-60 %", Wall{Limit: 400, Latency: Latency{Spread: 0.6}})
}

// SmallWall is 32 threads on a wall of 20/s.
func SmallWall() Scenario {
	s := wallOf("wall 20/s, 32 threads", Wall{Limit: 20})
	s.Workload.Threads = 32
	return s
}

// BucketWall is the wall as a token bucket of one second's depth.
func BucketWall() Scenario {
	s := wallOf("token bucket 400/s, 96 threads", Wall{Limit: 400})
	s.Store = Bucket{Rate: 400, Burst: 400}.Store
	return s
}

// S3Prefix is 512 threads on the 3,500/s of an S3 prefix.
func S3Prefix() Scenario {
	s := wallOf("wall 3,500/s, 512 threads", Wall{Limit: 3500})
	s.Workload.Threads = 512
	return s
}

// WallAndNoise is the wall that also refuses a share of the attempts for no reason.
func WallAndNoise(share float64) Scenario {
	s := wallOf(fmt.Sprintf("wall 400/s and %.0f %% random 503s, 96 threads", 100*share), Wall{Limit: 400})
	s.Store = Random{Share: share, Fault: Fault{Over: Wall{Limit: 400}.Store}}.Store
	return s
}
