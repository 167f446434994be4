package quota

import (
	"strconv"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"
)

const (
	bucketName = "sluice"
	sinkPrefix = "out"
	// patience is for what must not end a job of this experiment: only a call whose
	// attempts are used up may. Flink waits for its uploads without a limit.
	patience = "1 h"
)

// target is what a job has to know about its store.
type target struct {
	endpoint, region, accessKey, secretKey string
}

// settings returns the lines of the job file. The waits between retries are the
// defaults, which are Flink's.
func (j Job) settings(t target, checkpoints, limiter string) []sluicecmd.Setting {
	s := []sluicecmd.Setting{
		{Key: "job.name", Value: "quota"},
		{Key: "s3.endpoint", Value: t.endpoint},
		{Key: "s3.region", Value: t.region},
		{Key: "s3.path-style-access", Value: "true"},
		{Key: "s3.access-key", Value: t.accessKey},
		{Key: "s3.secret-key", Value: t.secretKey},
		{Key: "s3.upload.min.part.size", Value: config.MemorySize(partSize).String()},
		{Key: "s3.retry.mode", Value: j.Mode},
		{Key: "s3.retry.max-num-retries", Value: strconv.Itoa(j.Retries)},
		{Key: "restart-strategy.type", Value: "none"},
		{Key: "sink.path", Value: "s3://" + bucketName + "/" + sinkPrefix},
		{Key: "sink.writers", Value: strconv.Itoa(j.Writers)},
		{Key: "sink.rolling-policy.file-size", Value: j.File.String()},
		{Key: "sink.memory.budget", Value: j.budget().String()},
		{Key: "sink.commit.deadline", Value: patience},
		{Key: "checkpoint.dir", Value: checkpoints},
		{Key: "checkpoint.interval", Value: config.FormatDuration(j.Interval)},
		{Key: "checkpoint.persist-wait", Value: patience},
		{Key: "checkpoint.timeout", Value: patience},
		{Key: "datagen.number-of-rows", Value: strconv.FormatInt(j.rows(), 10)},
		{Key: "datagen.rows-per-second", Value: "0"},
		{Key: "datagen.fields.f.kind", Value: "random"},
		{Key: "datagen.fields.f.length", Value: strconv.Itoa(rowSize - 1)}, // a raw row ends with a line feed
	}
	if j.Mode == Adaptive && limiter != "" {
		s = append(s, sluicecmd.Setting{Key: "s3.retry.adaptive.limiter", Value: limiter})
	}
	return s
}
