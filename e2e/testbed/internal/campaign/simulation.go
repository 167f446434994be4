package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Simulation says which seeds of the simulation to run. It is a Go test, so the go command runs it.
type Simulation struct {
	Seeds   int           // how many, from 1 or from Seed; 0: nothing to do
	Seed    uint64        // the first one; 0: 1
	Dir     string        // of the test's package
	Timeout time.Duration // of everything
	Log     io.Writer     // the test's own output
}

// SimulationResult is what the simulation says in its last line.
type SimulationResult struct {
	Seeds, Failed, Lost, Doubled, Corrupt int64
}

// killDelay is how long the go command may take to end its test after an interrupt.
const killDelay = 5 * time.Second

// RunSimulation runs the seeds. The error says that a seed has failed, or that the simulation has not come to its end; the result
// holds what is known with every error.
func RunSimulation(ctx context.Context, s Simulation) (SimulationResult, error) {
	if s.Seeds == 0 {
		return SimulationResult{}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.Timeout, fmt.Errorf("the simulation was not done within %s", s.Timeout))
	defer cancel()
	// Without a package's name: the go command passes the output on while it comes.
	args := []string{"test", "-run", "TestSimulation$", "-count=1", "-timeout", s.Timeout.String(), "-seeds", strconv.Itoa(s.Seeds)}
	if s.Seed > 0 {
		args = append(args, "-seed", strconv.FormatUint(s.Seed, 10))
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = s.Dir
	cmd.Cancel = func() error { return interrupt(cmd.Process) }
	cmd.WaitDelay = killDelay
	out := &lines{to: s.Log}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	r, found := out.result()
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case err != nil:
		return r, fmt.Errorf("simulation: %w", err)
	case !found:
		return r, errors.New("simulation: it has ended without its last line")
	case r.Failed > 0 || r.Seeds < int64(s.Seeds):
		return r, fmt.Errorf("simulation: %d of %d seeds were run, %d failed", r.Seeds, s.Seeds, r.Failed)
	}
	return r, nil
}

var resultLine = regexp.MustCompile(`^simulation: seeds=(\d+) failed=(\d+) lost=(\d+) doubled=(\d+) corrupt=(\d+)\b`)

// lines passes output on and remembers the result in it.
type lines struct {
	to io.Writer

	mu   sync.Mutex
	rest string // of the line that has not ended
	last []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest += string(p)
	for {
		line, rest, ok := strings.Cut(l.rest, "\n")
		if !ok {
			break
		}
		l.rest = rest
		if m := resultLine.FindStringSubmatch(line); m != nil {
			l.last = m
		}
	}
	return l.to.Write(p)
}

// result returns what the last result line says.
func (l *lines) result() (r SimulationResult, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		return r, false
	}
	for i, to := range []*int64{&r.Seeds, &r.Failed, &r.Lost, &r.Doubled, &r.Corrupt} {
		*to, _ = strconv.ParseInt(l.last[i+1], 10, 64) // digits
	}
	return r, true
}
