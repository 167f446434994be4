package sink_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/sink"
)

func load(t *testing.T, keys map[string]string) *config.Config {
	t.Helper()
	reg, err := config.NewRegistry(s3fs.Keys(), sink.Keys(), sink.CheckpointKeys())
	require.NoError(t, err)
	cfg, err := config.Load(reg, config.Map("test", keys))
	require.NoError(t, err)
	return cfg
}

func TestFromConfig_EveryKeyReachesItsField(t *testing.T) {
	o, err := sink.FromConfig(load(t, map[string]string{
		"sink.path": "s3://b.c/x/y", "sink.writers": "3", "sink.memory.budget": "100 mb", "sink.rolling-policy.file-size": "7 mb",
		"sink.rolling-policy.on-checkpoint": "true", "sink.commit.deadline": "4 s", "sink.commit.list-threshold": "7",
		"sink.expired-upload": "skip-and-record",
		"job.name":            "j1", "job.shard": "2/5", "s3.upload.min.part.size": "6 mb", "s3.upload.max.concurrent.uploads": "9",
		"checkpoint.persist-wait": "3 s",
	}))
	require.NoError(t, err)
	require.Equal(t, sink.Options{
		Path: s3fs.Path{Bucket: "b.c", Key: "x/y"}, Job: "j1", Shard: checkpoint.Shard{Index: 2, Count: 5}, Writers: 3,
		Rolling: sink.Rolling{FileSize: 7 << 20, OnCheckpoint: true}, MemoryBudget: 100 << 20, PartSize: 6 << 20, UploadConcurrency: 9,
		CommitDeadline: 4 * time.Second, ListThreshold: 7, Expired: sink.ExpiredSkip, PersistWait: 3 * time.Second,
	}, o)
}

func TestFromConfig_AListThresholdOfZeroIsNever(t *testing.T) {
	o, err := sink.FromConfig(load(t, map[string]string{"sink.path": "s3://b/x", "sink.commit.list-threshold": "0"}))
	require.NoError(t, err)
	require.Negative(t, o.ListThreshold)
}

func TestCheckpointsFromConfig_EveryKeyReachesItsField_InFlinksSpellingToo(t *testing.T) {
	want := checkpoint.Options{
		Interval: 11 * time.Second, Timeout: 12 * time.Second, MinPause: 13 * time.Second, TolerableFailures: 14, Retain: 15,
		CommitBacklog: 2,
	}
	for name, keys := range map[string]map[string]string{
		"own": {
			"checkpoint.dir": "/d", "checkpoint.interval": "11 s", "checkpoint.timeout": "12 s", "checkpoint.min-pause": "13 s",
			"checkpoint.tolerable-failures": "14", "checkpoint.num-retained": "15",
		},
		"Flink's": {
			"execution.checkpointing.dir": "/d", "execution.checkpointing.interval": "11 s", "execution.checkpointing.timeout": "12 s",
			"execution.checkpointing.min-pause": "13 s", "execution.checkpointing.tolerable-failed-checkpoints": "14",
			"execution.checkpointing.num-retained": "15",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, o, err := sink.CheckpointsFromConfig(load(t, keys))
			require.NoError(t, err)
			require.Equal(t, "/d", dir)
			require.Equal(t, want, o)
		})
	}
}

// The delays are those of Flink's documentation, without jitter.
func TestRestartFromConfig_EveryKeyHasItsEffect(t *testing.T) {
	delays := func(keys map[string]string, gap time.Duration, n int) (out []time.Duration) {
		s, err := sink.RestartFromConfig(load(t, keys))
		require.NoError(t, err)
		now := time.Unix(0, 0)
		for range n {
			d, ok := s.Next(now)
			if !ok {
				return out
			}
			out = append(out, d)
			now = now.Add(d + gap)
		}
		return out
	}
	require.Empty(t, delays(nil, 0, 3), "none is the default")
	require.Equal(t, []time.Duration{5 * time.Second, 5 * time.Second}, delays(map[string]string{
		"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "2", "restart-strategy.fixed-delay.delay": "5 s",
	}, 0, 9))
	exponential := map[string]string{
		"restart-strategy.type":                                            "exponential-delay",
		"restart-strategy.exponential-delay.initial-backoff":               "2 s",
		"restart-strategy.exponential-delay.max-backoff":                   "10 s",
		"restart-strategy.exponential-delay.backoff-multiplier":            "2",
		"restart-strategy.exponential-delay.reset-backoff-threshold":       "1 min",
		"restart-strategy.exponential-delay.jitter-factor":                 "0",
		"restart-strategy.exponential-delay.attempts-before-reset-backoff": "5",
	}
	s := time.Second
	require.Equal(t, []time.Duration{2 * s, 4 * s, 8 * s, 10 * s, 10 * s}, delays(exponential, 0, 9))
	require.Equal(t, []time.Duration{2 * s, 2 * s, 2 * s}, delays(exponential, 2*time.Minute, 3), "a quiet time starts over")
}
