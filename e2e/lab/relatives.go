package lab

import "time"

// Relatives are stores of the same kinds as the held-out ones, with other figures. They are there to be worked on: constants of the gate were chosen with
// them in view, and the held-out ones tell whether that carries over.
func Relatives() []Scenario {
	usual := Latency{Mean: 100 * time.Millisecond, Spread: 0.2}
	slow := Latency{Mean: 200 * time.Millisecond, Spread: 0.1}
	return []Scenario{
		{
			Name:     "60 at once, slower when crowded, 128 threads",
			Workload: Workload{Threads: 128, Duration: 2 * time.Minute},
			Store:    Crowd{Slots: 60, Slowdown: 0.5, Latency: usual}.Store,
			Best:     60 / 0.15, // all slots are taken, and calls take half as long again
			Latency:  usual,
		},
		{
			Name:     "12 at once, four clients of 16 threads",
			Workload: Workload{Clients: 4, Threads: 16, Duration: 2 * time.Minute},
			Store:    Crowd{Slots: 12, Latency: usual}.Store,
			Best:     12 / 0.1,
			Latency:  usual,
		},
		{
			Name:     "200 a second and 1,000 in eight seconds, 64 threads",
			Workload: Workload{Threads: 64, Duration: 3 * time.Minute},
			Store:    Tiers{{Limit: 200, Window: time.Second}, {Limit: 1000, Window: 8 * time.Second}}.Store,
			Best:     125,
		},
		{
			Name:     "a soft limit with tides, 250 to 600, two clients of 48 threads",
			Workload: Workload{Clients: 2, Threads: 48, Duration: 4 * time.Minute},
			Store:    Tides{Low: 250, High: 600, Period: 100 * time.Second, Softness: 0.1, Latency: slow}.Store,
			Latency:  slow,
		},
		{
			Name:     "a limit that wanders between 300 and 900, 128 threads",
			Workload: Workload{Threads: 128, Duration: 4 * time.Minute},
			Store:    Wandering{Low: 300, High: 900, Every: 10 * time.Second, Stride: 0.2, Latency: usual}.Store,
			Latency:  usual,
		},
	}
}
