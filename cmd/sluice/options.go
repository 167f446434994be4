package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/job"
)

func (p *process) optionsCommand() *cobra.Command {
	var pairs []string
	cmd := &cobra.Command{
		Use:   "options [JOB.yaml]",
		Short: "List all options, or the effective configuration of a job with the origin of each value",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 || len(pairs) > 0 {
				return oneJob(cmd, args)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return p.listOptions()
			}
			return p.showOptions(args[0], pairs)
		},
	}
	defineFlag(cmd, &pairs)
	return cmd
}

// listOptions writes the table of the README.
func (p *process) listOptions() error {
	reg, err := job.Registry()
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(p.stdout, config.MarkdownTable(reg.All()))
	return err
}

// showOptions writes every option of a job with its value, secrets masked, and where it came from.
func (p *process) showOptions(file string, pairs []string) error {
	cfg, err := p.loadConfig(file, pairs)
	if err != nil {
		return err
	}
	warn(newLogger(p.stderr), cfg)
	for _, s := range cfg.Effective() {
		if _, err := fmt.Fprintf(p.stdout, "%s: %s  # %s\n", s.Key, s.Value, s.Origin); err != nil {
			return err
		}
	}
	return nil
}
