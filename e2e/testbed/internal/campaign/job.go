package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"
	"github.com/sluice-go/sluice/e2e/testbed/internal/store"
)

// Files of a job's directory.
const (
	jobFile        = "JOB.yaml"
	planFile       = "plan.txt"
	checkpointsDir = "checkpoints"
	verifyFile     = "verify.json"
	verifyLog      = "verify.log"
	sweepLog       = "sweep.log"
)

// finding is an error of what is tested, not of the campaign.
type finding struct{ text string }

func (f *finding) Error() string { return f.text }

func failf(format string, args ...any) error { return &finding{fmt.Sprintf(format, args...)} }

// job is one job under way.
type job struct {
	c     *campaign
	p     jobPlan
	dir   string
	disk  *disk // nil: the checkpoints are on an ordinary one
	tally Tally

	processes int
	stuck     []claim // uploads that the server has lost, not yet named by the job
	finished  bool

	durable, begun int64  // the greatest checkpoints that any process told
	epoch          int64  // of the last process
	promise        *int64 // rows that the next process has to begin with, by the statement of the one before
}

// run takes the job through its plan and proves it.
func (j *job) run(ctx context.Context) (err error) {
	if err := j.prepare(); err != nil {
		return err
	}
	defer func() {
		if j.disk != nil {
			err = errors.Join(err, j.keepFiles(err), j.disk.unmount())
		}
	}()
	for _, p := range j.p.lives {
		if j.finished {
			break
		}
		if err := j.disturbed(ctx, p); err != nil {
			return err
		}
	}
	if len(j.stuck) > 0 {
		if err := j.live(ctx, j.awaitNamed); err != nil {
			return err
		}
	}
	undisturbed := func(ctx context.Context, l *life) error { return l.ended(ctx) }
	if !j.finished {
		if err := j.live(ctx, undisturbed, "-D", "datagen.rows-per-second=0"); err != nil {
			return err
		}
	}
	if j.p.again {
		if err := j.live(ctx, undisturbed); err != nil {
			return fmt.Errorf("once more after the end: %w", err)
		}
	}
	return j.prove(ctx)
}

// prepare makes the directory, the disk and the job file.
func (j *job) prepare() error {
	if err := os.MkdirAll(j.path(checkpointsDir), 0o755); err != nil {
		return err
	}
	if j.p.disk && j.c.noDisk == nil {
		d, err := mountDisk(j.path(checkpointsDir))
		if err != nil {
			return err
		}
		j.disk = d
	}
	text, err := sluicecmd.JobYAML(j.settings())
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(j.path(planFile), []byte(j.p.String()), 0o600), os.WriteFile(j.path(jobFile), text, 0o600)) // it holds a key
}

func (j *job) settings() []sluicecmd.Setting {
	s, p := j.c.store, j.p
	restart := "none"
	if p.restarts {
		restart = "fixed-delay"
	}
	return []sluicecmd.Setting{
		{Key: "job.name", Value: p.name()},
		{Key: "s3.endpoint", Value: s.Endpoint()},
		{Key: "s3.region", Value: store.Region},
		{Key: "s3.path-style-access", Value: "true"},
		{Key: "s3.access-key", Value: s.AccessKey()},
		{Key: "s3.secret-key", Value: s.SecretKey()},
		{Key: "s3.upload.min.part.size", Value: partSize.String()},
		{Key: "s3.retry.mode", Value: p.mode},
		{Key: "s3.retry.max-num-retries", Value: strconv.Itoa(p.retries)},
		{Key: "sink.path", Value: "s3://" + bucketName + "/" + p.name()},
		{Key: "sink.writers", Value: strconv.Itoa(p.writers)},
		{Key: "sink.rolling-policy.file-size", Value: p.file.String()},
		{Key: "sink.rolling-policy.on-checkpoint", Value: strconv.FormatBool(p.onCheckpoint)},
		{Key: "sink.commit.deadline", Value: "2 s"},
		{Key: "checkpoint.dir", Value: j.path(checkpointsDir)},
		{Key: "checkpoint.interval", Value: config.FormatDuration(p.interval)},
		{Key: "checkpoint.num-retained", Value: strconv.Itoa(p.retained)},
		{Key: "checkpoint.tolerable-failures", Value: strconv.Itoa(p.tolerable)},
		{Key: "datagen.number-of-rows", Value: strconv.FormatInt(p.rows, 10)},
		{Key: "datagen.rows-per-second", Value: strconv.FormatInt(p.pace, 10)},
		{Key: "datagen.seed", Value: strconv.Itoa(p.number)},
		{Key: "datagen.fields.f.kind", Value: "random"},
		{Key: "datagen.fields.f.length", Value: strconv.FormatInt(p.row-1, 10)}, // a raw row ends with a line feed
		{Key: "restart-strategy.type", Value: restart},
		{Key: "restart-strategy.fixed-delay.attempts", Value: "10"},
		{Key: "restart-strategy.fixed-delay.delay", Value: "200 ms"},
	}
}

