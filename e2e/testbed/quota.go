package main

import (
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-go/sluice/e2e/testbed/internal/quota"
)

// parallel is how many jobs a machine can run at a time without being what limits
// them. They wait for their quotas most of the time, but not all of it.
func parallel(cores int) int {
	if cores < 4 {
		return 2
	}
	return 3
}

func quotaCommand() *cobra.Command {
	o := quota.Options{
		Size: 2 << 30, Rate: 8, Burst: 8, CallTime: 300 * time.Millisecond, Parallel: parallel(runtime.NumCPU()), Timeout: time.Hour,
	}
	cmd := &cobra.Command{
		Use:   "quota",
		Short: "Run the job against stores with a request quota, with standard and with adaptive retries",
		Long: `Repeats the experiment of the pull request that gave Flink its retry modes: "sluice run" against the embedded store behind
nginx limit_req, which answers 503 SlowDown, and behind a front that closes the connection instead. 256, 32 and 16 writers, with
standard and with adaptive retries, no restarts. Prints the pull request's tables as Markdown. A job of standard that dies is a
result; the exit code is 0 only when every job of adaptive is proven and none is worse than its twin of standard.

Needs nginx (on Debian: apt-get install nginx), some 5 GB of memory, 25 GB of disk, and 7 to 11 minutes.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out, o.Log = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return quota.Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var((*sizeFlag)(&o.Size), "size", "bytes that a job of 256 writers writes; one with 20 retries and one of fewer writers in proportion")
	f.Float64Var(&o.Rate, "rate", o.Rate, "quota: requests per second")
	f.IntVar(&o.Burst, "burst", o.Burst, "quota: requests that pass at once above the rate")
	f.Var((*durationFlag)(&o.CallTime), "call-time", "time that each call takes besides the work of the store")
	f.IntVar(&o.Parallel, "parallel", o.Parallel, "jobs at a time, each with a store and a quota of its own")
	f.StringVar(&o.Only, "only", "", "run only the jobs whose name matches this regular expression, such as '^503/.*/256x10$'")
	f.BoolVar(&o.All, "all", false, "also the jobs with 20 retries that tell little new")
	f.BoolVar(&o.Short, "short", false, "instead of all jobs 96 writers and 8 retries, some 90 seconds")
	f.StringVar(&o.Limiter, "limiter", "", "s3.retry.adaptive.limiter of the adaptive jobs: gate or sdk (default: the job's own)")
	f.StringVar(&o.Sluice, "sluice", "sluice", "the sluice binary")
	f.StringVar(&o.Nginx, "nginx", "", "the nginx binary (default: the one on PATH or in /usr/sbin)")
	f.StringVar(&o.JSON, "json", "", "also write the results to this file, as JSON")
	f.StringVar(&o.Dir, "dir", "", "where to make the work directory (default: the system's directory for temporary files)")
	f.BoolVar(&o.Keep, "keep", false, "keep the work directory: job files, logs, reports")
	f.Var((*durationFlag)(&o.Timeout), "timeout", "give up after this time")
	return cmd
}
