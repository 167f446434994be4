//go:build unix

package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs/s3test"
)

// patience is how long a test waits for a child before it says that it hangs.
const patience = 20 * time.Second

// newLoopback describes a job on a real socket that takes 12 seconds, so that signals come in its middle.
func newLoopback(t *testing.T) *world {
	w := newWorld(t, s3test.Options{})
	endpoint, err := w.store.ListenTCP()
	require.NoError(t, err)
	w.keys["s3.endpoint"] = endpoint
	w.keys["checkpoint.interval"], w.keys["sink.rolling-policy.file-size"] = "50 ms", "40000"
	w.keys["datagen.number-of-rows"], w.keys["datagen.rows-per-second"] = "24000", "2000"
	return w
}

// child is the command as a process of its own.
type child struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout bytes.Buffer
	lines  chan string // of stderr; closed at its end
	log    strings.Builder
}

func (w *world) start(args ...string) *child {
	w.t.Helper()
	exe, err := os.Executable()
	require.NoError(w.t, err)
	c := &child{t: w.t, cmd: exec.Command(exe, args...), lines: make(chan string, 10_000)}
	c.cmd.Env = append(os.Environ(), asCommand+"=1")
	c.cmd.Stdout = &c.stdout
	pipe, err := c.cmd.StderrPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, c.cmd.Start())
	w.t.Cleanup(func() { _ = c.cmd.Process.Kill() }) // an error means that it has ended
	go func() {
		defer close(c.lines)
		for s := bufio.NewScanner(pipe); s.Scan(); {
			c.lines <- s.Text()
		}
	}()
	return c
}

// waitFor reads the log up to the nth line that has text in it.
func (c *child) waitFor(text string, n int) {
	c.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case line, more := <-c.lines:
			require.True(c.t, more, "the process has ended:\n%s", &c.log)
			c.log.WriteString(line + "\n")
			if strings.Contains(line, text) {
				if n--; n == 0 {
					return
				}
			}
		case <-timeout:
			require.FailNow(c.t, "no such line", "%q in\n%s", text, &c.log)
		}
	}
}

// wait returns what the process has left behind.
func (c *child) wait() *os.ProcessState {
	c.t.Helper()
	hangs := time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() })
	defer hangs.Stop()
	for line := range c.lines {
		c.log.WriteString(line + "\n")
	}
	_ = c.cmd.Wait() // the state tells
	return c.cmd.ProcessState
}

func (c *child) signal(s syscall.Signal) { require.NoError(c.t, c.cmd.Process.Signal(s)) }

// requireFinishes runs the job to its end at full speed and proves what is there.
func (w *world) requireFinishes() {
	w.t.Helper()
	c := w.start("run", w.jobFile(), "-D", "datagen.rows-per-second=0")
	require.Equal(w.t, 0, c.wait().ExitCode(), c.log.String())
	assert.Contains(w.t, c.stdout.String(), "finished: 24000 rows in ")
	c = w.start("verify", w.jobFile())
	require.Equal(w.t, 0, c.wait().ExitCode(), c.stdout.String())
	assert.Equal(w.t, "PROVEN: 24000 of 24000 rows, each exactly once", lastLine(c.stdout.String()))
}

func TestSignal_SIGTERMAndSIGINTTakeAFinalCheckpoint(t *testing.T) {
	for name, s := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newLoopback(t)
			c := w.start("run", w.jobFile())
			c.waitFor(`msg="checkpoint committed"`, 3)
			c.signal(s)
			require.Equal(t, 4, c.wait().ExitCode(), c.log.String())
			assert.Regexp(t, `^stopped: \d+ rows in \d+ files are published \(\d+ bytes\); \d+ rows are durable in the last checkpoint and not yet published; 0 rows were generated after it`, c.stdout.String())
			assert.Contains(t, c.log.String(), `msg="final checkpoint is durable"`)
			assert.Equal(t, "sluice: stopped before the source ended", lastLine(c.log.String()))
			if s == syscall.SIGTERM {
				w.requireFinishes()
			}
		})
	}
}

func TestSignal_SIGKILLLosesNothing(t *testing.T) {
	t.Parallel()
	w := newLoopback(t)
	for range 2 {
		c := w.start("run", w.jobFile())
		c.waitFor(`msg="checkpoint committed"`, 3)
		c.signal(syscall.SIGKILL)
		require.Equal(t, -1, c.wait().ExitCode())
		assert.Empty(t, c.stdout.String(), "nobody is left to state anything")
	}
	w.requireFinishes()
}

// The final checkpoint waits for a store that hangs; who does not want to wait sends a second signal.
func TestSignal_ASecondOneEndsTheProcessAtOnce(t *testing.T) {
	t.Parallel()
	w := newLoopback(t)
	hanging := make(chan struct{}, 1)
	remove := w.store.Control(s3test.Match{Op: s3test.PutObject}, func(q s3test.Request) *s3test.Reply {
		select {
		case hanging <- struct{}{}:
		default:
		}
		<-q.Context().Done()
		return nil
	})
	c := w.start("run", w.jobFile())
	select {
	case <-hanging:
	case <-time.After(patience):
		require.FailNow(t, "nothing was published")
	}
	c.signal(syscall.SIGTERM)
	c.waitFor("a second signal ends the process at once", 1)
	c.signal(syscall.SIGTERM)
	state := c.wait()
	status, ok := state.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	assert.True(t, status.Signaled(), state)
	assert.Equal(t, syscall.SIGTERM, status.Signal())
	remove()
	w.requireFinishes()
}

func TestSignal_ASecondRunBesideALiveProcessNamesIt(t *testing.T) {
	t.Parallel()
	w, second := newLoopback(t), newLoopback(t)
	second.keys["checkpoint.dir"] = w.keys["checkpoint.dir"]
	c := w.start("run", w.jobFile())
	c.waitFor(`msg="job started"`, 1)
	second.refused(1, []string{"run", "JOB"},
		filepath.Join(w.dir, "checkpoints", "job", "0-of-1")+": epoch taken by a live run (held by pid ")
	c.signal(syscall.SIGTERM)
	require.Equal(t, 4, c.wait().ExitCode(), c.log.String())
}
