package sink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/s3fs"
)

// DefaultSweepAge is how old an upload has to be for a sweep when nothing else is said. With a store that one live run at a time can hold,
// the proof does not need it. It is there for what no proof covers: two checkpoint directories for one job, a lock that does not
// work, or a store without one, in which a run that was taken over may win the number of one more checkpoint. All of these would need an
// upload that no checkpoint has named for this long, too.
const DefaultSweepAge = time.Hour

// ErrSweepRefused is returned by Sweep, before anything was aborted, when it cannot know what checkpoints name.
var ErrSweepRefused = errors.New("nothing was swept")

// SweepOptions configures a Sweep.
type SweepOptions struct {
	Path  s3fs.Path        // of the sink, as in Options
	Job   string           // as in Options
	Shard checkpoint.Shard // as in Options; the zero value is shard 0 of 1

	// Checkpoints is the store of this job and shard. It is required, unless WithoutCheckpoints is set; then, if it is given and says
	// that a run is live, Sweep refuses all the same.
	Checkpoints SweepStore
	// Savepoints are directories that hold copies of checkpoints, at any depth. What those name is kept.
	Savepoints []string
	// WithoutCheckpoints sweeps by age alone. Everything that a retained checkpoint needs and that is older than OlderThan is lost.
	WithoutCheckpoints bool

	OlderThan time.Duration // by the store's time of creation and this machine's clock; 0: any age
	DryRun    bool          // abort nothing

	AbortTimeout time.Duration // for one abort; 0: one minute
	Parallelism  int           // calls at once; 0: 8

	Logger *slog.Logger // nil: no log
}

// Validate returns all problems at once.
func (o SweepOptions) Validate() error {
	o = o.withDefaults()
	problems := []error{o.Shard.Validate()}
	if o.Path.Bucket == "" {
		problems = append(problems, fmt.Errorf("%s: no bucket", KeyPath.Name()))
	}
	if err := checkJobName(o.Job); err != nil {
		problems = append(problems, fmt.Errorf("%s: %w", KeyJobName.Name(), err))
	}
	if o.OlderThan < 0 || o.AbortTimeout < 0 || o.Parallelism < 0 {
		problems = append(problems, errors.New("a duration or count of the sweep is negative"))
	}
	if o.Checkpoints == nil && !o.WithoutCheckpoints {
		problems = append(problems, errors.New("no checkpoint store"))
	}
	return errors.Join(problems...)
}

