package campaign

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/e2e/testbed/internal/plainfiles"
	"github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"
)

// Tally is what one job, or the whole campaign, has come to.
type Tally struct {
	Jobs   int
	Failed int // jobs that did not hold what they promise

	Kills       map[place]int // SIGKILLs of the job, by where it was
	Terms       int           // SIGTERMs that were answered
	Failures    int           // ends by an error that the world around explains
	Processes   int           // of the job
	Restarts    int           // by the job itself
	Checkpoints int           // committed, as processes told
	Mishaps     map[mishap]int
	Troubles    map[trouble]int

	ServerKills           int // no Complete was running
	ServerKillsInComplete int
	ServerLostFiles       int   // the server forgot them in its own Complete, the job named them, they were put back
	ServerLostRows        int64 // in these files
	ServerLostHealed      int   // the same, but the job could publish them again by itself

	Rows     int64 // proven
	Sweeps   int   // beside a running job
	Swept    int   // uploads aborted by the sweep after the end
	Unswept  int   // uploads left because this build has no sweep
	Leaked   int64 // uploads and files that nothing will ever remove
	Lost     int64 // rows
	Doubled  int64
	Corrupt  int64
	Duration time.Duration
}

func newTally() Tally {
	return Tally{Kills: map[place]int{}, Mishaps: map[mishap]int{}, Troubles: map[trouble]int{}}
}

// KillCount returns the number of SIGKILLs of the job.
func (t Tally) KillCount() (n int) {
	for _, k := range t.Kills {
		n += k
	}
	return n
}

// add adds another tally.
func (t *Tally) add(o Tally) {
	addMap(t.Kills, o.Kills)
	addMap(t.Mishaps, o.Mishaps)
	addMap(t.Troubles, o.Troubles)
	for _, n := range []struct {
		to *int
		by int
	}{
		{&t.Jobs, o.Jobs}, {&t.Failed, o.Failed}, {&t.Terms, o.Terms}, {&t.Failures, o.Failures}, {&t.Processes, o.Processes},
		{&t.Restarts, o.Restarts}, {&t.Checkpoints, o.Checkpoints}, {&t.ServerKills, o.ServerKills},
		{&t.ServerKillsInComplete, o.ServerKillsInComplete}, {&t.ServerLostFiles, o.ServerLostFiles},
		{&t.ServerLostHealed, o.ServerLostHealed}, {&t.Sweeps, o.Sweeps}, {&t.Swept, o.Swept}, {&t.Unswept, o.Unswept},
	} {
		*n.to += n.by
	}
	for _, n := range []struct {
		to *int64
		by int64
	}{
		{&t.ServerLostRows, o.ServerLostRows}, {&t.Rows, o.Rows}, {&t.Leaked, o.Leaked}, {&t.Lost, o.Lost},
		{&t.Doubled, o.Doubled}, {&t.Corrupt, o.Corrupt},
	} {
		*n.to += n.by
	}
	t.Duration += o.Duration
}

func addMap[K comparable](to, by map[K]int) {
	for k, n := range by {
		to[k] += n
	}
}

// judge takes what the job's own read-back and the count of the plain files have found, the worse of the two.
func (t *Tally) judge(rows int64, v sluicecmd.VerifyReport, f plainfiles.Tally) {
	repeated := max(f.Repeated, 0)
	t.Lost = max(v.MissingRows.Total, rows-(f.Rows-repeated))
	t.Doubled = max(v.DuplicateRows.Total, repeated)
	t.Corrupt = max(v.CorruptRows.Total, f.Odd)
}

// Clean says whether nothing is wrong.
func (t Tally) Clean() bool {
	return t.Failed == 0 && t.Lost == 0 && t.Doubled == 0 && t.Corrupt == 0 && t.Leaked == 0
}

// line is one job in one line.
func (t Tally) line() string {
	parts := []string{fmt.Sprintf("%d kills", t.KillCount())}
	if t.KillCount() > 0 {
		parts[0] += " (" + counts(t.Kills, places) + ")"
	}
	say := func(n int, text string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, text))
		}
	}
	say(t.Processes, "processes")
	say(t.Checkpoints, "checkpoints")
	say(t.ServerKills+t.ServerKillsInComplete, "server kills")
	say(t.ServerLostFiles, "files lost by the server and put back")
	parts = append(parts, t.verdict())
	return strings.Join(parts, ", ")
}

func (t Tally) verdict() string {
	return fmt.Sprintf("%d rows proven, lost %d, doubled %d, corrupt %d, server-lost %d, leaked %d, %.1f s",
		t.Rows, t.Lost, t.Doubled, t.Corrupt, t.ServerLostRows, t.Leaked, t.Duration.Seconds())
}

// String is the whole campaign, a line for each thing.
func (t Tally) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-22s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("jobs", "%d, %d failed", t.Jobs, t.Failed)
	line("kills of the job", "%d: %s", t.KillCount(), counts(t.Kills, places))
	line("kills of the server", "%d: inside its Complete %d, elsewhere %d", t.ServerKills+t.ServerKillsInComplete, t.ServerKillsInComplete, t.ServerKills)
	line("SIGTERMs answered", "%d, each with a true statement", t.Terms)
	line("processes", "%d, %d ended by an error that the world explains, %d restarts within a process", t.Processes, t.Failures, t.Restarts)
	line("checkpoints", "%d", t.Checkpoints)
	line("troubles", "%s", counts(t.Troubles, slices.Sorted(maps.Keys(t.Troubles))))
	line("between processes", "%s", counts(t.Mishaps, slices.Sorted(maps.Keys(t.Mishaps))))
	line("server-lost", "%d files with %d rows, each named by the job as missing, put back and published; %d more published again without help",
		t.ServerLostFiles, t.ServerLostRows, t.ServerLostHealed)
	line("sweeps", "%d beside a running job; %d uploads swept at the end, %d left because this build has no sweep", t.Sweeps, t.Swept, t.Unswept)
	line("rows", "%s", t.verdict())
	return b.String()
}

func counts[K ~string](m map[K]int, order []K) string {
	var parts []string
	for _, k := range order {
		if m[k] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", k, m[k]))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
