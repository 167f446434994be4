package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/job"
	"github.com/sluice-go/sluice/sink"
)

// sweepFlags are the flags of the sweep as they are written.
type sweepFlags struct {
	pairs     []string
	report    reportFile
	olderThan string
	options   job.SweepOptions
}

func (p *process) sweepCommand() *cobra.Command {
	var f sweepFlags
	cmd := &cobra.Command{
		Use:   "sweep JOB.yaml",
		Short: "Abort the multipart uploads that dead runs of a job have left behind",
		Long: "Sweep finds the uploads in progress under the names of this job and shard, and aborts those of finished epochs that no retained\n" +
			"checkpoint names, if they are old enough. It deletes no object and may run beside the job.\n\n" +
			"Without a readable checkpoint store it refuses. A copy of checkpoints elsewhere that somebody may want to restore from\n" +
			"has to be named by --savepoint: what only that copy names is not known otherwise.",
		Args: oneJob,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if f.options.OlderThan, err = config.ParseDuration(f.olderThan); err != nil {
				return wrongUse(cmd, "--older-than %q: %w", f.olderThan, err)
			}
			return p.sweep(cmd.Context(), args[0], f)
		},
	}
	defineFlag(cmd, &f.pairs)
	reportFlag(cmd, &f.report, "what was found and done")
	flags := cmd.Flags()
	flags.BoolVar(&f.options.DryRun, "dry-run", false, "abort nothing, only say what would be")
	flags.StringVar(&f.olderThan, "older-than", config.FormatDuration(sink.DefaultSweepAge), "keep uploads younger than this, as in \"90 min\"")
	flags.StringArrayVar(&f.options.Savepoints, "savepoint", nil, "keep what the checkpoints below this directory name, too; may be repeated")
	flags.BoolVar(&f.options.WithoutCheckpoints, "without-checkpoints", false,
		"go by age alone: the job loses every older upload that a checkpoint needs")
	return cmd
}

func (p *process) sweep(ctx context.Context, file string, f sweepFlags) error {
	cfg, err := p.loadConfig(file, f.pairs)
	if err != nil {
		return err
	}
	if err := f.report.check(); err != nil {
		return err
	}
	log := newLogger(p.stderr)
	warn(log, cfg)
	r, err := job.Sweep(ctx, cfg, f.options, log, p.store...)
	if errors.Is(err, sink.ErrSweepRefused) && !f.options.WithoutCheckpoints {
		return fmt.Errorf("%w (--without-checkpoints sweeps all the same, and the job loses what its checkpoints need)", err)
	}
	if r.Path == "" || errors.Is(err, sink.ErrSweepRefused) {
		return err // nothing was looked at
	}
	return errors.Join(err, r.WriteText(p.stdout), f.report.write(r))
}
