package mainjob

import (
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/config"
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

// setting is one line of a job file.
type setting struct{ key, value string }

// settings returns the job file's lines in the order of a reader's questions:
// where to, what, how.
func (o Options) settings(e endpoint, checkpoints string) []setting {
	return []setting{
		{"job.name", jobName},
		{"s3.endpoint", e.url},
		{"s3.region", e.region},
		{"s3.path-style-access", "true"},
		{"s3.access-key", e.accessKey},
		{"s3.secret-key", e.secretKey},
		{"s3.upload.min.part.size", o.Part.String()},
		{"s3.retry.mode", o.Mode},
		{"sink.path", "s3://" + bucketName + "/" + sinkPrefix},
		{"sink.writers", strconv.Itoa(o.Writers)},
		{"sink.rolling-policy.file-size", o.File.String()},
		{"sink.memory.budget", o.Budget().String()},
		{"checkpoint.dir", checkpoints},
		{"checkpoint.interval", config.FormatDuration(o.Interval)},
		{"datagen.number-of-rows", strconv.FormatInt(o.Rows(), 10)},
		{"datagen.rows-per-second", strconv.FormatInt(o.Pace(), 10)},
		{"datagen.fields.f.kind", "random"},
		{"datagen.fields.f.length", strconv.FormatInt(int64(o.Row)-1, 10)}, // a raw row ends with a line feed
		{"restart-strategy.type", "none"},
	}
}

// jobYAML renders settings as YAML. Values are scalars of the text as it is:
// the encoder quotes what would otherwise change its meaning.
func jobYAML(settings []setting) ([]byte, error) {
	doc := &yaml.Node{Kind: yaml.MappingNode}
	for _, s := range settings {
		key, value := &yaml.Node{}, &yaml.Node{}
		key.SetString(s.key)
		value.SetString(s.value)
		doc.Content = append(doc.Content, key, value)
	}
	return yaml.Marshal(doc)
}
