package mainjob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/testbed/internal/accesslog"
	"github.com/sluice-go/sluice/e2e/testbed/internal/figures"
	"github.com/sluice-go/sluice/e2e/testbed/internal/plainfiles"
	"github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"
	"github.com/sluice-go/sluice/e2e/testbed/internal/store"
	"github.com/sluice-go/sluice/e2e/testbed/internal/workdir"
)

// ErrNotProven is returned when the run ended and not every row is proven, for
// whatever reason. The reason has been printed.
var ErrNotProven = errors.New("not proven")

// Files of the work directory.
const (
	jobFile        = "JOB.yaml"
	storeDir       = "store"
	accessLogFile  = "access.log"
	storeLogFile   = "store.log"
	checkpointsDir = "checkpoints"
	verifyFile     = "verify.json"
)

// stopTimeout bounds what is done after the context is done.
const stopTimeout = 10 * time.Second

// run is one run of the driver.
type run struct {
	o     Options
	dir   string
	store *store.Store
}

// Run runs the main job and prints, as the last line, that every row is proven
// or why not. It returns nil only when every row is proven; every other end is
// printed and returns an error that satisfies errors.Is(err, ErrNotProven). When
// ctx is done, everything that was started is stopped, the job after a last
// checkpoint.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("not done within %s", o.Timeout))
	defer cancel()
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	why := []string{}
	if err := o.Validate(); err != nil {
		why = append(why, err.Error())
	} else {
		why = (&run{o: o}).prove(ctx)
	}
	if len(why) > 0 {
		_, _ = fmt.Fprintf(o.Out, "NOT PROVEN: %s\n", strings.ReplaceAll(strings.Join(why, "; "), "\n", "; "))
		return ErrNotProven
	}
	_, err := fmt.Fprintf(o.Out, "PROVEN: %d of %d rows, each exactly once\n", o.Rows(), o.Rows())
	return err
}

