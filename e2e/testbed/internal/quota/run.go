package quota

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/testbed/internal/nginx"
	"github.com/sluice-go/sluice/e2e/testbed/internal/workdir"
)

// ErrLost is returned when the experiment was made and adaptive did not hold what
// it must, or when it could not be made. The reason has been printed.
var ErrLost = errors.New("the quota experiment has failed")

// stopTimeout bounds what is done after the context is done.
const stopTimeout = 10 * time.Second

// experiment is one run of the whole.
type experiment struct {
	o   Options
	dir string

	mu sync.Mutex // of o.Log
}

// Run runs the experiment and prints its tables and, as the last line, whether
// adaptive held what it must. It returns nil only when it did; every other end is
// printed and returns an error that satisfies errors.Is(err, ErrLost). When ctx
// is done, everything that was started is stopped.
func Run(ctx context.Context, o Options) error {
	results, err := measure(ctx, o)
	if len(results) > 0 {
		_, _ = fmt.Fprint(o.Out, Report(o, results))
	}
	why := judge(results)
	if err != nil {
		why = append(why, err.Error())
	}
	if o.JSON != "" && len(results) > 0 {
		if err := writeJSON(o.JSON, results); err != nil {
			why = append(why, err.Error())
		}
	}
	if len(why) > 0 {
		_, _ = fmt.Fprintf(o.Out, "quota: FAILED: %s\n", strings.ReplaceAll(strings.Join(why, "; "), "\n", "; "))
		return ErrLost
	}
	_, err = fmt.Fprintf(o.Out, "quota: %s\n", verdict(results))
	return err
}

// measure runs the jobs and returns the results of those that could be run, in
// the order of the plan.
func measure(ctx context.Context, o Options) (_ []Result, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	jobs := plan(o)
	if o.Nginx == "" && uses(jobs, SlowDown) {
		if o.Nginx, err = nginx.Find(); err != nil {
			return nil, fmt.Errorf("%w (or leave its jobs out: --only '^%s/')", err, Close)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("not done within %s", config.FormatDuration(o.Timeout)))
	defer cancel()
	e := &experiment{o: o}
	if err := e.makeDir(jobs); err != nil {
		return nil, err
	}
	defer func() {
		if o.Keep {
			e.logf("kept: %s", e.dir)
		} else {
			err = errors.Join(err, os.RemoveAll(e.dir))
		}
	}()
	e.logf("%d jobs, %d at a time; a store of %g requests/s + %d, %s a call", len(jobs), o.Parallel, o.Rate, o.Burst, config.FormatDuration(o.CallTime))
	return e.all(ctx, jobs)
}

// all runs the jobs, so many at a time. The first job that cannot be run ends
// all of them.
func (e *experiment) all(ctx context.Context, jobs []Job) ([]Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]*Result, len(jobs))
	queue := make(chan int, len(jobs))
	for i := range jobs {
		queue <- i
	}
	close(queue)
	var wg sync.WaitGroup
	for range min(e.o.Parallel, len(jobs)) {
		wg.Go(func() {
			for i := range queue {
				if ctx.Err() != nil {
					return
				}
				r, err := e.job(ctx, jobs[i])
				if err != nil {
					cancel(fmt.Errorf("%s: %w", jobs[i].Name(), err))
					return
				}
				results[i] = &r
			}
		})
	}
	wg.Wait()
	var done []Result
	for _, r := range results {
		if r != nil {
			done = append(done, *r)
		}
	}
	return done, context.Cause(ctx)
}

// makeDir makes the work directory, with room for the jobs that run at a time.
func (e *experiment) makeDir(jobs []Job) (err error) {
	var need config.MemorySize // the largest come first
	for _, j := range jobs[:min(e.o.Parallel, len(jobs))] {
		need += j.space()
	}
	e.dir, err = workdir.Make(e.o.Dir, "sluice-quota-", need)
	return err
}

func (e *experiment) logf(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, _ = io.WriteString(e.o.Log, fmt.Sprintf(format, args...)+"\n")
}

func uses(jobs []Job, lane Lane) bool {
	for _, j := range jobs {
		if j.Lane == lane {
			return true
		}
	}
	return false
}

func writeJSON(path string, results []Result) error {
	text, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
