package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/sluice-go/sluice/e2e/job"
	"github.com/sluice-go/sluice/e2e/readback"
)

// verifyReport is what verify writes with --report: the findings and what reading them back cost.
type verifyReport struct {
	*readback.Report
	Totals job.Traffic `json:"totals"`
}

func (p *process) verifyCommand() *cobra.Command {
	var pairs []string
	var report reportFile
	cmd := &cobra.Command{
		Use:   "verify JOB.yaml",
		Short: "Read back what a job has published and prove each row",
		Long: "Verify reads every published file of the job, all its shards, and compares them with the commit records and with the\n" +
			"generator. The last line says PROVEN or NOT PROVEN and why; the exit code is 0 only when proven.",
		Args: oneJob,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.verifyJob(cmd.Context(), args[0], pairs, report)
		},
	}
	defineFlag(cmd, &pairs)
	reportFlag(cmd, &report, "the findings")
	return cmd
}

func (p *process) verifyJob(ctx context.Context, file string, pairs []string, report reportFile) error {
	cfg, err := p.loadConfig(file, pairs)
	if err != nil {
		return err
	}
	if err := report.check(); err != nil {
		return err
	}
	log := newLogger(p.stderr)
	warn(log, cfg)
	r, traffic, err := job.Verify(ctx, cfg, log, p.store...)
	if err != nil {
		return err
	}
	if err := errors.Join(r.WriteText(p.stdout), report.write(verifyReport{Report: r, Totals: traffic})); err != nil {
		return err
	}
	if !r.Proven {
		return &exitError{code: exitNotProven, err: errors.New("not proven")}
	}
	return nil
}
