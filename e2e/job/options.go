package job

import (
	"time"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/sink"
)

// KeyStopTimeout bounds the final checkpoint after a signal.
var KeyStopTimeout = config.Duration("job.stop-timeout", time.Minute,
	"How long a job that is told to stop may take for its final checkpoint.",
	config.Range(time.Millisecond, 24*time.Hour))

// Registry returns the registry of every option of a datagen-to-sink job.
func Registry() (*config.Registry, error) {
	return config.NewRegistry(
		s3fs.Keys(), retrymode.Keys(), sink.Keys(), sink.CheckpointKeys(), datagen.Keys(),
		[]config.Info{KeyStopTimeout.Info()},
	)
}
