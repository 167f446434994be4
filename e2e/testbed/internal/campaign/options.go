package campaign

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// maxKills keeps a campaign within a day.
const maxKills = 100_000

// Options say what to run. Sluice, Timeout and Out are required.
type Options struct {
	Kills int    // SIGKILLs of the job after which no further job begins; 0: no job
	Seed  uint64 // of everything; 0: drawn, and printed
	Job   int    // run this one job of the seed only; 0: jobs 1, 2, 3 and so on

	Sluice  string        // path of the sluice binary
	Dir     string        // where the work directory is made; empty: the system's place for temporary files
	Keep    bool          // keep the work directory; that of a failed job is kept in any case
	Timeout time.Duration // of everything

	Out io.Writer // a line for each job, and the totals

	// StoreCommand starts the store; nil: this executable, see package store.
	StoreCommand []string
}

// Validate reports everything that is wrong, before anything is started.
func (o Options) Validate() error {
	var errs []error
	if o.Kills < 0 || o.Kills > maxKills {
		errs = append(errs, fmt.Errorf("KILLS: %d is not within 0 and %d", o.Kills, maxKills))
	}
	if o.Job < 0 {
		errs = append(errs, fmt.Errorf("--job: %d is not the number of a job", o.Job))
	}
	if o.Job > 0 && o.Seed == 0 {
		errs = append(errs, errors.New("--job: a job is told by its number and the seed: --seed is missing"))
	}
	if o.Timeout <= 0 {
		errs = append(errs, errors.New("--timeout: must be more than 0"))
	}
	if _, err := exec.LookPath(o.Sluice); err != nil {
		errs = append(errs, fmt.Errorf("--sluice: %w", err))
	}
	return errors.Join(errs...)
}
