package job

import (
	"context"
	"errors"
	"log/slog"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/sluice-go/sluice/e2e/readback"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/sink"
)

// Verify reads back what the configured job has published and returns the findings and what reading cost. An error means that the
// check could not be made or finished.
func Verify(ctx context.Context, cfg *config.Config, log *slog.Logger, opts ...s3fs.Option) (_ *readback.Report, _ Traffic, err error) {
	source, sourceErr := datagen.FromConfig(cfg)
	o, sinkErr := sink.FromConfig(cfg)
	if err := errors.Join(sourceErr, sinkErr); err != nil {
		return nil, Traffic{}, &ConfigError{Err: err}
	}
	fs, err := openStore(ctx, cfg, o.Path, log, opts)
	if err != nil {
		return nil, Traffic{}, err
	}
	defer func() { err = errors.Join(err, fs.Close(context.WithoutCancel(ctx))) }()
	r, err := readback.Verify(ctx, fs, readback.Target{Path: o.Path, Job: o.Job, Source: source}, readback.Options{})
	if err != nil {
		return nil, Traffic{}, err
	}
	t := traffic(fs)
	r.Requests = &readback.Requests{Calls: t.Calls, Attempts: t.Attempts, Throttled: t.Throttles}
	return r, t, nil
}

// openStore opens the file system and checks that the store answers, the credentials fit and the bucket exists.
func openStore(ctx context.Context, cfg *config.Config, path s3fs.Path, log *slog.Logger, opts []s3fs.Option) (*s3fs.FS, error) {
	fs, err := s3fs.Open(ctx, cfg, append(opts, s3fs.WithLogger(log))...)
	if err == nil {
		if err = fs.CheckBucket(ctx, path.Bucket); err == nil {
			return fs, nil
		}
		err = joined(err, fs.Close(context.WithoutCancel(ctx)))
	}
	if ctx.Err() != nil {
		return nil, err // interrupted: that says nothing about the configuration
	}
	return nil, &ConfigError{Err: err}
}
