package job

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/sink"
)

// Job is a datagen-to-sink job that has been checked: every option is valid and fits the others, the store answers and the bucket
// exists. No data has moved.
type Job struct {
	fs      *s3fs.FS
	source  datagen.Options
	sink    sink.Options
	dir     string
	points  checkpoint.Options
	restart checkpoint.RestartStrategy
	log     *slog.Logger

	stopTimeout time.Duration
	warnAge     time.Duration // of an upload that is not published
	epoch       int64         // claimed last
}

// ErrStopped is returned by Run when it was told to stop before the source ended: the final checkpoint is durable, and the
// next run goes on there.
var ErrStopped = errors.New("stopped before the source ended")

// ConfigError says that the configuration or the store is unusable. No data has moved.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }
func (e *ConfigError) Unwrap() error { return e.Err }

// Report is what one run did.
type Report struct {
	Rows        int64           `json:"rows"`        // published, over all runs of this shard
	Bytes       int64           `json:"bytes"`       // published
	Files       int64           `json:"files"`       // published
	Staged      int64           `json:"staged_rows"` // durable in the last checkpoint, not yet published
	Lost        int64           `json:"lost_rows"`   // generated after the last checkpoint: generated again by the next run
	Checkpoints int64           `json:"checkpoints"` // of this process
	Restarts    int             `json:"restarts"`
	Started     bool            `json:"started"` // false: the last checkpoint was not reached, and nothing is known of earlier runs
	Seconds     float64         `json:"duration_seconds"`
	Totals      Traffic         `json:"totals"`
	Stats       retrymode.Stats `json:"stats"` // by operation
}

// Traffic is what a client has asked of the store, over all operations.
type Traffic struct {
	Calls     int64 `json:"calls"`    // a repeated call counts once
	Attempts  int64 `json:"attempts"` // on the wire
	Throttles int64 `json:"throttles"`
	CutOff    int64 `json:"cut_off"` // ended without an answer
	Retries   int64 `json:"retries"`
}

// New checks the configuration and the store. All problems of the configuration are reported together.
func New(ctx context.Context, cfg *config.Config, log *slog.Logger, opts ...s3fs.Option) (*Job, error) {
	j := &Job{log: log, stopTimeout: config.Get(cfg, KeyStopTimeout), warnAge: config.Get(cfg, sink.KeyUploadWarnAge)}
	var errs [6]error
	j.source, errs[0] = datagen.FromConfig(cfg)
	j.sink, errs[1] = sink.FromConfig(cfg)
	j.dir, j.points, errs[2] = sink.CheckpointsFromConfig(cfg)
	j.restart, errs[3] = sink.RestartFromConfig(cfg)
	_, errs[4] = s3fs.FromConfig(cfg)
	errs[5] = checkRewrite(j.sink.Expired, &datagen.Source{}, j.points.Retain)
	if errs[2] == nil {
		errs[2] = checkCheckpointPlace(j.dir, j.sink.Path)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, &ConfigError{Err: err}
	}
	j.points.Logger = log
	j.points.Config = effective(cfg)
	fs, err := openStore(ctx, cfg, j.sink.Path, log, opts)
	if err != nil {
		return nil, err
	}
	if err := checkCheckpointBucket(ctx, fs, j.dir, j.sink.Path.Bucket); err != nil {
		err = joined(err, fs.Close(context.WithoutCancel(ctx)))
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, &ConfigError{Err: err}
	}
	j.fs = fs
	return j, nil
}

// AllowRollback lets the next Run go back behind commit records: what they list is deleted first. Call it before Run.
func (j *Job) AllowRollback() { j.sink.Rollback = true }

// Close ends the S3 client.
func (j *Job) Close(ctx context.Context) error { return j.fs.Close(ctx) }

// Run runs the job until its source ends and every row is published, restarting it from its last checkpoint as the restart
// strategy says. When ctx ends first it takes a final checkpoint and returns ErrStopped. The report is valid with every error.
func (j *Job) Run(ctx context.Context) (Report, error) {
	start := time.Now()
	var report Report
	rewinds, committed := 0, int64(0)
	for {
		err := j.attempt(ctx, &report)
		report.Seconds = time.Since(start).Seconds()
		report.Totals, report.Stats = traffic(j.fs), j.fs.Stats()
		if err == nil || errors.Is(err, ErrStopped) || permanent(err) || ctx.Err() != nil {
			return report, err
		}
		if report.Checkpoints > committed {
			rewinds, committed = 0, report.Checkpoints
		}
		if j.lost(err) != nil && rewinds < maxRewinds {
			back := j.rewind(ctx, err)
			if back == nil {
				rewinds++
				report.Restarts++
				continue
			}
			if _, refused := errors.AsType[*RewriteError](back); refused || permanent(back) {
				return report, back
			}
			err = joined(back, err) // the store did not answer: the restart strategy decides
		}
		delay, again := j.restart.Next(time.Now())
		if !again {
			return report, err
		}
		report.Restarts++
		j.log.Warn("job failed, restarting from the last checkpoint", "error", err, "restart", report.Restarts, "delay", delay)
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return report, err
		}
	}
}

func traffic(fs *s3fs.FS) Traffic {
	t := fs.Stats().Total
	return Traffic{
		Calls: t.Calls, Attempts: t.Attempts, Throttles: t.Throttles, CutOff: t.CutOff, Retries: t.RetriesAfterThrottle + t.RetriesAfterTransient,
	}
}

// permanent says whether a restart would fail in the same way.
func permanent(err error) bool {
	if _, damaged := errors.AsType[*checkpoint.DamagedError](err); damaged {
		return true
	}
	if _, other := errors.AsType[*datagen.MismatchError](err); other {
		return true
	}
	for _, target := range []error{
		checkpoint.ErrEpochTaken, checkpoint.ErrFenced, sink.ErrNewerRecord, sink.ErrState, sink.ErrOtherStore, sink.ErrRecord,
		sink.ErrRecordConflict, datagen.ErrPosition,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// effective returns the configuration for the checkpoint, secrets masked, and the version of the SDK that carries it out.
func effective(cfg *config.Config) map[string]string {
	out := map[string]string{"aws-sdk-go-v2": retrymode.SDKVersion}
	for _, s := range cfg.Effective() {
		out[s.Key] = s.Value
	}
	return out
}
