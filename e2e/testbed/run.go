package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/testbed/internal/mainjob"
)

func runCommand() *cobra.Command {
	o := mainjob.Options{
		Size: 2 << 30, File: 64 << 20, Part: 6 << 20, Row: 1 << 10,
		Writers: 16, Interval: 3 * time.Second, Mode: "adaptive", Timeout: time.Hour,
	}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Write rows to a store, publish them, read them back, and prove that each is there exactly once",
		Long: `Starts the embedded store, runs "sluice run" and "sluice verify" on it, prints a table, and then
counts the rows once more in the plain files of the store, without any S3 client. The last line is
"PROVEN: N of N rows, each exactly once" or "NOT PROVEN: why"; the exit code is 0 only when proven.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out, o.Log = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return mainjob.Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var((*sizeFlag)(&o.Size), "size", "bytes of all rows")
	f.Var((*sizeFlag)(&o.Row), "row", "bytes of a row, its line feed included")
	f.IntVar(&o.Writers, "writers", o.Writers, "parallel writers")
	f.Var((*sizeFlag)(&o.File), "file", "part file size")
	f.Var((*sizeFlag)(&o.Part), "part", "multipart part size")
	f.Var((*durationFlag)(&o.Interval), "interval", "time between checkpoints")
	f.StringVar(&o.Mode, "mode", o.Mode, "s3.retry.mode: adaptive or standard")
	f.IntVar(&o.Crash, "crash", 0, "kill the job with SIGKILL this many times, inside and between checkpoints")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of the moments of the kills; 0 draws one and prints it")
	f.StringVar(&o.Sluice, "sluice", "sluice", "the sluice binary")
	f.StringVar(&o.Dir, "dir", "", "where to make the work directory (default: the system's directory for temporary files)")
	f.BoolVar(&o.Keep, "keep", false, "keep the work directory: objects, logs, job file, reports")
	f.Var((*durationFlag)(&o.Timeout), "timeout", "give up after this time")
	return cmd
}

// sizeFlag is a flag in Flink's grammar of sizes, such as "64mb".
type sizeFlag config.MemorySize

func (f *sizeFlag) String() string { return config.MemorySize(*f).String() }
func (f *sizeFlag) Type() string   { return "size" }
func (f *sizeFlag) Set(text string) error {
	size, err := config.ParseSize(text)
	*f = sizeFlag(size)
	return err
}

// durationFlag is a flag in Flink's grammar of durations, such as "3s".
type durationFlag time.Duration

func (f *durationFlag) String() string { return config.FormatDuration(time.Duration(*f)) }
func (f *durationFlag) Type() string   { return "duration" }
func (f *durationFlag) Set(text string) error {
	d, err := config.ParseDuration(text)
	*f = durationFlag(d)
	return err
}
