package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/job"
)

func (p *process) checkpointCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "checkpoint",
		Short: "Look at the checkpoints of a job",
		Long: "Checkpoint looks at the retained checkpoints of one shard of a job. It claims and changes nothing and may be used beside\n" +
			"the running job.",
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return wrongUse(cmd, "a command is needed: ls, show or verify")
		},
	}
	cmd.AddCommand(
		p.look("ls JOB.yaml", "List the retained checkpoints", "", 1, p.listCheckpoints),
		p.look("show JOB.yaml [ID]", "Show one checkpoint, the newest if none is named",
			"Show writes what the checkpoint holds: its files with their uploads, parts and bytes, the source's position and the configuration.",
			2, p.showCheckpoint),
		p.look("verify JOB.yaml [ID]", "Find out whether a checkpoint, the newest if none is named, can be restored",
			"Verify reads all bytes that the checkpoint holds and compares them with their checksums, and looks for the uploads and objects it\n"+
				"names in the store. It says what a restore would do and what is lost. The last line says GOOD or NOT GOOD; the exit\n"+
				"code is 0 only when good, and 3 when something is wrong.",
			2, p.verifyCheckpoint),
	)
	return cmd
}

// lookAt carries a reading command out and returns what --report gets. id is 0 when none is named.
type lookAt func(ctx context.Context, cfg *config.Config, id checkpoint.ID) (report any, err error)

// look returns a reading command that takes a job file and, of two arguments, a checkpoint's id.
func (p *process) look(use, short, long string, most int, f lookAt) *cobra.Command {
	var pairs []string
	var report reportFile
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > most {
				return wrongUse(cmd, "want %s, got %d arguments", cmd.Use, len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var id int64
			if len(args) == 2 {
				var err error
				if id, err = strconv.ParseInt(args[1], 10, 64); err != nil || id < 1 {
					return wrongUse(cmd, "%q is not the id of a checkpoint, a number from 1", args[1])
				}
			}
			cfg, err := p.loadConfig(args[0], pairs)
			if err != nil {
				return err
			}
			if err := report.check(); err != nil {
				return err
			}
			warn(newLogger(p.stderr), cfg)
			v, err := f(cmd.Context(), cfg, checkpoint.ID(id))
			if v == nil {
				return err
			}
			return errors.Join(err, report.write(v))
		},
	}
	defineFlag(cmd, &pairs)
	reportFlag(cmd, &report, "the same")
	return cmd
}

func (p *process) listCheckpoints(ctx context.Context, cfg *config.Config, _ checkpoint.ID) (any, error) {
	list, err := job.ListCheckpoints(ctx, cfg, p.store...)
	if list == nil && err != nil {
		return nil, err
	}
	return list, errors.Join(err, job.WriteCheckpoints(p.stdout, list))
}

func (p *process) showCheckpoint(ctx context.Context, cfg *config.Config, id checkpoint.ID) (any, error) {
	d, err := job.ShowCheckpoint(ctx, cfg, id, p.store...)
	if err != nil {
		return nil, err
	}
	return d, d.WriteText(p.stdout)
}

func (p *process) verifyCheckpoint(ctx context.Context, cfg *config.Config, id checkpoint.ID) (any, error) {
	v, err := job.VerifyCheckpoint(ctx, cfg, id, newLogger(p.stderr), p.store...)
	if err != nil {
		return nil, err
	}
	if err := v.WriteText(p.stdout); err != nil {
		return nil, err
	}
	if !v.Good {
		return v, &exitError{code: exitNotProven, err: errors.New("the checkpoint is not good")}
	}
	return v, nil
}
