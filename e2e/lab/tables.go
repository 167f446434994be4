package lab

import (
	"fmt"
	"strings"
	"time"
)

// Specimen is a policy of the tables.
type Specimen struct {
	Name    string
	Retries int
	Policy  func(Scenario) NewPolicy
}

// Specimens are the policies of the tables, in their order: standard retries, the adaptive modes of the SDKs with the three retries that they
// have by default, and the gate.
func Specimens() []Specimen {
	always := func(p NewPolicy) func(Scenario) NewPolicy { return func(Scenario) NewPolicy { return p } }
	gated := func(s Scenario) NewPolicy { return Gate(GateDefaults(), s.Scope) }
	return []Specimen{
		{"standard, 3 retries", 3, always(Standard)},
		{"standard, 10 retries", 10, always(Standard)},
		{"Go SDK adaptive, 3 retries", 3, always(SDKGo)},
		{"Java SDK <= 2.51 adaptive, 3 retries", 3, always(JavaOld)},
		{"Java SDK >= 2.52 adaptive, 3 retries", 3, always(JavaNew)},
		{"gate, 3 retries", 3, gated},
		{"gate, 10 retries", 10, gated},
	}
}

// column is a figure of a table.
type column struct {
	name   string
	format string
	value  func(Result) float64
}

// columns are the figures that say something about a scenario.
func columns(s Scenario) []column {
	w := s.Workload
	var all []column
	add := func(name, format string, value func(Result) float64) { all = append(all, column{name, format, value}) }
	seconds := func(f func(Result) time.Duration) func(Result) float64 {
		return func(r Result) float64 { return f(r).Seconds() }
	}
	switch {
	case len(w.Probes) > 0:
		add("the one call, ms", "%.0f", func(r Result) float64 { return 1000 * r.Probes[0].Seconds() })
	case w.Bursts > 1:
		add("mean burst, s", "%.2f", seconds(Result.MeanBurst))
		add("worst burst, s", "%.2f", seconds(Result.WorstBurst))
	case w.Duration == 0:
		add("all calls done, s", "%.2f", end)
	default:
		add("calls/s done", "%.1f", Result.Goodput)
		best := s.Best
		if best == 0 {
			best = Simulate(s.Undisturbed(), Standard, 0, 1).Goodput()
		}
		add("of the best, %", "%.1f", func(r Result) float64 { return 100 * r.Goodput() / best })
		for _, part := range s.Parts {
			add(part.Name+", of the best, %", "%.1f", func(r Result) float64 {
				return 100 * r.Between(part.From, part.To) / (part.To - part.From).Seconds() / best
			})
		}
	}
	add("503s, % of attempts", "%.1f", refused)
	add("failed, per 10k calls", "%.1f", failed)
	if w.Tries > 1 {
		add("attempts refused", "%.0f", func(r Result) float64 { return float64(r.Throttled) })
	}
	if len(w.Probes) == 0 && w.Bursts <= 1 {
		add("p99, s", "%.2f", seconds(func(r Result) time.Duration { return r.Percentile(99) }))
	}
	add("slowest, s", "%.1f", slowest)
	for i := range w.Shares {
		add(fmt.Sprintf("p99 of key %d, s", i), "%.2f", seconds(func(r Result) time.Duration { return Percentile(r.ByKey[i], 99) }))
	}
	if w.Clients > 1 && len(w.Probes) == 0 && w.Calls == 0 && w.Latecomer == 0 {
		add("Jain", "%.2f", Result.Jain)
	}
	return all
}

// cell is a figure over several seeds: the median, and the range where there is one.
func cell(format string, rs []Result, value func(Result) float64) string {
	m, low, high := spread(rs, value)
	text, from, to := fmt.Sprintf(format, m), fmt.Sprintf(format, low), fmt.Sprintf(format, high)
	if from == to {
		return text
	}
	return fmt.Sprintf("%s (%s-%s)", text, from, to)
}

// TableMarkdown is a scenario with all policies side by side: median (lowest-highest) of the results of each specimen.
func TableMarkdown(s Scenario, specimens []Specimen, results [][]Result) string {
	var b strings.Builder
	cols := columns(s)
	fmt.Fprintf(&b, "### %s\n\n| |", strings.ToUpper(s.Name[:1])+s.Name[1:])
	for _, c := range cols {
		fmt.Fprintf(&b, " %s |", c.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(cols)) + "\n")
	for i, p := range specimens {
		fmt.Fprintf(&b, "| %s |", p.Name)
		for _, c := range cols {
			fmt.Fprintf(&b, " %s |", cell(c.format, results[i], c.value))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Chapter is a file of tables.
type Chapter struct {
	File, Title, Lead string
	Scenarios         []Scenario
}

// Chapters are the scenarios of the catalogue, by what they are about. Each is in the first chapter that one of whose words its name has.
func Chapters() []Chapter {
	words := []struct {
		Chapter
		words []string
	}{
		{Chapter{File: "relatives.md", Title: "Relatives of the held-out stores", Lead: "Limits on calls at once, on two windows, with no sharp edge, or that wander. The gate's constants were chosen with these in view, as with all stores but the held-out ones, which are of the same kinds with other figures."}, []string{"at once, slower", "at once, four", "eight seconds", "tides", "wanders"}},
		{Chapter{File: "drip.md", Title: "A steady drip", Lead: "Half an hour of traffic in which a single 503 comes every few seconds, whatever the client does."}, []string{"one 503 every"}},
		{Chapter{File: "change.md", Title: "Limits that change, and outages", Lead: "The store's limit falls, rises, grows under load, or is gone for a while."}, []string{"->", "outage", "for ever", "doubles"}},
		{Chapter{File: "clients.md", Title: "Many clients at one store", Lead: "Each client is a process with a limiter of its own; none knows of the others."}, []string{"clients x", "a fourth client"}},
		{Chapter{File: "bursts.md", Title: "Bursts", Lead: "Work that comes in bursts, with rest between them."}, []string{"10 bursts"}},
		{Chapter{File: "first.md", Title: "The first 503s", Lead: "What the first 503s that a client sees cost it."}, []string{"no 503s", "fresh client", "at once", "16 throttled", "16 calls"}},
		{Chapter{File: "wall.md", Title: "The wall", Lead: "A store that lets so many calls through in a second and refuses the rest."}, []string{"wall", "token bucket"}},
		{Chapter{File: "others.md", Title: "Quotas, prefixes, noise, timeouts", Lead: "Stores that limit something else, or refuse for other reasons."}, []string{""}},
	}
	chapters := make([]Chapter, len(words))
	for i, c := range words {
		chapters[i] = c.Chapter
	}
	for _, s := range Catalogue() {
		for i, c := range words {
			if containsAny(s.Name, c.words) {
				chapters[i].Scenarios = append(chapters[i].Scenarios, s)
				break
			}
		}
	}
	return chapters
}

func containsAny(s string, words []string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
