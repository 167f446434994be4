package sink

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/s3fs"
)

const maxDuration = 365 * 24 * time.Hour

// commitBacklog is how many checkpoints may wait for their files to be published while the next one is taken. A store's Complete may
// take seconds; two are enough to hide that, and what waits holds memory.
const commitBacklog = 2

// The options of checkpoints and restarts, with Flink's names as other spellings. They are declared here because package
// checkpoint knows the standard library only.
var (
	KeyCheckpointDir = config.String("checkpoint.dir", "",
		"Directory of the checkpoints, or `s3://bucket/prefix` in the same store as the part files, not below `sink.path`. A directory must survive the process, and the machine if rows are to. Required.",
		config.NoDefault[string](), config.WithCheck(checkCheckpointDir), config.WithAliases[string]("execution.checkpointing.dir", "state.checkpoints.dir"))
	KeyCheckpointInterval = config.Duration("checkpoint.interval", 10*time.Second,
		"Time from the start of one checkpoint to the start of the next.",
		config.WithAliases[time.Duration]("execution.checkpointing.interval"), config.Range(time.Millisecond, maxDuration))
	KeyCheckpointTimeout = config.Duration("checkpoint.timeout", checkpoint.DefaultTimeout,
		"A checkpoint that is not durable after this long is abandoned; its work goes into the next one. The commits of a checkpoint have as long.",
		config.WithAliases[time.Duration]("execution.checkpointing.timeout"), config.Range(time.Millisecond, maxDuration))
	KeyCheckpointMinPause = config.Duration("checkpoint.min-pause", 0,
		"Least time from the end of one checkpoint to the start of the next.",
		config.WithAliases[time.Duration]("execution.checkpointing.min-pause"), config.Range(0, maxDuration))
	KeyCheckpointTolerable = config.Int("checkpoint.tolerable-failures", 0,
		"How many checkpoints in a row, commits included, may fail before the job does.",
		config.WithAliases[int64]("execution.checkpointing.tolerable-failed-checkpoints"), config.Range[int64](0, 1<<30))
	KeyCheckpointRetained = config.Int("checkpoint.num-retained", 1,
		"Checkpoints kept; older ones are deleted.",
		config.WithAliases[int64]("execution.checkpointing.num-retained", "state.checkpoints.num-retained"), config.Range[int64](1, 1000))
	KeyPersistWait = config.Duration("checkpoint.persist-wait", 2*time.Second,
		"How long a checkpoint waits for the parts that are on their way to the store. The bytes of those not acknowledged by then are stored in the checkpoint.",
		config.Range(0, time.Hour))

	KeyRestartType = config.Enum("restart-strategy.type", checkpoint.RestartNone,
		[]checkpoint.RestartType{checkpoint.RestartNone, checkpoint.RestartFixedDelay, checkpoint.RestartExponentialDelay},
		"What happens when the job fails: it ends, or goes on from its last checkpoint.")
	KeyRestartFixedAttempts = config.Int("restart-strategy.fixed-delay.attempts", 1,
		"Restarts before the job fails for good.", config.Range[int64](0, 1<<30))
	KeyRestartFixedDelay = config.Duration("restart-strategy.fixed-delay.delay", time.Second,
		"Wait before each restart.", config.Range(0, maxDuration))
	KeyRestartInitialBackoff = config.Duration("restart-strategy.exponential-delay.initial-backoff", time.Second,
		"Wait before the first restart.", config.Range(time.Millisecond, maxDuration))
	KeyRestartMaxBackoff = config.Duration("restart-strategy.exponential-delay.max-backoff", time.Minute,
		"Longest wait before a restart.", config.Range(time.Millisecond, maxDuration))
	KeyRestartMultiplier = config.Float("restart-strategy.exponential-delay.backoff-multiplier", 1.5,
		"The wait grows by this factor with each failure.")
	KeyRestartReset = config.Duration("restart-strategy.exponential-delay.reset-backoff-threshold", time.Hour,
		"Running without a failure for this long brings the wait back to the first one.", config.Range(time.Millisecond, maxDuration))
	KeyRestartJitter = config.Float("restart-strategy.exponential-delay.jitter-factor", 0.1,
		"Share of the wait, 0 to 1, that is added or subtracted at random.")
	KeyRestartAttempts = config.Int("restart-strategy.exponential-delay.attempts-before-reset-backoff", 0,
		"Restarts before the job fails for good, counted anew after a quiet time; 0 is any number.", config.Range[int64](0, 1<<30))
)

// checkCheckpointDir takes what has a scheme for a path in a bucket.
func checkCheckpointDir(text string) error {
	if !strings.Contains(text, "://") {
		return nil
	}
	_, err := s3fs.ParsePath(text)
	return err
}

// CheckpointKeys lists the options of checkpoints and restarts, for a config.Registry.
func CheckpointKeys() []config.Info {
	return []config.Info{
		KeyCheckpointDir.Info(), KeyCheckpointInterval.Info(), KeyCheckpointTimeout.Info(), KeyCheckpointMinPause.Info(),
		KeyCheckpointTolerable.Info(), KeyCheckpointRetained.Info(), KeyPersistWait.Info(),
		KeyRestartType.Info(), KeyRestartFixedAttempts.Info(), KeyRestartFixedDelay.Info(), KeyRestartInitialBackoff.Info(),
		KeyRestartMaxBackoff.Info(), KeyRestartMultiplier.Info(), KeyRestartReset.Info(), KeyRestartJitter.Info(), KeyRestartAttempts.Info(),
	}
}

// CheckpointsFromConfig reads the directory and the options of a checkpoint.Coordinator.
func CheckpointsFromConfig(c *config.Config) (dir string, o checkpoint.Options, err error) {
	dir = config.Get(c, KeyCheckpointDir)
	if dir == "" {
		err = fmt.Errorf("%s is required", KeyCheckpointDir.Name())
	}
	o = checkpoint.Options{
		Interval:          config.Get(c, KeyCheckpointInterval),
		Timeout:           config.Get(c, KeyCheckpointTimeout),
		MinPause:          config.Get(c, KeyCheckpointMinPause),
		TolerableFailures: int(config.Get(c, KeyCheckpointTolerable)),
		Retain:            int(config.Get(c, KeyCheckpointRetained)),
		CommitBacklog:     commitBacklog,
	}
	return dir, o, errors.Join(err, o.Validate())
}

// RestartFromConfig reads the restart strategy. Each call returns a new one, with nothing used up.
func RestartFromConfig(c *config.Config) (checkpoint.RestartStrategy, error) {
	return checkpoint.NewRestartStrategy(checkpoint.RestartOptions{
		Type: config.Get(c, KeyRestartType),
		FixedDelay: checkpoint.FixedDelay{
			Attempts: int(config.Get(c, KeyRestartFixedAttempts)),
			Delay:    config.Get(c, KeyRestartFixedDelay),
		},
		Exponential: checkpoint.ExponentialDelay{
			InitialBackoff:        config.Get(c, KeyRestartInitialBackoff),
			MaxBackoff:            config.Get(c, KeyRestartMaxBackoff),
			BackoffMultiplier:     config.Get(c, KeyRestartMultiplier),
			ResetBackoffThreshold: config.Get(c, KeyRestartReset),
			JitterFactor:          config.Get(c, KeyRestartJitter),
			AttemptsBeforeReset:   int(config.Get(c, KeyRestartAttempts)),
		},
	})
}
