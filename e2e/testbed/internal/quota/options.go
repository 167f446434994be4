package quota

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"time"

	"github.com/sluice-go/sluice/config"
)

// Options say what to run. Only, Limiter, JSON, Dir, Keep, All and Short may stay
// empty.
type Options struct {
	Size     config.MemorySize // bytes that a job of 256 writers writes; one with 20 retries and one of fewer writers in proportion
	Rate     float64           // requests per second that pass the quota
	Burst    int               // requests that pass at once above the rate
	CallTime time.Duration     // that each call takes besides the work of the store
	Parallel int               // jobs at a time, each with a store and a quota of its own
	Only     string            // regular expression: run only the jobs whose name matches
	All      bool              // also the jobs that tell little new
	Short    bool              // instead of all jobs, two small ones for each quota
	Limiter  string            // s3.retry.adaptive.limiter; empty: the job's own default

	Sluice  string        // path of the sluice binary
	Nginx   string        // path of nginx; empty: where the system has it
	JSON    string        // file for the results
	Dir     string        // where the work directory is made; empty: the system's place for temporary files
	Keep    bool          // keep the work directory: job files, logs, reports; the objects are removed in any case
	Timeout time.Duration // of everything

	Out io.Writer // tables and verdict
	Log io.Writer // progress

	// StoreCommand starts the store; nil: this executable, see package store.
	StoreCommand []string
}

// maxParallel bounds what a typing error can ask of a machine.
const maxParallel = 64

// wants says whether the user asked for the job.
func (o Options) wants(j Job) bool {
	if o.Only != "" {
		only, err := regexp.Compile(o.Only)
		return err == nil && only.MatchString(j.Name())
	}
	return o.All || !j.Extra
}

// Validate reports everything that is wrong, before anything is started.
func (o Options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Size < 100*partSize || o.Size > 1<<44 {
		bad("--size: %s is not within %s and 16 tb", o.Size, config.MemorySize(100*partSize))
	}
	if !(o.Rate >= 0.1 && o.Rate <= 10_000) {
		bad("--rate: %g is not within 0.1 and 10,000 requests per second", o.Rate)
	}
	if o.Burst < 0 || o.Burst > 100_000 {
		bad("--burst: %d is not within 0 and 100,000", o.Burst)
	}
	if o.CallTime < 0 || o.CallTime > time.Minute {
		bad("--call-time: %s is not within 0 and 1 min", config.FormatDuration(o.CallTime))
	}
	if o.Parallel < 1 || o.Parallel > maxParallel {
		bad("--parallel: %d is not within 1 and %d", o.Parallel, maxParallel)
	}
	if o.Timeout <= 0 {
		bad("--timeout: must be more than 0")
	}
	if _, err := regexp.Compile(o.Only); err != nil {
		bad("--only: %w", err)
	} else if len(plan(o)) == 0 {
		bad("--only: no job has a name that matches %q; names are like %s", o.Only, Job{Lane: SlowDown, Mode: Standard, Writers: 256, Retries: 10}.Name())
	}
	if _, err := exec.LookPath(o.Sluice); err != nil {
		bad("--sluice: %w", err)
	}
	return errors.Join(errs...)
}
