package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/job"
	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/sink"
)

// heapHeadroom is what the process may use beyond the part buffers before the garbage collector works harder. Measured: a job of 16
// writers at full speed has some 15 MiB of live heap outside the buffers.
const heapHeadroom = 40 << 20

func (p *process) runCommand() *cobra.Command {
	var pairs []string
	var report reportFile
	var rollback bool
	cmd := &cobra.Command{
		Use:   "run JOB.yaml",
		Short: "Run a datagen-to-sink job until every row is published",
		Long: "Run generates rows, writes them to part files, takes checkpoints and publishes each file once.\n" +
			"SIGINT or SIGTERM takes a final checkpoint; the next run goes on there. A second signal ends the process at once.",
		Args: oneJob,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.runJob(cmd.Context(), args[0], pairs, report, rollback)
		},
	}
	defineFlag(cmd, &pairs)
	reportFlag(cmd, &report, "what the run did")
	cmd.Flags().BoolVar(&rollback, "rollback", false,
		"go back behind commit records: delete what the newer ones have published, then the records")
	return cmd
}

func (p *process) runJob(ctx context.Context, file string, pairs []string, report reportFile, rollback bool) (err error) {
	cfg, err := p.loadConfig(file, pairs)
	if err != nil {
		return err
	}
	if err := report.check(); err != nil {
		return err
	}
	log := newLogger(p.stderr)
	warn(log, cfg)
	log.Info("configuration", append(effective(cfg), "aws-sdk-go-v2", retrymode.SDKVersion)...)
	p.limitMemory(cfg)

	j, err := job.New(ctx, cfg, log, p.store...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close(context.WithoutCancel(ctx))) }()
	if rollback {
		j.AllowRollback()
	}
	defer onStop(ctx, func() {
		log.Info("told to stop, taking a final checkpoint; a second signal ends the process at once", "cause", context.Cause(ctx))
	})()
	r, err := j.Run(ctx)
	closing(p.stdout, r, err)
	return errors.Join(err, report.write(r))
}

// onStop calls f when ctx ends. The function it returns prevents that, or waits for f.
func onStop(ctx context.Context, f func()) (end func()) {
	done := make(chan struct{})
	prevent := context.AfterFunc(ctx, func() {
		defer close(done)
		f()
	})
	return func() {
		if !prevent() {
			<-done
		}
	}
}

// limitMemory keeps the garbage collector from letting garbage grow to the size of the part buffers again: they are recycled and most
// of the heap. Whoever sets GOMEMLIMIT knows better.
func (p *process) limitMemory(cfg *config.Config) {
	if p.environment("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(config.Get(cfg, sink.KeyMemoryBudget)) + heapHeadroom)
	}
}

// effective returns every option with its value, secrets masked, and where it came from, for one log line.
func effective(cfg *config.Config) []any {
	var attrs []any
	for _, s := range cfg.Effective() {
		attrs = append(attrs, s.Key, fmt.Sprintf("%s (%s)", s.Value, s.Origin))
	}
	return attrs
}

// closing states what is where, truly, at the end of every run.
func closing(w io.Writer, r job.Report, err error) {
	state := "failed"
	switch {
	case !r.Started:
		fmt.Fprintln(w, "not started: no row was generated, and what earlier runs have published is as it was")
		return
	case err == nil:
		state = "finished"
	case errors.Is(err, job.ErrStopped):
		state = "stopped"
	}
	fmt.Fprintf(w, "%s: %d rows in %d files are published (%d bytes); %d rows are durable in the last checkpoint and not yet published; %d rows were generated after it and will be again; %d checkpoints, %d restarts, %.1f s\n",
		state, r.Rows, r.Files, r.Bytes, r.Staged, r.Lost, r.Checkpoints, r.Restarts, r.Seconds)
}