// prove does the work and returns the reasons against a proof, none when every
// row is proven.
func (r *run) prove(ctx context.Context) (why []string) {
	if err := r.open(ctx); err != nil {
		return []string{err.Error()}
	}
	defer func() {
		if err := r.close(ctx); err != nil {
			why = append(why, err.Error())
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer r.failWithStore(cancel)()
	r.logf("%s rows of %s, %d writers, a checkpoint every %s", figures.Grouped(r.o.Rows()), r.o.Row, r.o.Writers, config.FormatDuration(r.o.Interval))
	if r.o.Crash > 0 {
		r.logf("%d kills (seed %d), %s rows/s", r.o.Crash, r.o.Seed, figures.Grouped(r.o.Pace()))
	}
	why, err := r.phases(ctx)
	if err != nil {
		why = append(why, err.Error())
	}
	return why
}

// phases writes, reads back, prints and judges.
func (r *run) phases(ctx context.Context) (why []string, err error) {
	marks := make([]int64, 3) // of the access log: before and after writing, after reading
	if marks[0], err = r.mark(); err != nil {
		return nil, err
	}
	w, err := r.write(ctx)
	if err != nil {
		return nil, err
	}
	if marks[1], err = r.mark(); err != nil {
		return nil, err
	}
	v, took, err := r.verify(ctx)
	if err != nil {
		return nil, err
	}
	if marks[2], err = r.mark(); err != nil {
		return nil, err
	}
	write := phase{name: "write", duration: w.duration, bytes: r.o.Rows() * int64(r.o.Row), server: r.served(marks[0], marks[1])}
	if r.o.Crash == 0 {
		write.client, write.operations = &w.report.Totals, w.report.Stats.Operations
	}
	read := phase{name: "read-back", duration: took, bytes: v.Bytes, client: &v.Totals, server: r.served(marks[1], marks[2])}
	if err := r.print(w, write, read); err != nil {
		return nil, err
	}
	why = r.judge(w, v)
	t, err := plainfiles.Count(ctx, filepath.Join(r.store.Root(), bucketName, sinkPrefix), int64(r.o.Row), r.o.Rows())
	if err != nil {
		return why, err
	}
	_, err = fmt.Fprintf(r.o.Out, "plain files, read without S3: %s files, %s rows, %s bytes\n", figures.Grouped(t.Files), figures.Grouped(t.Rows), figures.Grouped(t.Bytes))
	return append(why, t.Problems(r.o.Rows(), int64(r.o.Row))...), err
}

// judge finds what the writing and reading processes themselves have against a
// proof.
func (r *run) judge(w written, v sluicecmd.VerifyReport) (why []string) {
	if !v.Proven {
		why = append(why, "read-back: "+v.Why)
	} else if v.Rows != r.o.Rows() {
		why = append(why, fmt.Sprintf("read-back: %d rows instead of %d", v.Rows, r.o.Rows()))
	}
	if limit := r.o.Budget() + rssAllowance; w.peak > limit {
		why = append(why, fmt.Sprintf("peak RSS of the writing process: %s is more than %s", mebibytes(w.peak), mebibytes(limit)))
	}
	if r.o.Crash > 0 {
		if len(w.deaths) < r.o.Crash {
			why = append(why, fmt.Sprintf("the job ended after %d of %d kills", len(w.deaths), r.o.Crash))
		}
		if len(w.checkpoints) < minCheckpoints {
			why = append(why, fmt.Sprintf("too few checkpoints: %d of at least %d", len(w.checkpoints), minCheckpoints))
		}
	}
	return why
}

// print prints all that a person looks at before the verdict.
func (r *run) print(w written, write, read phase) error {
	var b strings.Builder
	b.WriteByte('\n')
	if err := writeTable(&b, write, read); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\n%s\n%s\n", write.agreement(), read.agreement())
	peak := "not known on this system"
	if w.peak > 0 {
		peak = fmt.Sprintf("%s of %s (budget %s + %s)", mebibytes(w.peak), mebibytes(r.o.Budget()+rssAllowance), mebibytes(r.o.Budget()), mebibytes(rssAllowance))
	}
	fmt.Fprintf(&b, "peak RSS of the writing process: %s\n", peak)
	fmt.Fprintf(&b, "checkpoints committed: %d\n", len(w.checkpoints))
	if len(w.deaths) > 0 {
		fmt.Fprintf(&b, "killed %d times: %s\n", len(w.deaths), strings.Join(w.deaths, ", "))
	}
	_, err := io.WriteString(r.o.Out, b.String())
	return err
}

// verify runs the read-back. A report that proves nothing is no error here.
func (r *run) verify(ctx context.Context) (sluicecmd.VerifyReport, time.Duration, error) {
	began := time.Now()
	c, err := sluicecmd.Start(r.o.Sluice, []string{"verify", r.path(jobFile), "--report", r.path(verifyFile)}, r.o.Log, nil)
	if err != nil {
		return sluicecmd.VerifyReport{}, 0, err
	}
	ended := c.Wait(ctx)
	took := time.Since(began)
	if ctx.Err() != nil {
		return sluicecmd.VerifyReport{}, took, ended
	}
	v, err := sluicecmd.ReadReport[sluicecmd.VerifyReport](r.path(verifyFile))
	if err != nil {
		return v, took, errors.Join(ended, err)
	}
	if v.Proven && ended != nil {
		return v, took, ended
	}
	return v, took, nil
}

// served reads the server's counts of one phase. A log that cannot be read is
// said and leaves the column empty; it says nothing about the rows.
func (r *run) served(from, to int64) *accesslog.Counts {
	c, err := accesslog.Read(r.path(accessLogFile), from, to)
	if err != nil {
		r.logf("no counts of the server: %v", err)
		return nil
	}
	return &c
}

func (r *run) mark() (int64, error) { return accesslog.End(r.path(accessLogFile)) }

func (r *run) path(name string) string { return filepath.Join(r.dir, name) }

func (r *run) logf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.o.Log, format+"\n", args...)
}

// open makes the work directory, the store with its bucket, and the job file.
func (r *run) open(ctx context.Context) (err error) {
	if r.dir, err = workdir.Make(r.o.Dir, "sluice-run-", r.o.space()); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close(ctx))
		}
	}()
	r.store, err = store.Start(ctx, store.Config{
		Root:      r.path(storeDir),
		AccessLog: r.path(accessLogFile),
		Log:       r.path(storeLogFile),
		Command:   r.o.StoreCommand,
	})
	if err != nil {
		return err
	}
	r.logf("store: %s, data in %s", r.store.Endpoint(), r.dir)
	if err := r.store.CreateBucket(ctx, bucketName); err != nil {
		return err
	}
	job, err := sluicecmd.JobYAML(r.o.settings(endpoint{
		url: r.store.Endpoint(), region: store.Region, accessKey: r.store.AccessKey(), secretKey: r.store.SecretKey(),
	}, r.path(checkpointsDir)))
	if err != nil {
		return err
	}
	return os.WriteFile(r.path(jobFile), job, 0o600) // it holds a key
}

// close stops the store and removes the work directory, also when ctx is done.
func (r *run) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	var errs []error
	if r.store != nil {
		errs = append(errs, r.store.Stop(ctx))
	}
	if r.o.Keep {
		r.logf("kept: %s", r.dir)
	} else {
		errs = append(errs, os.RemoveAll(r.dir))
	}
	return errors.Join(errs...)
}

// failWithStore ends the run when the store dies by itself. The returned
// function ends the watch and waits for it.
func (r *run) failWithStore(cancel context.CancelCauseFunc) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-r.store.Done():
			cancel(fmt.Errorf("store: %w", r.store.Err()))
		case <-quit:
		}
	}()
	return func() { close(quit); <-ended }
}
