package mainjob

import (
	"strconv"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"
)

const (
	bucketName = "sluice"
	sinkPrefix = "out"
	jobName    = "main"
)

// endpoint is what a job has to know about its store.
type endpoint struct {
	url, region, accessKey, secretKey string
}

// settings returns the job file's lines in the order of a reader's questions:
// where to, what, how.
func (o Options) settings(e endpoint, checkpoints string) []sluicecmd.Setting {
	return []sluicecmd.Setting{
		{Key: "job.name", Value: jobName},
		{Key: "s3.endpoint", Value: e.url},
		{Key: "s3.region", Value: e.region},
		{Key: "s3.path-style-access", Value: "true"},
		{Key: "s3.access-key", Value: e.accessKey},
		{Key: "s3.secret-key", Value: e.secretKey},
		{Key: "s3.upload.min.part.size", Value: o.Part.String()},
		{Key: "s3.retry.mode", Value: o.Mode},
		{Key: "sink.path", Value: "s3://" + bucketName + "/" + sinkPrefix},
		{Key: "sink.writers", Value: strconv.Itoa(o.Writers)},
		{Key: "sink.rolling-policy.file-size", Value: o.File.String()},
		{Key: "sink.memory.budget", Value: o.Budget().String()},
		{Key: "checkpoint.dir", Value: checkpoints},
		{Key: "checkpoint.interval", Value: config.FormatDuration(o.Interval)},
		{Key: "datagen.number-of-rows", Value: strconv.FormatInt(o.Rows(), 10)},
		{Key: "datagen.rows-per-second", Value: strconv.FormatInt(o.Pace(), 10)},
		{Key: "datagen.fields.f.kind", Value: "random"},
		{Key: "datagen.fields.f.length", Value: strconv.FormatInt(int64(o.Row)-1, 10)}, // a raw row ends with a line feed
		{Key: "restart-strategy.type", Value: "none"},
	}
}
