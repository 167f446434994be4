package campaign

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"
)

// jobLog is what the output of one process has told so far.
type jobLog struct {
	began  time.Time
	starts []jobStart // the job runs; more than one when the process restarted it itself

	storing    map[int64]time.Time // checkpoints begun and not durable
	committing map[int64]time.Time // durable and not committed
	begun      int64               // the greatest ids
	durable    int64
	commits    int // checkpoints committed
	committed  int64

	startLength, storeLength, commitLength time.Duration // the last ones seen, 0 for none

	problems  []string // one error each: of warnings, of errors, of the last words
	panicked  bool
	statement *statement
}

// jobStart is what a job says when it runs.
type jobStart struct {
	restored, epoch, rows int64
	durable, begun        int64 // what the log had told before
}

// statement is the truth that a process states at its end.
type statement struct {
	state                      string
	rows, files, bytes, staged int64
}

func newJobLog(now time.Time) *jobLog {
	return &jobLog{began: now, storing: map[int64]time.Time{}, committing: map[int64]time.Time{}}
}

// running says whether the job has started to move rows.
func (g *jobLog) running() bool { return len(g.starts) > 0 }

// line takes the next line of the output.
func (g *jobLog) line(line string, now time.Time) {
	if e, ok := sluicecmd.ParseEvent(line); ok {
		g.event(e, now)
		return
	}
	switch msg := sluicecmd.Attr(line, "msg"); {
	case msg == "job started":
		g.started(line, now)
	case msg == "checkpoint failed":
		id, _ := strconv.ParseInt(sluicecmd.Attr(line, "id"), 10, 64)
		delete(g.storing, id)
		delete(g.committing, id)
		g.problem(sluicecmd.Attr(line, "error"))
	case msg != "":
		if level := sluicecmd.Attr(line, "level"); level == "WARN" || level == "ERROR" {
			g.problem(msg + ": " + sluicecmd.Attr(line, "error"))
		}
	default:
		g.words(line)
	}
}

func (g *jobLog) event(e sluicecmd.Event, now time.Time) {
	switch e.Kind {
	case sluicecmd.Begun:
		g.storing[e.ID] = now
		g.begun = max(g.begun, e.ID)
	case sluicecmd.Durable:
		if begun, ok := g.storing[e.ID]; ok {
			g.storeLength = now.Sub(begun)
		}
		delete(g.storing, e.ID)
		g.committing[e.ID] = now
		g.durable = max(g.durable, e.ID)
	case sluicecmd.Committed:
		if durable, ok := g.committing[e.ID]; ok {
			g.commitLength = now.Sub(durable)
			g.commits++
		}
		delete(g.committing, e.ID)
		g.committed = max(g.committed, e.ID)
	}
}

func (g *jobLog) started(line string, now time.Time) {
	s := jobStart{durable: g.durable, begun: g.begun}
	for key, to := range map[string]*int64{"restored_checkpoint": &s.restored, "epoch": &s.epoch, "rows_before": &s.rows} {
		*to, _ = strconv.ParseInt(sluicecmd.Attr(line, key), 10, 64)
	}
	if !g.running() {
		g.startLength = now.Sub(g.began)
	}
	g.starts = append(g.starts, s)
	clear(g.storing)
	clear(g.committing)
}

// maxProblems bounds the memory of a job that complains without end.
const maxProblems = 5000

// problem notes an error. Joined ones are a line each.
func (g *jobLog) problem(text string) {
	for one := range strings.SplitSeq(text, "\n") {
		if one != "" && len(g.problems) < maxProblems {
			g.problems = append(g.problems, one)
		}
	}
}

var statementLine = regexp.MustCompile(`^(finished|stopped|failed): (\d+) rows in (\d+) files are published \((\d+) bytes\); (\d+) rows are durable`)

// words takes a line that is no record of the log.
func (g *jobLog) words(line string) {
	if text, ok := strings.CutPrefix(line, "sluice: "); ok {
		g.problem(text)
		return
	}
	if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "WARNING: DATA RACE") {
		g.panicked = true
		g.problem(line)
	}
	m := statementLine.FindStringSubmatch(line)
	if m == nil {
		return
	}
	g.statement = &statement{state: m[1]}
	for i, to := range []*int64{&g.statement.rows, &g.statement.files, &g.statement.bytes, &g.statement.staged} {
		*to, _ = strconv.ParseInt(m[i+2], 10, 64)
	}
}

// said says whether one error has all the parts.
func (g *jobLog) said(parts ...string) bool {
	for _, p := range g.problems {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(p, part)
		}
		if all {
			return true
		}
	}
	return false
}

// place says where the process is by its log.
func (g *jobLog) place() place {
	switch {
	case !g.running():
		return starting
	case len(g.committing) > 0:
		return committing
	case len(g.storing) > 0:
		return storing
	}
	return between
}
