package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-go/sluice/e2e/testbed/internal/campaign"
)

// errCrash is returned when anything went wrong. It has been printed.
var errCrash = errors.New("the crash campaign has failed")

func crashCommand() *cobra.Command {
	o := campaign.Options{Kills: 200, Timeout: time.Hour}
	s := campaign.Simulation{Seeds: 2000, Dir: "e2e/sim", Timeout: time.Hour}
	cmd := &cobra.Command{
		Use:   "crash",
		Short: "Kill jobs and their server at the worst moments, simulate crashes, and prove that nothing is lost",
		Long: `Runs the kill campaign, real processes on a real server, and then the seeds of the simulation, which is a Go test and
needs the go command. The last line is "crash: kills=N seeds=N lost=0 doubled=0 corrupt=0 leaked=0"; the exit code is 0 only
when these are all 0 and every job and every seed has held what it promises. What failed is printed above with what repeats it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Job > 0 {
				s.Seeds = 0 // one job is what was asked for
			}
			o.Out, s.Log = cmd.OutOrStdout(), cmd.OutOrStdout()
			s.Seed = o.Seed
			if s.Seed > 0 && s.Seeds > 0 {
				s.Seeds = 1
			}
			return crash(cmd, o, s)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&o.Kills, "kills", o.Kills, "kill the job with SIGKILL at least this many times; 0 leaves the campaign out")
	f.IntVar(&s.Seeds, "seeds", s.Seeds, "seeds of the simulation; 0 leaves it out")
	f.Uint64Var(&o.Seed, "seed", 0, "replay: this one seed of the simulation, and this seed of the campaign; 0 draws one and prints it")
	f.IntVar(&o.Job, "job", 0, "replay this job of the campaign's seed only")
	f.StringVar(&o.Sluice, "sluice", "sluice", "the sluice binary")
	f.StringVar(&s.Dir, "simulation", s.Dir, "directory of the simulation's package")
	f.StringVar(&o.Dir, "dir", "", "where to make the work directory (default: the system's directory for temporary files)")
	f.BoolVar(&o.Keep, "keep", false, "keep the work directory in any case")
	f.Var((*durationFlag)(&o.Timeout), "timeout", "give up each half after this time")
	return cmd
}

// crash runs both halves and prints the last line.
func crash(cmd *cobra.Command, o campaign.Options, s campaign.Simulation) error {
	s.Timeout = o.Timeout
	if err := o.Validate(); err != nil {
		return err
	}
	t, err := campaign.Run(cmd.Context(), o)
	r, simErr := campaign.RunSimulation(cmd.Context(), s)
	out := cmd.OutOrStdout()
	for _, err := range []error{err, simErr} {
		if err != nil {
			fmt.Fprintln(out, "FAILED:", err)
		}
	}
	lost, doubled, corrupt := t.Lost+r.Lost, t.Doubled+r.Doubled, t.Corrupt+r.Corrupt
	fmt.Fprintf(out, "crash: kills=%d seeds=%d lost=%d doubled=%d corrupt=%d leaked=%d\n", t.KillCount(), r.Seeds, lost, doubled, corrupt, t.Leaked)
	if err != nil || simErr != nil || !t.Clean() || lost+doubled+corrupt > 0 {
		return errCrash
	}
	return nil
}
