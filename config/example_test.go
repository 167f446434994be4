package config_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-go/sluice/config"
)

// Options are declared once, by the package that uses them.
var (
	keyRetries  = config.Int("s3.retry.max-num-retries", 3, "Retries after the first attempt.", config.Range[int64](0, 1000))
	keyPartSize = config.Size("s3.upload.min.part.size", 5<<20, "Size of a part.")
	keyBackoff  = config.Duration("s3.retry.max-backoff", 20*time.Second, "Longest wait between two attempts.")
	keySecret   = config.SecretText("s3.secret-key", "Secret key.", config.WithAliases[config.Secret]("s3.secret.key"))
	keyKind     = config.String("datagen.fields.#.kind", "random", "What the field holds.")
)

func options() []config.Info {
	return []config.Info{keyRetries.Info(), keyPartSize.Info(), keyBackoff.Info(), keySecret.Info(), keyKind.Info()}
}

const job = `
s3:
  retry:
    max-num-retries: 5
  upload.min.part.size: 6 mb
  secret.key: hunter2
datagen.fields:
  id: {kind: sequence}
`

func Example() {
	registry, err := config.NewRegistry(options())
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := config.Load(registry,
		config.YAML("job.yaml", strings.NewReader(job)),
		config.Env([]string{"SLUICE_S3_RETRY_MAX__BACKOFF=2 min"}), // a program passes os.Environ()
		config.Pairs("-D", []string{"s3.retry.max-num-retries=7"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(config.Get(c, keyRetries), int64(config.Get(c, keyPartSize)), config.Get(c, keyBackoff))
	for _, field := range c.Segments("datagen.fields.#") {
		fmt.Println(field, "is", config.Get(c, keyKind.With(field)))
	}
	for _, s := range c.Effective() {
		fmt.Printf("%s = %s (%s)\n", s.Key, s.Value, s.Origin)
	}
	for _, warning := range c.Warnings() {
		fmt.Println(warning)
	}
	// Output:
	// 7 6291456 2m0s
	// id is sequence
	// datagen.fields.id.kind = sequence (job.yaml:8)
	// s3.retry.max-backoff = 2 min (environment SLUICE_S3_RETRY_MAX__BACKOFF)
	// s3.retry.max-num-retries = 7 (-D)
	// s3.secret-key = ****** (job.yaml:6)
	// s3.upload.min.part.size = 6 mb (job.yaml:5)
	// job.yaml:6: s3.secret.key is another spelling of s3.secret-key: write s3.secret-key
}

func ExampleLoad_problems() {
	registry, err := config.NewRegistry(options())
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = config.Load(registry, config.YAML("job.yaml", strings.NewReader("s3.retry.max-retries: 5\ns3.upload.min.part.size: 5 mib\n")),
		config.Pairs("-D", []string{"s3.retry.max-num-retries=-1"}))
	fmt.Println(err)
	// Output:
	// job.yaml:1: unknown key "s3.retry.max-retries", the nearest known key is "s3.retry.max-num-retries"
	// job.yaml:2: s3.upload.min.part.size = "5 mib": unknown unit "mib": units are b/bytes, k/kb/kibibytes, m/mb/mebibytes, g/gb/gibibytes and t/tb/tebibytes, powers of 1024
	// -D: s3.retry.max-num-retries = "-1": must be between 0 and 1000
}

func ExampleParseSize() {
	size, err := config.ParseSize("128 MB")
	fmt.Println(int64(size), size, err)
	_, err = config.ParseSize("1.5 gb")
	fmt.Println(err)
	// Output:
	// 134217728 128 mb <nil>
	// fractions are not allowed: use a smaller unit
}

func ExampleParseDuration() {
	for _, text := range []string{"5 min", "250", "PT1H30M"} {
		d, err := config.ParseDuration(text)
		fmt.Println(d, config.FormatDuration(d), err)
	}
	// Output:
	// 5m0s 5 min <nil>
	// 250ms 250 ms <nil>
	// 1h30m0s 90 min <nil>
}

func ExampleMarkdownTable() {
	fmt.Print(config.MarkdownTable(options()[:2]))
	// Output:
	// | Key | Type | Default | Meaning |
	// |---|---|---|---|
	// | `s3.retry.max-num-retries` | int | `3` | Retries after the first attempt. Allowed: 0 to 1000. |
	// | `s3.upload.min.part.size` | size | `5 mb` | Size of a part. |
}
