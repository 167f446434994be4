package campaign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluice-go/sluice/e2e/testbed/internal/store"
	"github.com/sluice-go/sluice/e2e/testbed/internal/workdir"
)

// Files of the work directory.
const (
	bucketName    = "sluice"
	storeDir      = "store"
	accessLogFile = "access.log"
	storeLogFile  = "store.log"
	jobsDir       = "jobs"
)

const (
	// stopTimeout bounds what is done after the context is done.
	stopTimeout = 10 * time.Second
	// maxFailed is the number of failed jobs after which a campaign ends: more of them tell nothing new.
	maxFailed = 5
)

// campaign is one campaign under way.
type campaign struct {
	o     Options
	dir   string
	store *store.Store

	canSweep  bool            // the command has the subcommand
	noDisk    error           // why no disks can be mounted
	leftovers map[string]bool // directories of claims that the server has left behind for good
	lengths   lengths
	failed    bool // the work directory is needed
}

// Run runs a campaign and returns what it has come to. The error says that it could not be made or finished; jobs that did not hold what
// they promise are in the tally, and have been printed with what it takes to repeat them. When ctx is done everything that was
// started is stopped.
func Run(ctx context.Context, o Options) (t Tally, err error) {
	t = newTally()
	if o.Seed == 0 && o.Job == 0 {
		o.Seed = rand.Uint64()
	}
	if err := o.Validate(); err != nil {
		return t, err
	}
	if o.Kills == 0 && o.Job == 0 {
		return t, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("not done within %s", o.Timeout))
	defer cancel()
	c := &campaign{o: o, leftovers: map[string]bool{}, lengths: firstLengths}
	if err := c.open(ctx); err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, c.close(ctx)) }()
	err = c.jobs(ctx, &t)
	c.say("\n%s", t)
	return t, err
}

// jobs runs jobs until there were enough kills.
func (c *campaign) jobs(ctx context.Context, t *Tally) error {
	if c.o.Job > 0 {
		return c.job(ctx, newJobPlan(c.o.Seed, c.o.Job), t)
	}
	for number := 1; t.KillCount() < c.o.Kills; number++ {
		if err := c.job(ctx, newJobPlan(c.o.Seed, number), t); err != nil {
			return err
		}
		if t.Failed == maxFailed {
			return fmt.Errorf("%d jobs have failed", t.Failed)
		}
	}
	return nil
}

// job runs one job and adds it to the tally. An error ends the campaign; a finding does not.
func (c *campaign) job(ctx context.Context, p jobPlan, t *Tally) error {
	j := &job{c: c, p: p, dir: filepath.Join(c.dir, jobsDir, p.name()), tally: newTally()}
	began := time.Now()
	err := j.run(ctx)
	j.tally.Jobs, j.tally.Duration = 1, time.Since(began)
	if err == nil {
		err = j.remove()
	}
	if err != nil {
		c.failed = true
		j.tally.Failed = 1
	}
	t.add(j.tally)
	c.say("%s: %s", p.name(), j.tally.line())
	if err == nil {
		return nil
	}
	c.say("%s FAILED: %s\n  kept: %s\n  again: make crash SEED=%d CRASHFLAGS=\"--job %d\"",
		p.name(), strings.ReplaceAll(err.Error(), "\n", "; "), j.dir, p.seed, p.number)
	if _, ok := errors.AsType[*finding](err); ok && ctx.Err() == nil && c.store.Err() == nil {
		return nil
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case c.store.Err() != nil:
		return c.store.Err()
	}
	return fmt.Errorf("%s: %w", p.name(), err)
}

// remove makes room: of a job that is proven nothing is needed any more.
func (j *job) remove() error {
	if j.c.o.Keep {
		return nil
	}
	if j.disk != nil { // unmounted by now
		j.disk = nil
	}
	return errors.Join(os.RemoveAll(j.dir), os.RemoveAll(filepath.Join(j.c.bucket(), j.p.name())))
}

// bucket is the directory of the bucket.
func (c *campaign) bucket() string { return filepath.Join(c.store.Root(), bucketName) }

func (c *campaign) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.o.Out, format+"\n", args...)
}

// open makes the work directory and the store, and finds out what can be done here.
func (c *campaign) open(ctx context.Context) (err error) {
	if c.dir, err = workdir.Make(c.o.Dir, "sluice-crash-", 0); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close(ctx))
		}
	}()
	c.store, err = store.Start(ctx, store.Config{
		Root: filepath.Join(c.dir, storeDir), AccessLog: filepath.Join(c.dir, accessLogFile),
		Log: filepath.Join(c.dir, storeLogFile), Command: c.o.StoreCommand,
	})
	if err != nil {
		return err
	}
	if err := c.store.CreateBucket(ctx, bucketName); err != nil {
		return err
	}
	if c.canSweep, err = c.hasCommand(ctx, "sweep"); err != nil {
		return err
	}
	what := fmt.Sprintf("at least %d kills", c.o.Kills)
	if c.o.Job > 0 {
		what = fmt.Sprintf("job %d", c.o.Job)
	}
	c.say("campaign: %s, seed %d, in %s", what, c.o.Seed, c.dir)
	if c.noDisk = canMount(c.dir); c.noDisk != nil {
		c.say("full and read-only disks are left out: %v", c.noDisk)
	}
	if !c.canSweep {
		c.say("this build of sluice has no sweep: uploads left behind are counted apart")
	}
	return nil
}

// hasCommand says whether the binary lists a subcommand.
func (c *campaign) hasCommand(ctx context.Context, name string) (bool, error) {
	var help bytes.Buffer
	l, err := newLife(c.o.Sluice, []string{"--help"}, &help)
	if err != nil {
		return false, err
	}
	if err := l.ended(ctx); err != nil {
		l.kill(nil)
		return false, err
	}
	return strings.Contains(help.String(), "\n  "+name+" "), nil
}

// close stops the store and removes the work directory, also when ctx is done.
func (c *campaign) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	var errs []error
	if c.store != nil {
		errs = append(errs, c.store.Stop(ctx))
	}
	if c.o.Keep || c.failed {
		c.say("kept: %s", c.dir)
	} else {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	return errors.Join(errs...)
}