func (o SweepOptions) withDefaults() SweepOptions {
	setDefault(&o.Shard, checkpoint.Shard{Index: 0, Count: 1})
	setDefault(&o.AbortTimeout, time.Minute)
	setDefault(&o.Parallelism, 8)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Sweep aborts the multipart uploads that runs of one job and shard have left behind, and nothing else: uploads whose key is a part file's
// of this job and shard, of a finished epoch, that no checkpoint names, older than the guard; see SweepFacts for why that is proof.
// It deletes no object. It may run beside the job, and beside other sweeps.
//
// The error is ErrSweepRefused, with its cause, when what checkpoints name cannot be known: nothing was aborted then. A failed abort
// does not stop the others; the error joins them. An abort that has begun is finished, within AbortTimeout, when ctx ends; no other
// is begun. The report is valid with every error.
func Sweep(ctx context.Context, fs *s3fs.FS, o SweepOptions) (SweepReport, error) {
	if err := o.Validate(); err != nil {
		return SweepReport{}, fmt.Errorf("%w: %w", ErrSweepRefused, err)
	}
	s := &sweep{SweepOptions: o.withDefaults(), fs: fs}
	s.report = SweepReport{
		Path: s.Path.String(), Job: s.Job, Shard: s.Shard.String(), DryRun: s.DryRun, OlderThan: s.OlderThan.Seconds(),
		WithoutCheckpoints: s.WithoutCheckpoints, Run: runNotAsked,
	}
	facts, err := s.gather(ctx)
	if err != nil {
		return s.report, fmt.Errorf("%w: %w", ErrSweepRefused, err)
	}
	decisions := PlanSweep(facts)
	s.report.Uploads = make([]SweptUpload, len(decisions))
	for i, d := range decisions {
		s.report.Uploads[i] = newSweptUpload(d, facts.Now)
	}
	err = s.carryOut(ctx, decisions)
	s.report.addUp()
	return s.report, err
}

// sweep is one Sweep under way.
type sweep struct {
	SweepOptions
	fs     *s3fs.FS
	report SweepReport
}

// gather finds the facts, in the order that the proof needs.
func (s *sweep) gather(ctx context.Context) (f SweepFacts, err error) {
	f = SweepFacts{
		Path: s.Path, Job: s.Job, Shard: s.Shard, Now: time.Now(), OlderThan: s.OlderThan, Live: true,
		WithoutCheckpoints: s.WithoutCheckpoints,
	}
	for u, err := range s.fs.ListMultipartUploads(ctx, sweepPrefix(s.Path, s.Job, s.Shard)) {
		if err != nil {
			return f, err
		}
		f.Uploads = append(f.Uploads, u)
	}
	if s.WithoutCheckpoints {
		err = s.refuseLive(ctx)
	} else {
		err = s.askStore(ctx, &f)
	}
	if err != nil {
		return f, err
	}
	for _, dir := range s.Savepoints {
		named, count, err := savepointUploads(ctx, dir)
		if err != nil {
			return f, err
		}
		f.Savepoints = append(f.Savepoints, named...)
		s.report.Savepoints += count
	}
	return f, nil
}

// askStore asks for the newest epoch and its run, and then what the retained checkpoints name.
func (s *sweep) askStore(ctx context.Context, f *SweepFacts) (err error) {
	if f.NewestEpoch, err = s.Checkpoints.NewestEpoch(ctx); err != nil {
		return err
	}
	if f.NewestEpoch == 0 {
		return errors.New("no run has ever claimed an epoch in the checkpoint store: it is not this job's, or not the right place")
	}
	s.report.NewestEpoch = f.NewestEpoch
	// Looking for the run touches its lock. Without the answer a run is taken for live, so it is asked for only when there is an upload
	// whose fate depends on it.
	if anyOldEnough(*f) {
		live, holder, err := s.Checkpoints.Live(ctx)
		f.Live = live || err != nil
		s.report.Run = runText(live, holder, err)
	}
	var ids []checkpoint.ID
	f.Retained, ids, err = retainedUploads(ctx, s.Checkpoints)
	s.report.Checkpoints = append([]checkpoint.ID{}, ids...)
	return err
}

// anyOldEnough says whether any upload would be aborted if no run was live and no checkpoint named it.
func anyOldEnough(f SweepFacts) bool {
	f.Live = false
	for _, d := range PlanSweep(f) {
		if d.Abort {
			return true
		}
	}
	return false
}

// refuseLive ends a sweep without checkpoints when a run is known to be live: all its uploads would be fair game.
func (s *sweep) refuseLive(ctx context.Context) error {
	if s.Checkpoints == nil {
		return nil
	}
	live, holder, err := s.Checkpoints.Live(ctx)
	s.report.Run = runText(live, holder, err)
	if err == nil && live {
		return fmt.Errorf("a run is live (%s), and without checkpoints nobody knows what it needs", holder)
	}
	return nil
}

// carryOut measures every upload and aborts those it is to. Uploads come and go meanwhile; the decisions stay right.
func (s *sweep) carryOut(ctx context.Context, decisions []SweepDecision) error {
	var g errgroup.Group
	g.SetLimit(s.Parallelism)
	errs := make([]error, len(decisions))
	for i, d := range decisions {
		g.Go(func() error {
			u := &s.report.Uploads[i]
			s.measure(ctx, d.Upload, u)
			if d.Abort && !s.DryRun {
				errs[i] = s.abort(ctx, d, u)
			}
			return nil
		})
	}
	_ = g.Wait() // errors are collected in errs
	return errors.Join(errs...)
}

// measure counts the parts and bytes of an upload. That they cannot be had stops nothing.
func (s *sweep) measure(ctx context.Context, of s3fs.Upload, u *SweptUpload) {
	parts, err := s.fs.API().ListParts(ctx, multipart.Target{Bucket: of.Path.Bucket, Key: of.Path.Key}, of.UploadID)
	if errors.Is(err, multipart.ErrNoSuchUpload) {
		u.Outcome = OutcomeGone
		return
	}
	if err != nil {
		u.Unmeasured = err.Error()
		return
	}
	u.Parts = len(parts)
	for _, p := range parts {
		u.Bytes += p.Size
	}
}

// abort aborts one upload. It has its own time: a sweep that is told to stop finishes what it has begun.
func (s *sweep) abort(ctx context.Context, d SweepDecision, u *SweptUpload) error {
	if u.Outcome == OutcomeGone {
		return nil
	}
	err := context.Cause(ctx)
	if err == nil {
		own, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.AbortTimeout, errAbortTimeout)
		defer cancel()
		err = s.fs.AbortUpload(own, d.Upload.Path, d.Upload.UploadID)
	} else {
		err = fmt.Errorf("abort %s, upload %s: %w", d.Upload.Path, d.Upload.UploadID, err)
	}
	if err != nil {
		u.Outcome, u.Error = OutcomeFailed, err.Error()
		s.Logger.Warn("upload not aborted", "key", d.Upload.Path.Key, "upload_id", d.Upload.UploadID, "error", err)
		return err
	}
	u.Outcome = OutcomeAborted
	s.Logger.Info("upload aborted", "key", d.Upload.Path.Key, "upload_id", d.Upload.UploadID, "epoch", d.Epoch, "parts", u.Parts, "bytes", u.Bytes)
	return nil
}

var errAbortTimeout = errors.New("the abort took too long")