// disturbed runs one process of the plan, after what happens before it.
func (j *job) disturbed(ctx context.Context, p lifePlan) error {
	if len(j.stuck) > 0 { // nothing else before the job has named them
		return j.live(ctx, j.awaitNamed)
	}
	if err := j.suffer(ctx, p); err != nil || j.finished {
		return err
	}
	var more []string
	if p.writers > 0 {
		more = append(more, "-D", "sink.writers="+strconv.Itoa(p.writers))
	}
	if p.end == finishing { // no checkpoint before the last one
		more = append(more, "-D", "datagen.rows-per-second=0", "-D", "checkpoint.interval=1 h")
	}
	return j.live(ctx, func(ctx context.Context, l *life) error {
		err := j.script(ctx, l, p)
		if errors.Is(err, errEnded) {
			return nil // whether it had a reason is judged with every end
		}
		return err
	}, more...)
}

// script is what happens to a running process, up to its end.
func (j *job) script(ctx context.Context, l *life, p lifePlan) error {
	if p.sweep {
		if err := j.sweepBeside(ctx, l); err != nil {
			return err
		}
	}
	if err := j.trouble(ctx, l, p); err != nil {
		return err
	}
	if len(j.stuck) > 0 {
		return j.awaitNamed(ctx, l)
	}
	if err := j.aim(ctx, l, p); err != nil {
		return err
	}
	if p.term {
		l.tell()
		return l.ended(ctx)
	}
	if p.end == finishing {
		l.at = finishing
	}
	j.kill(l)
	return nil
}

// kill strikes a process and notes where it was, as far as its log cannot tell.
func (j *job) kill(l *life) {
	l.kill(func() {
		switch {
		case l.told:
			l.at = stopping
		case l.at == finishing:
		case len(j.newClaims()) > 0:
			l.at = completing
		}
	})
	if l.at == cleaning && l.log.place() != between {
		l.at = ""
	}
}

// live runs one process to its end, whatever happens, and judges it.
func (j *job) live(ctx context.Context, script func(context.Context, *life) error, more ...string) error {
	j.processes++
	out, err := os.Create(j.path(fmt.Sprintf("process-%d.log", j.processes)))
	if err != nil {
		return err
	}
	defer out.Close()
	args := append([]string{"run", j.path(jobFile)}, more...)
	l, err := newLife(j.c.o.Sluice, args, out)
	if err != nil {
		return err
	}
	err = script(ctx, l)
	if err != nil {
		l.kill(nil)
	} else {
		<-l.proc.Done()
	}
	if errors.Is(err, errLate) {
		err = failf("process %d: %v", j.processes, err)
	}
	if err := errors.Join(err, j.settle(ctx, l)); err != nil {
		return fmt.Errorf("process %d: %w", j.processes, err)
	}
	return nil
}

