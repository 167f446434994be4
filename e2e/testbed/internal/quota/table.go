package quota

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/testbed/internal/figures"
	"github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"
)

// Rows of the pull request's table, in its order and words.
const (
	rowWriteTime     = "write duration"
	rowWriteRate     = "write throughput"
	rowCalls         = "S3 calls (a repeated call counts once)"
	rowThrottled     = "throttled responses"
	rowRetried       = "retried attempts"
	rowAttempts      = "HTTP attempts"
	rowShare         = "throttled share of attempts"
	rowCompleted     = "completed calls/s"
	rowRejected      = "rejected requests/s"
	rowReadTime      = "read-back duration"
	rowReadRate      = "read-back throughput"
	rowReadThrottled = "read-back throttled responses"
	rowReadCompleted = "read-back completed calls/s"
)

// unknown stands where nothing was measured.
const unknown = "n/a"

// Report renders everything that a person reads, as Markdown: for each quota
// which jobs came to their end, the pull request's table, and whether client and
// quota counted the same.
func Report(o Options, results []Result) string {
	var b strings.Builder
	for _, lane := range []Lane{SlowDown, Close} {
		of := inLane(results, lane)
		if len(of) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\nQuota: %g requests/s, %d at once on top; parts of 5 MiB; %s a call besides the store's own work; restart strategy none.\n\n",
			lane.title(), o.Rate, o.Burst, config.FormatDuration(o.CallTime))
		b.WriteString(render(outcomes(of)))
		for _, p := range pairs(of) {
			if p.detail() {
				fmt.Fprintf(&b, "\n%s%s:\n\n", p.name, p.size())
				b.WriteString(render(p.table()))
			}
		}
		b.WriteByte('\n')
		for _, r := range of {
			fmt.Fprintf(&b, "- %s\n", r.agreement())
		}
		for _, note := range notes(o, of) {
			fmt.Fprintf(&b, "- note: %s\n", note)
		}
	}
	b.WriteByte('\n')
	return b.String()
}

// outcomes is the table of who came to the end.
func outcomes(results []Result) [][]string {
	t := [][]string{{"job", "mode", "outcome", "after", "S3 calls", "HTTP attempts", "refused share", "completed calls/s", "MB/s", "pull request"}}
	for _, p := range pairs(results) {
		for _, r := range []*Result{p.standard, p.adaptive} {
			if r == nil {
				continue
			}
			t = append(t, []string{
				p.name, r.Mode, r.outcome(), seconds(r.Write.Seconds), r.calls(r.Write), r.attempts(r.Write),
				percent(r.Write.refusedShare()), fmt.Sprintf("%.1f", r.Write.perSecond(r.Write.Quota.final())), r.megabytes(r.Write), r.published(),
			})
		}
	}
	return t
}

func (r Result) outcome() string {
	switch {
	case r.died():
		return fmt.Sprintf("died, exit code %d: %s", r.ExitCode, short(r.LastError))
	case r.Proven:
		return "PROVEN"
	default:
		return "NOT PROVEN: " + short(r.Why)
	}
}

// published is what the pull request saw of the same job.
func (r Result) published() string {
	after, died := publishedDeaths[r.pair()]
	switch {
	case r.Mode != Standard:
		return ""
	case died:
		return "died after " + after
	default:
		return ""
	}
}

// table is the pull request's table of a pair, with the pull request's own
// columns where it has this pair.
func (p pair) table() [][]string {
	head := []string{"", "standard", "adaptive"}
	quoted := p.writers == 16 && p.retries == 10
	if quoted {
		head = append(head, "pull request: standard", "adaptive")
	}
	t := [][]string{head}
	add := func(name string, cell func(Result) string) {
		row := []string{name}
		for _, r := range []*Result{p.standard, p.adaptive} {
			if r == nil {
				row = append(row, unknown)
			} else {
				row = append(row, cell(*r))
			}
		}
		if quoted {
			row = append(row, publishedTable[name][0], publishedTable[name][1])
		}
		t = append(t, row)
	}
	read := func(cell func(Result, Phase) string) func(Result) string {
		return func(r Result) string {
			if r.Read == nil {
				return unknown
			}
			return cell(r, *r.Read)
		}
	}
	add(rowWriteTime, func(r Result) string {
		if r.died() {
			return "died after " + seconds(r.Write.Seconds)
		}
		return seconds(r.Write.Seconds)
	})
	add(rowWriteRate, func(r Result) string { return r.megabytes(r.Write) + " MB/s" })
	add(rowCalls, func(r Result) string { return r.calls(r.Write) })
	if p.lane() == Close {
		add("connections closed by the quota", func(r Result) string { return figures.Grouped(r.Write.Quota.Refused) })
	}
	add(rowThrottled, func(r Result) string { return r.client(r.Write, func(t sluicecmd.Totals) int64 { return t.Throttles }) })
	add(rowRetried, func(r Result) string { return r.client(r.Write, func(t sluicecmd.Totals) int64 { return t.Retries }) })
	add(rowAttempts, func(r Result) string { return r.attempts(r.Write) })
	add(rowShare, func(r Result) string { return percent(r.Write.refusedShare()) })
	add(rowCompleted, func(r Result) string { return fmt.Sprintf("%.1f", r.Write.perSecond(r.Write.Quota.final())) })
	add(rowRejected, func(r Result) string { return fmt.Sprintf("%.1f", r.Write.perSecond(r.Write.Quota.Refused)) })
	add(rowReadTime, read(func(_ Result, p Phase) string { return seconds(p.Seconds) }))
	add(rowReadRate, read(func(r Result, p Phase) string { return r.megabytes(p) + " MB/s" }))
	add(rowReadThrottled, read(func(_ Result, p Phase) string { return figures.Grouped(p.Quota.Refused) }))
	add(rowReadCompleted, read(func(_ Result, p Phase) string { return fmt.Sprintf("%.1f", p.perSecond(p.Quota.final())) }))
	return t
}

