package quota

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluice-go/sluice/e2e/testbed/internal/plainfiles"
	"github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"
)

// Files of a job's directory.
const (
	jobFile        = "JOB.yaml"
	storeDir       = "store"
	checkpointsDir = "checkpoints"
)

// job runs one job on a store of its own: write, and, when that went well, read
// back and count the plain files. An error says that the job could not be run;
// how it ended is in the result.
func (e *experiment) job(ctx context.Context, j Job) (r Result, err error) {
	r = Result{Job: j, Rows: j.rows()}
	dir := filepath.Join(e.dir, strings.ReplaceAll(j.Name(), "/", "-"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return r, err
	}
	defer func() {
		// Objects and checkpoints are many gigabytes over all jobs.
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, storeDir)), os.RemoveAll(filepath.Join(dir, checkpointsDir)))
	}()
	l, err := open(ctx, e.o, j.Lane, dir)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, l.close(ctx)) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer l.watch(cancel)()
	text, err := sluicecmd.JobYAML(j.settings(l.target(), filepath.Join(dir, checkpointsDir), e.o.Limiter))
	if err != nil {
		return r, err
	}
	if err := os.WriteFile(filepath.Join(dir, jobFile), text, 0o600); err != nil { // it holds a key
		return r, err
	}
	e.logf("%-22s begins", j.Name())
	if err := e.write(ctx, dir, l, &r); err != nil {
		return r, err
	}
	if r.died() {
		r.Why = "the job died"
		e.logf("%-22s died after %.0f s: %s", j.Name(), r.Write.Seconds, short(r.LastError))
		return r, nil
	}
	err = e.readBack(ctx, dir, l, &r)
	e.logf("%-22s wrote in %.0f s, read back in %.0f s, proven: %t %s", j.Name(), r.Write.Seconds, r.Read.Seconds, r.Proven, r.Why)
	return r, err
}

// write runs `sluice run` to its end.
func (e *experiment) write(ctx context.Context, dir string, l *limited, r *Result) error {
	report := filepath.Join(dir, "run.json")
	var said words
	took, code, err := e.sluice(ctx, dir, "run", report, &said, e.ticker(r.Job))
	if err != nil {
		return err
	}
	r.ExitCode = code
	r.Write.Seconds = took.Seconds()
	if r.died() {
		r.LastError = said.last()
	}
	// A process that died may have left no report, and says nothing about bytes.
	if rep, err := sluicecmd.ReadReport[sluicecmd.RunReport](report); err == nil {
		r.Write.Client = &rep.Totals
		if !r.died() {
			r.Write.Bytes = r.Rows * rowSize
		}
	} else if !r.died() {
		return err
	}
	r.Write.Quota, err = l.tally(ctx)
	return err
}

// readBack runs `sluice verify`, and counts the rows once more without S3.
func (e *experiment) readBack(ctx context.Context, dir string, l *limited, r *Result) error {
	report := filepath.Join(dir, "verify.json")
	var said words
	took, code, err := e.sluice(ctx, dir, "verify", report, &said, nil)
	if err != nil {
		return err
	}
	r.Read = &Phase{Seconds: took.Seconds()}
	if r.Read.Quota, err = l.tally(ctx); err != nil {
		return err
	}
	v, err := sluicecmd.ReadReport[sluicecmd.VerifyReport](report)
	if err != nil {
		r.Why = fmt.Sprintf("read-back: exit code %d: %s", code, said.last())
		return nil
	}
	r.Read.Bytes, r.Read.Client = v.Bytes, &v.Totals
	switch {
	case !v.Proven:
		r.Why = "read-back: " + v.Why
	case code != 0:
		r.Why = fmt.Sprintf("read-back: exit code %d: %s", code, said.last())
	case v.Rows != r.Rows:
		r.Why = fmt.Sprintf("read-back: %d rows instead of %d", v.Rows, r.Rows)
	}
	t, err := plainfiles.Count(ctx, filepath.Join(l.store.Root(), bucketName, sinkPrefix), rowSize, r.Rows)
	if err != nil {
		return err
	}
	if p := t.Problems(r.Rows, rowSize); r.Why == "" && len(p) > 0 {
		r.Why = strings.Join(p, "; ")
	}
	r.Proven = r.Why == ""
	return nil
}

// sluice runs one command on the job file. Its output goes to a file of the
// directory. An exit code other than 0 is no error.
func (e *experiment) sluice(ctx context.Context, dir, command, report string, said *words, onLine func(string)) (took time.Duration, code int, err error) {
	out, err := os.Create(filepath.Join(dir, command+".log"))
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	began := time.Now()
	p, err := sluicecmd.Start(e.o.Sluice, []string{command, filepath.Join(dir, jobFile), "--report", report}, out, func(line string) {
		said.take(line)
		if onLine != nil {
			onLine(line)
		}
	})
	if err != nil {
		return 0, 0, err
	}
	_ = p.Wait(ctx) // how it ended is its exit code
	if ctx.Err() != nil {
		return 0, 0, context.Cause(ctx)
	}
	return time.Since(began), p.ExitCode(), nil
}

// ticker passes on the job's own progress now and then.
func (e *experiment) ticker(j Job) func(string) {
	const every = 20 * time.Second
	next := time.Now().Add(every)
	return func(line string) {
		if time.Now().Before(next) || sluicecmd.Attr(line, "msg") != "progress" {
			return
		}
		next = time.Now().Add(every)
		e.logf("%-22s %s of %d rows generated, %s published, %s calls, %s throttled, %s retries", j.Name(),
			sluicecmd.Attr(line, "rows"), j.rows(), sluicecmd.Attr(line, "published_rows"), sluicecmd.Attr(line, "s3_calls"),
			sluicecmd.Attr(line, "throttled"), sluicecmd.Attr(line, "retries"))
	}
}