// settle counts and judges a process that is gone.
func (j *job) settle(ctx context.Context, l *life) error {
	g := l.log
	j.tally.Processes++
	j.tally.Checkpoints += g.commits
	j.tally.Restarts += max(0, len(g.starts)-1)
	j.c.lengths.learn(g)
	err := j.continuity(g)
	if at, ok := l.killed(); ok {
		j.tally.Kills[at]++
		return err
	}
	return errors.Join(err, j.judgeEnd(ctx, l))
}

// continuity checks that each start goes on where the job was: from the newest durable checkpoint, in a later epoch, with the rows that
// the last statement promised.
func (j *job) continuity(g *jobLog) error {
	for i, s := range g.starts {
		low, high := max(j.durable, s.durable), max(j.begun, s.begun)
		if s.restored < low || s.restored > max(low, high) {
			return failf("checkpoint %d was restored, but %d was durable and %d begun", s.restored, low, high)
		}
		if s.epoch <= j.epoch {
			return failf("epoch %d after epoch %d", s.epoch, j.epoch)
		}
		if i == 0 && j.promise != nil && *j.promise != s.rows {
			return failf("the last process has stated %d published and staged rows, this one begins with %d", *j.promise, s.rows)
		}
		j.epoch, j.promise = s.epoch, nil
	}
	j.durable, j.begun = max(j.durable, g.durable), max(j.begun, g.begun)
	return nil
}

// judgeEnd judges a process that was not killed.
func (j *job) judgeEnd(ctx context.Context, l *life) error {
	g, code := l.log, l.proc.ExitCode()
	switch {
	case g.panicked:
		return failf("panic: %s", g.tail())
	case code == 0:
		if s := g.statement; s == nil || s.state != "finished" || s.rows != j.p.rows || s.staged != 0 {
			return failf("exit code 0, but its statement is %+v", s)
		}
		j.finished = true
		return nil
	case code == 4 && l.told:
		return j.judgeStatement(ctx, l)
	case code <= 0 || code == 4:
		return failf("it ended with code %d, and nobody has asked it to: %s", code, g.tail())
	}
	for _, reason := range l.excuses {
		if len(g.problems) > 0 && g.said(reason) {
			j.tally.Failures++
			return nil
		}
	}
	return failf("it failed with code %d without one of the reasons %q: %s", code, l.excuses, g.tail())
}

// judgeStatement checks what a process says that was told to stop.
func (j *job) judgeStatement(ctx context.Context, l *life) error {
	s := l.log.statement
	if s == nil || s.state != "stopped" {
		return failf("exit code 4, but its statement is %+v", s)
	}
	j.tally.Terms++
	rows := s.rows + s.staged
	j.promise = &rows
	if len(l.excuses) > 0 {
		return nil
	}
	if err := j.quiet(ctx); err != nil {
		return err
	}
	all, err := objects(j.c.bucket(), j.p.name())
	if err != nil {
		return err
	}
	var files, size int64
	for key, n := range all {
		if !strings.Contains(key, "/_sluice/") {
			files++
			size += n
		}
	}
	if files != s.files || size != s.bytes {
		return failf("it has stated %d published files of %d bytes, the store has %d of %d", s.files, s.bytes, files, size)
	}
	return nil
}

// tail is the last of what a process complained about.
func (g *jobLog) tail() string {
	last := g.problems[max(0, len(g.problems)-3):]
	return strings.Join(last, " | ")
}

func (j *job) path(name string) string { return filepath.Join(j.dir, name) }

// shardDir is where the job keeps its checkpoints.
func (j *job) shardDir() string { return j.path(filepath.Join(checkpointsDir, j.p.name(), "0-of-1")) }

// keepFiles copies the checkpoints of a failed job out of the disk that is about to go.
func (j *job) keepFiles(failed error) error {
	if failed == nil {
		return nil
	}
	return os.CopyFS(j.path(checkpointsDir+"-of-"+time.Now().UTC().Format("150405")), os.DirFS(j.path(checkpointsDir)))
}
