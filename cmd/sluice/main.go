// Command sluice runs the datagen-to-sink job, verifies what it published, inspects its checkpoints, sweeps what dead runs have left
// behind, and lists the options.
//
// Exit codes: 0 done and, for verify and checkpoint verify, proven; 1 failed; 2 unusable command line, configuration or store, nothing
// was written; 3 not proven; 4 stopped by a signal with a durable final checkpoint, start it again to go on.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/sluice-go/sluice/e2e/job"
	"github.com/sluice-go/sluice/s3fs"
)

const (
	exitFailed    = 1
	exitUsage     = 2
	exitNotProven = 3
	exitStopped   = 4
)

func main() {
	p := process{environ: os.Environ(), stdout: os.Stdout, stderr: os.Stderr}
	os.Exit(p.run(untilSignal(), os.Args[1:]))
}

// untilSignal returns a context that the first SIGINT or SIGTERM ends. A second one does what signals do: it ends the process, and
// it does so from the moment on at which the context has ended.
func untilSignal() context.Context {
	signalled, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, end := context.WithCancelCause(context.Background())
	context.AfterFunc(signalled, func() {
		stop()
		end(context.Cause(signalled))
	})
	return ctx
}

// process is what a command has of the world around it.
type process struct {
	environ        []string
	stdout, stderr io.Writer
	store          []s3fs.Option // how the store is reached, for tests
}

// run runs one command line and returns the exit code. The end of ctx is the wish to stop.
func (p *process) run(ctx context.Context, args []string) int {
	root := p.rootCommand()
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	for line := range strings.SplitSeq(err.Error(), "\n") { // several problems are a line each
		fmt.Fprintln(p.stderr, "sluice:", line)
	}
	return exitCode(err)
}

// exitCode maps an error to the exit codes in the package comment.
func exitCode(err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	if _, ok := errors.AsType[*job.ConfigError](err); ok {
		return exitUsage
	}
	if errors.Is(err, job.ErrStopped) {
		return exitStopped
	}
	return exitFailed
}

// exitError carries an exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// usage marks an error of the command line or the configuration.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code: exitUsage, err: err}
}
