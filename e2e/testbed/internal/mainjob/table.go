package mainjob

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/testbed/internal/accesslog"
	"github.com/sluice-go/sluice/e2e/testbed/internal/figures"
	"github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"
)

// phase is what is known about writing or about reading back.
type phase struct {
	name     string
	duration time.Duration
	bytes    int64
	client   *sluicecmd.Totals // nil: not known, a killed process reports nothing
	server   *accesslog.Counts
	// operations are the client's counts by operation, where its report has them.
	operations map[string]sluicecmd.Totals
}

const unknown = "n/a"

// cells returns a row of the table.
func (p phase) cells(label string, client func(sluicecmd.Totals) string, server func(accesslog.Counts) string) [3]string {
	row := [3]string{label, unknown, unknown}
	if p.client != nil {
		row[1] = client(*p.client)
	}
	if p.server != nil {
		row[2] = server(*p.server)
	}
	return row
}

// writeTable prints the pull request's table. The server does not know which
// requests belong to one call; it counts an answer that no client repeats a
// request for as the end of a call, and every other answer as a retried attempt.
func writeTable(w io.Writer, write, read phase) error {
	throttled := func(p phase, label string) [3]string {
		return p.cells(label,
			func(t sluicecmd.Totals) string { return figures.Grouped(t.Throttles) },
			func(c accesslog.Counts) string { return figures.Grouped(c.Throttled()) })
	}
	perSecond := func(p phase, label string, client func(sluicecmd.Totals) int64, server func(accesslog.Counts) int64) [3]string {
		return p.cells(label,
			func(t sluicecmd.Totals) string { return rate(client(t), p.duration) },
			func(c accesslog.Counts) string { return rate(server(c), p.duration) })
	}
	calls := func(t sluicecmd.Totals) int64 { return t.Calls }
	rows := [][3]string{
		{"", "client", "server"},
		{"write duration", duration(write.duration), ""},
		{"write throughput", throughput(write), ""},
		write.cells("S3 calls (a repeated call counts once)",
			func(t sluicecmd.Totals) string { return figures.Grouped(t.Calls) },
			func(c accesslog.Counts) string { return figures.Grouped(c.Final()) }),
		throttled(write, "throttled responses"),
		write.cells("retried attempts",
			func(t sluicecmd.Totals) string { return figures.Grouped(t.Retries) },
			func(c accesslog.Counts) string { return figures.Grouped(c.Requests() - c.Final()) }),
		write.cells("HTTP attempts",
			func(t sluicecmd.Totals) string { return figures.Grouped(t.Attempts) },
			func(c accesslog.Counts) string { return figures.Grouped(c.Requests()) }),
		write.cells("throttled share of attempts",
			func(t sluicecmd.Totals) string { return share(t.Throttles, t.Attempts) },
			func(c accesslog.Counts) string { return share(c.Throttled(), c.Requests()) }),
		perSecond(write, "completed calls/s", calls, accesslog.Counts.Final),
		perSecond(write, "rejected requests/s", func(t sluicecmd.Totals) int64 { return t.Throttles }, accesslog.Counts.Throttled),
		{"read-back duration", duration(read.duration), ""},
		{"read-back throughput", throughput(read), ""},
		throttled(read, "read-back throttled responses"),
		perSecond(read, "read-back completed calls/s", calls, accesslog.Counts.Final),
	}
	_, err := io.WriteString(w, render(rows))
	return err
}

// render aligns rows as a Markdown table; the first row is its head.
func render(rows [][3]string) string {
	var width [3]int
	for _, r := range rows {
		for i, c := range r {
			width[i] = max(width[i], len(c))
		}
	}
	var b strings.Builder
	line := func(r [3]string) {
		fmt.Fprintf(&b, "| %-*s | %*s | %*s |\n", width[0], r[0], width[1], r[1], width[2], r[2])
	}
	for i, r := range rows {
		line(r)
		if i == 0 {
			fmt.Fprintf(&b, "|%s|%s:|%s:|\n", strings.Repeat("-", width[0]+2), strings.Repeat("-", width[1]+1), strings.Repeat("-", width[2]+1))
		}
	}
	return b.String()
}

// agreement says in one line whether client and server counted the same.
func (p phase) agreement() string {
	if p.client == nil || p.server == nil {
		return fmt.Sprintf("%s: counts of the client and the server are not compared: killed processes report nothing", p.name)
	}
	c, s := *p.client, *p.server
	switch extra := c.Attempts - s.Requests(); {
	case extra == 0 && c.Throttles == s.Throttled():
		return fmt.Sprintf("%s: client and server agree: %s HTTP attempts, %s of them throttled", p.name, figures.Grouped(c.Attempts), figures.Grouped(c.Throttles))
	case extra > 0 && c.Throttles == s.Throttled():
		return fmt.Sprintf("%s: the client counts %s HTTP attempts more than the server answered: cut or cancelled before an answer", p.name, figures.Grouped(extra))
	default:
		return fmt.Sprintf("%s: client and server DISAGREE: %s against %s HTTP attempts, %s against %s throttled%s", p.name,
			figures.Grouped(c.Attempts), figures.Grouped(s.Requests()), figures.Grouped(c.Throttles), figures.Grouped(s.Throttled()), p.differences())
	}
}

// differences lists the operations that client and server counted differently.
func (p phase) differences() string {
	if p.operations == nil {
		return ""
	}
	server := p.server.Operations()
	names := slices.Collect(maps.Keys(server))
	for name := range p.operations {
		if _, both := server[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		if c, s := p.operations[name].Attempts, server[name]; c != s {
			fmt.Fprintf(&b, "; %s: %s against %s", name, figures.Grouped(c), figures.Grouped(s))
		}
	}
	return b.String()
}

func share(part, whole int64) string {
	if whole == 0 {
		return "0.0 %"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

func rate(n int64, d time.Duration) string {
	if d <= 0 {
		return unknown
	}
	return fmt.Sprintf("%.1f", float64(n)/d.Seconds())
}

// throughput is in megabytes of 10^6 bytes, as in the pull request.
func throughput(p phase) string {
	if p.duration <= 0 {
		return unknown
	}
	return fmt.Sprintf("%.0f MB/s", float64(p.bytes)/1e6/p.duration.Seconds())
}

func duration(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	d = d.Round(time.Second)
	return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
}

func mebibytes(s config.MemorySize) string { return fmt.Sprintf("%.0f MiB", float64(s)/(1<<20)) }
