package mainjob

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"
)

func defaults(t *testing.T) Options {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return Options{
		Size: 2 << 30, Row: 1 << 10, File: 64 << 20, Part: 6 << 20, Writers: 16,
		Interval: 3 * time.Second, Mode: "adaptive", Sluice: self, Timeout: time.Hour,
	}
}

func TestOptions_DefaultRun_Arithmetic(t *testing.T) {
	o := defaults(t)
	require.NoError(t, o.Validate())
	assert.EqualValues(t, 2097152, o.Rows())
	assert.Equal(t, config.MemorySize(256<<20), o.Budget(), "16 writers x 6 MiB x 2 is less than the default")
	assert.Zero(t, o.Pace(), "no limit without kills")
}

func TestOptions_ManyWriters_RaiseTheBudget(t *testing.T) {
	o := defaults(t)
	o.Writers = 64
	assert.Equal(t, config.MemorySize(768<<20), o.Budget())
}

func TestOptions_Kills_PaceTheRowsForEnoughCheckpoints(t *testing.T) {
	o := defaults(t)
	o.Crash = 3
	seconds := float64(o.Rows()) / float64(o.Pace())
	assert.InDelta(t, 45, seconds, 0.1, "(6 + 3 + 2 x 3 kills) intervals of 3 s")

	o.Size, o.Interval = 2<<10, time.Minute
	assert.EqualValues(t, 1, o.Pace(), "0 would be no limit at all")
}

func TestOptions_Validate_ReportsEveryProblemAtOnce(t *testing.T) {
	err := Options{Mode: "legacy", Row: 1, Crash: -1}.Validate()
	require.Error(t, err)
	for _, name := range []string{"SIZE", "FILE", "PART", "ROW", "WRITERS", "INTERVAL", `MODE: "legacy"`, "CRASH", "--timeout", "--sluice"} {
		assert.ErrorContains(t, err, name)
	}
	o := defaults(t)
	o.Size = 1023
	assert.ErrorContains(t, o.Validate(), "SIZE: 1023 bytes is less than one row of 1 kb")
	o = defaults(t)
	o.Writers, o.Part = 1<<40, 1<<40
	assert.ErrorContains(t, o.Validate(), "WRITERS", "the budget would overflow")
}

func TestOptions_Space_CountsTheRowsAndTheFilesBeingCompleted(t *testing.T) {
	o := defaults(t)
	assert.Equal(t, config.MemorySize(3<<30), o.space(), "2 GiB and 16 x 64 MiB")
	o.Size, o.Crash = 256<<20, 2
	assert.Equal(t, config.MemorySize(1<<30), o.space(), "open files are never more than the rows; once more for each kill")
}

func TestJobYAML_HoldsEveryKeyOfTheRun(t *testing.T) {
	o := defaults(t)
	o.Crash = 3
	text, err := sluicecmd.JobYAML(o.settings(endpoint{"http://127.0.0.1:7070", "us-east-1", "sluice", "KEY"}, "/w/checkpoints"))
	require.NoError(t, err)
	assert.Equal(t, `job.name: main
s3.endpoint: http://127.0.0.1:7070
s3.region: us-east-1
s3.path-style-access: "true"
s3.access-key: sluice
s3.secret-key: KEY
s3.upload.min.part.size: 6 mb
s3.retry.mode: adaptive
sink.path: s3://sluice/out
sink.writers: "16"
sink.rolling-policy.file-size: 64 mb
sink.memory.budget: 256 mb
checkpoint.dir: /w/checkpoints
checkpoint.interval: 3 s
datagen.number-of-rows: "2097152"
datagen.rows-per-second: "46603"
datagen.fields.f.kind: random
datagen.fields.f.length: "1023"
restart-strategy.type: none
`, string(text))
}
