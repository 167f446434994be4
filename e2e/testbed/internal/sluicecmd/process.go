package sluicecmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sluice-go/sluice/config"
)

const (
	// stopGrace is what a job gets for its last checkpoint after SIGTERM.
	stopGrace = 20 * time.Second
	// sampleInterval is how often the peak memory of a process is read.
	sampleInterval = 50 * time.Millisecond
	// maxLine bounds a line of a child's log; a longer one is passed on in pieces.
	maxLine = 64 << 10
)

// ErrKilled is the end of a process that was killed on purpose.
var ErrKilled = errors.New("killed")

// Process is one run of the sluice command.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is reaped and its output is read
	err  error         // of Wait; read after done
	peak atomic.Int64  // bytes, 0 where the system does not tell

	shot atomic.Bool // killed on purpose
}

// Start starts the command. Its output, both streams, goes to out line by
// line; onLine, when not nil, sees each line first, on a goroutine of the child.
func Start(path string, args []string, out io.Writer, onLine func(string)) (*Process, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &Process{cmd: exec.Command(path, args...), done: make(chan struct{})}
	c.cmd.Env = childEnv(os.Environ())
	c.cmd.Stdout, c.cmd.Stderr = w, w
	c.cmd.SysProcAttr = childAttr()
	if err := c.cmd.Start(); err != nil {
		return nil, errors.Join(err, r.Close(), w.Close())
	}
	_ = w.Close() // the child has its own
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer r.Close()
		passLines(r, out, onLine)
	}()
	stopSampling := c.sample()
	go func() {
		defer close(c.done)
		c.err = c.cmd.Wait()
		stopSampling()
		<-read
	}()
	return c, nil
}

// childEnv leaves out what would change the job behind the job file's back:
// options from the environment and the user's AWS settings.
func childEnv(environ []string) []string {
	var env []string
	for _, e := range environ {
		if !strings.HasPrefix(e, "SLUICE_") && !strings.HasPrefix(e, "AWS_") {
			env = append(env, e)
		}
	}
	return env
}

func passLines(r io.Reader, out io.Writer, onLine func(string)) {
	br := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := br.ReadSlice('\n')
		if len(line) > 0 {
			if onLine != nil {
				onLine(strings.TrimSuffix(string(line), "\n"))
			}
			_, _ = out.Write(line) // progress for a person; the verdict does not hang on it
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// sample reads the peak memory of the process until the returned function is
// called, which waits for the last reading.
func (c *Process) sample() (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(sampleInterval)
		defer tick.Stop()
		for {
			if peak, ok := peakRSS(c.cmd.Process.Pid); ok {
				c.peak.Store(max(c.peak.Load(), int64(peak)))
			}
			select {
			case <-tick.C:
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-ended }
}

// Done returns a channel that is closed when the process is gone and all its
// output has been passed on.
func (c *Process) Done() <-chan struct{} { return c.done }

// Stop asks the process to end, as an interrupt does.
func (c *Process) Stop() { _ = c.cmd.Process.Signal(syscall.SIGTERM) } // an error means that it has ended

// ExitCode returns the exit code after Done, -1 for a process that a signal ended.
func (c *Process) ExitCode() int { return c.cmd.ProcessState.ExitCode() }

// Shot says whether Kill was called.
func (c *Process) Shot() bool { return c.shot.Load() }

// PeakMemory returns the greatest resident size seen, 0 when not known.
func (c *Process) PeakMemory() config.MemorySize { return config.MemorySize(c.peak.Load()) }

// Kill ends the process with SIGKILL; Wait then returns ErrKilled.
func (c *Process) Kill() {
	c.shot.Store(true)
	_ = c.cmd.Process.Kill() // an error means that it has ended
}

// Wait waits for the end. When ctx is done, the process gets SIGTERM and a grace
// for its last checkpoint, then SIGKILL.
func (c *Process) Wait(ctx context.Context) error {
	select {
	case <-c.done:
		return c.result()
	case <-ctx.Done():
	}
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-c.done:
	case <-grace.C:
		_ = c.cmd.Process.Kill()
		<-c.done
	}
	return context.Cause(ctx)
}

func (c *Process) result() error {
	if c.err != nil && c.shot.Load() {
		return ErrKilled
	}
	if c.err != nil {
		return fmt.Errorf("sluice %s: %w", c.cmd.Args[1], c.err)
	}
	return nil
}
