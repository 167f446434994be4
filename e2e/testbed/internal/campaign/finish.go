package campaign

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sluice-go/sluice/e2e/testbed/internal/plainfiles"
	"github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"
)

// prove reads back what the job has published, in two ways, and looks for what was left behind.
func (j *job) prove(ctx context.Context) error {
	verdict := j.command(ctx, verifyLog, "verify", j.path(jobFile), "--report", j.path(verifyFile))
	v, err := sluicecmd.ReadReport[sluicecmd.VerifyReport](j.path(verifyFile))
	if err != nil {
		return errors.Join(verdict, err)
	}
	files, err := plainfiles.Count(ctx, filepath.Join(j.c.bucket(), j.p.name()), j.p.row, j.p.rows)
	if err != nil {
		return err
	}
	j.tally.judge(j.p.rows, v, files)
	why := files.Problems(j.p.rows, j.p.row)
	switch {
	case !v.Proven:
		why = append(why, "read-back: "+v.Why)
	case verdict != nil:
		why = append(why, verdict.Error())
	case v.Rows != j.p.rows:
		why = append(why, fmt.Sprintf("read-back: %d rows instead of %d", v.Rows, j.p.rows))
	}
	if len(why) == 0 {
		j.tally.Rows = j.p.rows
	}
	leaks, err := j.leaks(ctx)
	if err != nil {
		return err
	}
	j.tally.Leaked = int64(len(leaks))
	for _, leak := range leaks {
		why = append(why, "left behind: "+leak)
	}
	if len(why) > 0 {
		return failf("%s", strings.Join(why, "; "))
	}
	return nil
}

// leaks sweeps, and returns what is left behind all the same.
func (j *job) leaks(ctx context.Context) ([]string, error) {
	if err := j.quiet(ctx); err != nil {
		return nil, err
	}
	leaks, err := leftFiles(j.path(checkpointsDir), j.shardDir(), j.p.retained)
	if err != nil {
		return nil, err
	}
	before, err := j.uploads(ctx)
	if err != nil {
		return nil, err
	}
	if !j.c.canSweep {
		j.tally.Unswept = len(before)
		return leaks, nil
	}
	if err := j.sweep(ctx); err != nil {
		if _, ok := errors.AsType[*finding](err); ok {
			return append(leaks, err.Error()), nil
		}
		return nil, err
	}
	after, err := j.uploads(ctx)
	if err != nil {
		return nil, err
	}
	j.tally.Swept = len(before) - len(after)
	return append(leaks, after...), nil
}

// uploads asks the server for the job's open uploads.
func (j *job) uploads(ctx context.Context) (open []string, err error) {
	pages := s3.NewListMultipartUploadsPaginator(j.c.store.Client(), &s3.ListMultipartUploadsInput{
		Bucket: aws.String(bucketName), Prefix: aws.String(j.p.name() + "/"),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list uploads: %w", err)
		}
		for _, u := range page.Uploads {
			open = append(open, fmt.Sprintf("upload %s of %s", aws.ToString(u.UploadId), aws.ToString(u.Key)))
		}
	}
	return open, nil
}

func (j *job) sweep(ctx context.Context) error {
	return j.command(ctx, sweepLog, "sweep", j.path(jobFile), "--older-than", "0s")
}

// sweepBeside sweeps while the job runs. The job must not notice.
func (j *job) sweepBeside(ctx context.Context, l *life) error {
	if !j.c.canSweep {
		return nil
	}
	if err := l.await(ctx, (*jobLog).running); err != nil {
		return err
	}
	j.tally.Sweeps++
	if err := j.sweep(ctx); err != nil {
		return fmt.Errorf("beside the job: %w", err)
	}
	return nil
}

// command runs another subcommand to its end. Its output is appended to a file of the job.
func (j *job) command(ctx context.Context, log string, args ...string) error {
	out, err := os.OpenFile(j.path(log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	l, err := newLife(j.c.o.Sluice, args, out)
	if err != nil {
		return err
	}
	if err := l.ended(ctx); err != nil {
		l.kill(nil)
		if errors.Is(err, errLate) {
			return failf("sluice %s: %v", args[0], err)
		}
		return err
	}
	if code := l.proc.ExitCode(); code != 0 {
		return failf("sluice %s: exit code %d: %s", args[0], code, l.log.tail())
	}
	return nil
}

// leftFiles returns what is in the checkpoint directory and should not be: everything but the lock, one epoch, the retained
// manifests and the blobs that they name.
func leftFiles(top, dir string, retained int) (left []string, err error) {
	manifests, _ := filepath.Glob(filepath.Join(dir, "chk-*.json")) // the pattern is well formed
	named := map[string]bool{filepath.Join(dir, "LOCK"): true, newestFile(dir, "epoch-*"): true}
	slices.Sort(manifests)
	for _, path := range manifests[max(0, len(manifests)-retained):] {
		named[path] = true
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		blobs, err := regions(text)
		if err != nil {
			return nil, err
		}
		for _, b := range blobs {
			named[filepath.Join(dir, "blobs", b.file)] = true
		}
	}
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !named[path] {
			left = append(left, path)
		}
		return err
	})
	return left, err
}