// size says what the jobs of the pair wrote.
func (p pair) size() string {
	r := p.adaptive
	if r == nil {
		r = p.standard
	}
	return fmt.Sprintf(", %s in files of %s", r.Size, r.File)
}

// client renders one of the client's own counts.
func (r Result) client(p Phase, count func(sluicecmd.Totals) int64) string {
	if p.Client == nil {
		return unknown
	}
	return figures.Grouped(count(*p.Client))
}

func (r Result) attempts(p Phase) string {
	return r.client(p, func(t sluicecmd.Totals) int64 { return t.Attempts })
}

func (r Result) calls(p Phase) string {
	return r.client(p, func(t sluicecmd.Totals) int64 { return t.Calls })
}

// megabytes are 10^6 bytes, as in the pull request. Of a job that died nothing is
// published, and so nothing is written.
func (r Result) megabytes(p Phase) string {
	if p.Bytes == 0 {
		return unknown
	}
	return fmt.Sprintf("%.1f", p.perSecond(p.Bytes)/1e6)
}

// agreement says in one line whether client and quota counted the same. A client
// is not told that it was refused when the connection is closed, and Go's
// net/http by itself repeats a GET or HEAD on a connection that was in use
// before, so in that lane the quota may have seen more.
func (r Result) agreement() string {
	say := func(phase string, p Phase) string {
		if p.Client == nil {
			return phase + ": the process left no counts"
		}
		c, q := p.Client, p.Quota
		switch {
		case r.Lane == SlowDown && c.Attempts == q.Requests && c.Throttles == q.Refused:
			return fmt.Sprintf("%s: client and quota agree, %s attempts, %s refused", phase, figures.Grouped(c.Attempts), figures.Grouped(c.Throttles))
		case r.Lane == Close:
			return fmt.Sprintf("%s: the client counts %s attempts, %s of them retries; the quota %s, %s closed, %s failed behind it", phase,
				figures.Grouped(c.Attempts), figures.Grouped(c.Retries), figures.Grouped(q.Requests), figures.Grouped(q.Refused), figures.Grouped(q.Failed))
		default:
			return fmt.Sprintf("%s: the client counts %s attempts, %s throttled; the quota %s, %s refused, %s given up by the client, %s failed behind it", phase,
				figures.Grouped(c.Attempts), figures.Grouped(c.Throttles), figures.Grouped(q.Requests), figures.Grouped(q.Refused), figures.Grouped(q.Aborted), figures.Grouped(q.Failed))
		}
	}
	text := r.Name() + ": " + say("write", r.Write)
	if r.Read != nil {
		text += "; " + say("read-back", *r.Read)
	}
	return text
}

// render aligns rows as a Markdown table. The first row is its head; the first
// column and columns of words stand left.
func render(rows [][]string) string {
	width := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r {
			width[i] = max(width[i], len([]rune(c)))
		}
	}
	var b strings.Builder
	for n, r := range rows {
		for i, c := range r {
			fmt.Fprintf(&b, "| %s%s ", c, strings.Repeat(" ", width[i]-len([]rune(c))))
		}
		b.WriteString("|\n")
		if n == 0 {
			for _, w := range width {
				fmt.Fprintf(&b, "|%s", strings.Repeat("-", w+2))
			}
			b.WriteString("|\n")
		}
	}
	return b.String()
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

func seconds(s float64) string {
	if s < 60 {
		return fmt.Sprintf("%.1f s", s)
	}
	d := time.Duration(s * float64(time.Second)).Round(time.Second)
	return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
}
