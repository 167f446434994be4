package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/lab"
	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/sink"
)

func (p *process) rehearseCommand() *cobra.Command {
	r := lab.DefaultRehearsal()
	var pairs []string
	cmd := &cobra.Command{
		Use:   "rehearse [JOB.yaml]",
		Short: "Say what standard and adaptive retries would make of a workload, without touching a store",
		Long: `Say what standard and adaptive retries would make of a workload, without touching a store.

The simulator of the lab runs the workload on a model of a store, in seconds. A job file gives the number of threads (parts that are
uploaded at once) and the retry options; flags go over it. What disturbs the store is said by --limit, --every, --cluster, --share and --outage.

  sluice rehearse --threads 96 --limit 400            a quota of 400 calls in any second
  sluice rehearse --threads 8 --every 3s --for 30m    one 503 every three seconds
  sluice rehearse --every 30s --cluster 16            sixteen 503s at a time
  sluice rehearse --burst 1000 --every 1s --for 10m   bursts with 30 s of rest, as checkpoints make them, and one 503 in the first second of each`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return oneJob(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && len(pairs) > 0 {
				return wrongUse(cmd, "-D needs a job file")
			}
			if len(args) == 1 {
				cfg, err := p.loadConfig(args[0], pairs)
				if err != nil {
					return err
				}
				if err := fromJob(cmd, cfg, &r); err != nil {
					return usage(err)
				}
			}
			if err := r.Validate(); err != nil {
				return usage(err)
			}
			return p.rehearse(cmd.Context(), r)
		},
	}
	f := cmd.Flags()
	f.IntVar(&r.Clients, "clients", r.Clients, "processes with a client each")
	f.IntVar(&r.Threads, "threads", r.Threads, "calls in flight of a client")
	f.Float64Var(&r.Rate, "rate", r.Rate, "calls per second of a client, started on time; 0 = as fast as the threads can")
	f.DurationVar(&r.CallTime, "call-time", r.CallTime, "time of one undisturbed call")
	f.IntVar(&r.Burst, "burst", r.Burst, "calls of a burst; 0 = no bursts")
	f.DurationVar(&r.Pause, "pause", r.Pause, "rest between two bursts")
	f.DurationVar(&r.Duration, "for", r.Duration, "length of the run")
	f.IntVar(&r.Limit, "limit", r.Limit, "calls that the store lets through in a window; 0 = all")
	f.DurationVar(&r.Window, "window", r.Window, "the window of --limit")
	f.DurationVar(&r.Every, "every", r.Every, "time between 503s; with --burst, one 503 within so long of each burst's start")
	f.IntVar(&r.Cluster, "cluster", r.Cluster, "503s at a time, of --every")
	f.Float64Var(&r.Share, "share", r.Share, "share of the calls that are refused by chance, such as 0.02")
	f.DurationVar(&r.Outage, "outage", r.Outage, "refuse everything for so long, from a third of the run on")
	f.IntVar(&r.Retries, "retries", r.Retries, "retries of a call")
	f.Uint64Var(&r.Seed, "seed", r.Seed, "seed of the run")
	defineFlag(cmd, &pairs)
	return cmd
}

// fromJob takes what a job says, where no flag says otherwise.
func fromJob(cmd *cobra.Command, cfg *config.Config, r *lab.Rehearsal) error {
	o, err := retrymode.FromConfig(cfg)
	if err != nil {
		return err
	}
	r.Backoff = lab.Backoff{Base: o.BaseDelay, Throttle: o.ThrottleBaseDelay, Max: o.MaxBackoff}
	if !cmd.Flags().Changed("retries") {
		r.Retries = o.MaxRetries
	}
	if !cmd.Flags().Changed("threads") {
		parts := config.Get(cfg, sink.KeyWriters) * config.Get(cfg, sink.KeyConcurrentUploads)
		r.Threads = int(min(parts, config.Get(cfg, s3fs.KeyMaxConnections)))
	}
	return nil
}

// rehearse runs and prints.
func (p *process) rehearse(ctx context.Context, r lab.Rehearsal) error {
	calm, all, err := r.Run(ctx)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "undisturbed: %.1f calls/s by %s, %s a call\n", calm.Goodput(), callers(r), short(calm.MeanDuration()))
	fmt.Fprintf(&b, "you are here: %v\n\n", lab.PatternOf(r.Scenario().Workload, all[0].Result))
	fmt.Fprintf(&b, "%-22s %9s %9s %11s %9s %9s %9s %9s\n", "s3.retry.mode", "calls/s", "of calm", "extra/call", "p99", "slowest", "refused", "failed")
	for _, x := range all {
		fmt.Fprintf(&b, "%-22s %9.1f %8.1f%% %11s %9s %9s %8.2f%% %9d\n", x.Policy, x.Goodput(), 100*x.Goodput()/calm.Goodput(), short(max(x.Extra, 0)),
			short(x.Percentile(99)), short(x.Slowest()), 100*x.RefusedShare(), x.Failed)
	}
	fmt.Fprintf(&b, "\n%d retries; refused is the share of attempts that the store turned away, failed are calls in this run\n", r.Retries)
	if len(calm.Bursts) > 0 && r.Burst > 0 {
		fmt.Fprintf(&b, "\na burst takes %s undisturbed", short(calm.MeanBurst()))
		for _, x := range all {
			fmt.Fprintf(&b, "; %s: %s, %s at worst", x.Policy, short(x.MeanBurst()), short(x.WorstBurst()))
		}
		b.WriteByte('\n')
	}
	for _, x := range all {
		if x.Cut > 0 {
			fmt.Fprintf(&b, "%s: only the first %s; more calls come in than it lets go, and those that still wait are not counted\n", x.Policy, short(x.Cut))
		}
	}
	_, err = p.stdout.Write([]byte(b.String()))
	return err
}

// callers says who makes the calls: with a job file it is not on the command line.
func callers(r lab.Rehearsal) string {
	each := fmt.Sprintf("%d threads", r.Threads)
	if r.Rate > 0 {
		each = fmt.Sprintf("a stream of %g calls/s", r.Rate)
	}
	if r.Clients > 1 {
		return fmt.Sprintf("%d clients of %s", r.Clients, each)
	}
	return each
}

// short writes a duration with three digits, or whole seconds.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
	case d < 1000*time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	default:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
}
