package lab

import "time"

// Rates is what a chart of rates over time shows: one scenario, several policies.
type Rates struct {
	File   string   `json:"file"`  // of the chart, without its ending
	Title  string   `json:"title"` // says what happens
	Bin    float64  `json:"bin"`   // seconds that each value is the mean of
	Series []Series `json:"series"`
}

// Series is the rates of one policy, per second.
type Series struct {
	Policy  string    `json:"policy"`
	OK      []float64 `json:"ok"`      // calls done
	Refused []float64 `json:"refused"` // attempts refused
	Allowed []float64 `json:"allowed"` // what the limiter of the first client let through; 0 = all
}

// chart is a scenario that is worth a picture.
type chart struct {
	file, title string
	scenario    Scenario
	from, to    time.Duration
	bin         time.Duration
	specimens   []string
}

// The policies of the charts.
const (
	showStandard3  = "standard, 3 retries"
	showStandard10 = "standard, 10 retries"
	showSDK        = "Go SDK adaptive, 3 retries"
	showGate3      = "gate, 3 retries"
	showGate10     = "gate, 10 retries"
)

func charts() []chart {
	three, ten := []string{showStandard3, showSDK, showGate3}, []string{showStandard10, showSDK, showGate10}
	steady := FreshOne503()
	steady.Workload.Calls, steady.Workload.Duration = 0, 20*time.Second
	return []chart{
		{"fresh", "A fresh client, 32 threads, one 503 at 0.3 s", steady, 0, 20 * time.Second, time.Second, three},
		{"wall", "A wall of 400 calls/s, 96 threads", WallRun(96, time.Minute), 0, time.Minute, time.Second, ten},
		{"steps", "The limit falls from 400/s to 100/s after a minute, and comes back", Steps(), 0, 3 * time.Minute, time.Second, ten},
		{"outage", "An outage of 10 s, 32 threads", OutageRun(10*time.Second, 32), 0, 90 * time.Second, time.Second, ten},
		{"drip", "One 503 every 3 s at 80 calls/s, half an hour", DripRun(80, 3*time.Second), 0, 30 * time.Minute, 15 * time.Second, three},
		{"bursts", "Bursts of 1,000 calls after 30 s of rest, one 503 in the first second of each", Bursts(time.Second), 0, 3 * time.Minute, time.Second, three},
	}
}

// Charts simulates what the charts show, with one seed.
func Charts(seed uint64) []Rates {
	var all []Rates
	for _, c := range charts() {
		rates := Rates{File: c.file, Title: c.title, Bin: c.bin.Seconds()}
		for _, name := range c.specimens {
			for _, p := range Specimens() {
				if p.Name == name {
					r := Simulate(c.scenario, p.Policy(c.scenario), p.Retries, seed)
					rates.Series = append(rates.Series, c.series(name, r))
				}
			}
		}
		all = append(all, rates)
	}
	return all
}

// series bins the seconds of a run.
func (c chart) series(policy string, r Result) Series {
	s := Series{Policy: policy}
	each := int(c.bin / time.Second)
	for from := int(c.from / time.Second); from < int(c.to/time.Second); from += each {
		var ok, refused, allowed float64
		for i := from; i < from+each && i < len(r.Seconds); i++ {
			ok += float64(r.Seconds[i].OK) / float64(each)
			refused += float64(r.Seconds[i].Throttled) / float64(each)
			allowed += r.Seconds[i].Rate / float64(each)
		}
		s.OK, s.Refused, s.Allowed = append(s.OK, ok), append(s.Refused, refused), append(s.Allowed, allowed)
	}
	return s
}
