package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/job"
)

func (p *process) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "sluice",
		Short: "Stream rows into S3 exactly once, and prove it",
		Long: `Stream rows into S3 exactly once, and prove it.

Exit codes:
  0  done; for verify: proven
  1  failed
  2  unusable command line, configuration or store; no data was moved
  3  not proven
  4  stopped by a signal, the final checkpoint is durable: start it again to go on`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprint(cmd.ErrOrStderr(), cmd.UsageString())
			return usage(errors.New("a command is needed"))
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return wrongUse(cmd, "%w", err) })
	root.AddCommand(p.runCommand(), p.verifyCommand(), p.sweepCommand(), p.checkpointCommand(), p.rehearseCommand(), p.optionsCommand())
	return root
}

// wrongUse is an error of the command line, with the place where to read more.
func wrongUse(cmd *cobra.Command, format string, args ...any) error {
	return usage(fmt.Errorf(format+"; see %s --help", append(args, cmd.CommandPath())...))
}

// knownCommand refuses what is no command and names the nearest one.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	near := ""
	cmd.SuggestionsMinimumDistance = 2 // letters
	if names := cmd.SuggestionsFor(args[0]); len(names) > 0 {
		near = ", the nearest one is " + names[0]
	}
	return wrongUse(cmd, "unknown command %q%s", args[0], near)
}

// oneJob accepts one argument, the job file.
func oneJob(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return wrongUse(cmd, "%s takes one job file, got %d arguments", cmd.CommandPath(), len(args))
	}
	return nil
}

// defineFlag adds -D key=value.
func defineFlag(cmd *cobra.Command, pairs *[]string) {
	cmd.Flags().StringArrayVarP(pairs, "define", "D", nil, "set an option: -D key=value (over the environment, over the file)")
}

// loadConfig reads the job file, the environment and the command line; later ones win.
func (p *process) loadConfig(file string, pairs []string) (*config.Config, error) {
	reg, err := job.Registry()
	if err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, usage(fmt.Errorf("job file: %w", err))
	}
	cfg, err := config.Load(reg, config.YAML(file, f), config.Env(p.environ), config.Pairs("-D", pairs))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, usage(err)
	}
	return cfg, nil
}

// environment returns the value of a variable, empty when it is not set.
func (p *process) environment(name string) string {
	value := ""
	for _, entry := range p.environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v // of two entries the last counts
		}
	}
	return value
}

// newLogger returns a logger of one line a record.
func newLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, nil))
}

// warn logs which keys are spelled in an old way.
func warn(log *slog.Logger, cfg *config.Config) {
	for _, w := range cfg.Warnings() {
		log.Warn(w)
	}
}
