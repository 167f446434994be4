package job

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/sink"
)

// SweepOptions are what a sweep is told besides the configuration of the job.
type SweepOptions struct {
	OlderThan          time.Duration // 0: any age
	Savepoints         []string
	WithoutCheckpoints bool
	DryRun             bool
}

// Sweep aborts the uploads that earlier runs of the configured job and shard have left behind; see sink.Sweep. It may run beside the job.
func Sweep(ctx context.Context, cfg *config.Config, so SweepOptions, log *slog.Logger, opts ...s3fs.Option) (_ sink.SweepReport, err error) {
	o, err := sink.FromConfig(cfg)
	if err != nil {
		return sink.SweepReport{}, &ConfigError{Err: err}
	}
	sweep := sink.SweepOptions{
		Path: o.Path, Job: o.Job, Shard: o.Shard, OlderThan: so.OlderThan, Savepoints: so.Savepoints,
		WithoutCheckpoints: so.WithoutCheckpoints, DryRun: so.DryRun, Logger: log,
	}
	store, err := openCheckpoints(ctx, cfg, o, log, opts)
	switch {
	case err == nil:
		sweep.Checkpoints = store
		defer func() { err = errors.Join(err, store.Close()) }()
	case so.WithoutCheckpoints:
		log.Warn("without a checkpoint store it is not known whether a run is live", "error", err)
	default:
		return sink.SweepReport{}, err
	}
	fs, err := openStore(ctx, cfg, o.Path, log, opts)
	if err != nil {
		return sink.SweepReport{}, err
	}
	defer func() { err = joined(err, fs.Close(context.WithoutCancel(ctx))) }()
	return sink.Sweep(ctx, fs, sweep)
}
