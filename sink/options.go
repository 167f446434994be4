package sink

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/s3fs"
)

// The options of the sink and its job.
var (
	KeyPath = config.String("sink.path", "",
		"Directory of the part files, `s3://bucket/prefix`. Required.",
		config.NoDefault[string](), config.WithCheck(checkPath))
	KeyWriters = config.Int("sink.writers", 1,
		"Writers (subtasks) of this process. Each has one open part file.",
		config.Range[int64](1, 4096))
	KeyMemoryBudget = config.Size("sink.memory.budget", 256<<20,
		"Bytes of part buffers in the process, at least writers x part size. At the budget a write waits.",
		config.Range[config.MemorySize](1<<20, 1<<50))
	KeyFileSize = config.Size("sink.rolling-policy.file-size", 128<<20,
		"A part file ends before the row that would make it larger than this, in bytes as stored.",
		config.Range[config.MemorySize](1, 5<<40))
	KeyPartSize = config.Size("s3.upload.min.part.size", s3fs.MinPartSize,
		"Size of every part but the last of a multipart upload, fixed for the life of an upload.",
		config.Range[config.MemorySize](s3fs.MinPartSize, s3fs.MaxPartSize))
	KeyConcurrentUploads = config.Int("s3.upload.max.concurrent.uploads", 4,
		"Parts in flight per file.", config.Range[int64](1, 65536))
	KeyRollOnCheckpoint = config.Bool("sink.rolling-policy.on-checkpoint", false,
		"Every checkpoint ends all open part files, so that it publishes every row before it.")
	KeyCommitDeadline = config.Duration("sink.commit.deadline", 10*time.Second,
		"How long the files of one checkpoint are tried to be published before those that cannot be proven fail its commit. They stay pending, with their bytes, and are tried again with the next checkpoint.",
		config.Range(0, time.Hour))
	KeyListThreshold = config.Int("sink.commit.list-threshold", defaultListThreshold,
		"From this many files on, those that the store has acknowledged with the right ETag are proven by a listing of up to 1,000 names instead of a HEAD each; what it does not settle is looked at by HEAD. 0: always HEAD.",
		config.Range[int64](0, 1<<20))
	KeyExpiredUpload = config.Enum("sink.expired-upload", ExpiredFail, []ExpiredPolicy{ExpiredFail, ExpiredSkip, ExpiredRewrite},
		"What happens when the store has removed an upload that a checkpoint names, and its bytes with it: the job fails; or gives the file up and lists it in the commit record as skipped, and verify names its rows as missing; or goes back to the newest retained checkpoint that does not need it, takes back what was published behind that, and writes the rows again. That needs a source that can give them again, and `checkpoint.num-retained` of 2 or more.")
	KeyUploadWarnAge = config.Duration("sink.upload.warn-age", 5*24*time.Hour,
		"An upload that is older than this and not published yet is warned about: lifecycle rules commonly remove uploads after 7 days.",
		config.Range(time.Minute, maxDuration))
	KeyJobName = config.String("job.name", "job",
		"Name of the job in file names, checkpoints and commit records: letters, digits, dots and dashes.",
		config.WithCheck(checkJobName))
	KeyJobShard = config.String("job.shard", "0/1",
		"`i/n`: this process is number i of the n that write one data set. Each has its own checkpoints and commit records.",
		config.WithCheck(checkShard))
)

// Keys lists the options of the sink and its job, for a config.Registry.
func Keys() []config.Info {
	return []config.Info{
		KeyPath.Info(), KeyWriters.Info(), KeyMemoryBudget.Info(), KeyFileSize.Info(), KeyRollOnCheckpoint.Info(),
		KeyPartSize.Info(), KeyConcurrentUploads.Info(),
		KeyCommitDeadline.Info(), KeyListThreshold.Info(), KeyExpiredUpload.Info(), KeyUploadWarnAge.Info(),
		KeyJobName.Info(), KeyJobShard.Info(),
	}
}

// Options configures a Sink. Every size is in bytes.
type Options struct {
	Path    s3fs.Path        // bucket and prefix of the part files
	Job     string           // see KeyJobName
	Shard   checkpoint.Shard // the zero value is shard 0 of 1
	Writers int              // 0: 1
	Rolling Rolling          // zero FileSize: 128 MiB

	MemoryBudget      int64         // 0: 256 MiB
	PartSize          int64         // 0: 5 MiB
	UploadConcurrency int           // parts in flight per file; 0: 4
	CommitParallelism int           // files published at once; 0: 8
	CommitDeadline    time.Duration // see KeyCommitDeadline; 0: one try
	ListThreshold     int           // see KeyListThreshold; 0: 16, negative: always HEAD
	Expired           ExpiredPolicy // 0: ExpiredFail

	// Rollback lets Restore go back behind commit records: it first deletes the files that they list, and then the records. For
	// one run, after checkpoints were lost or an older one was put back on purpose.
	Rollback bool

	PersistWait time.Duration // how long a checkpoint waits for parts in flight before it stores their bytes; 0: not at all
}

// FromConfig reads the sink's options and validates them.
func FromConfig(c *config.Config) (Options, error) {
	path, err := s3fs.ParsePath(config.Get(c, KeyPath))
	if err != nil {
		return Options{}, fmt.Errorf("%s is required: %w", KeyPath.Name(), err)
	}
	shard, err := checkpoint.ParseShard(config.Get(c, KeyJobShard))
	if err != nil {
		return Options{}, err
	}
	o := Options{
		Path: path, Job: config.Get(c, KeyJobName), Shard: shard,
		Writers: int(config.Get(c, KeyWriters)),
		Rolling: Rolling{
			FileSize:     int64(config.Get(c, KeyFileSize)),
			OnCheckpoint: config.Get(c, KeyRollOnCheckpoint),
		},
		MemoryBudget:      int64(config.Get(c, KeyMemoryBudget)),
		PartSize:          int64(config.Get(c, KeyPartSize)),
		UploadConcurrency: int(config.Get(c, KeyConcurrentUploads)),
		CommitDeadline:    config.Get(c, KeyCommitDeadline),
		Expired:           config.Get(c, KeyExpiredUpload),
		PersistWait:       config.Get(c, KeyPersistWait),
	}
	if o.ListThreshold = int(config.Get(c, KeyListThreshold)); o.ListThreshold == 0 {
		o.ListThreshold = -1
	}
	return o, o.Validate()
}

// withDefaults replaces zero values by the defaults that the fields' comments name.
func (o Options) withDefaults() Options {
	setDefault(&o.Shard, checkpoint.Shard{Index: 0, Count: 1})
	setDefault(&o.Job, "job")
	setDefault(&o.Writers, 1)
	setDefault(&o.Rolling.FileSize, 128<<20)
	setDefault(&o.MemoryBudget, 256<<20)
	setDefault(&o.PartSize, 5<<20)
	setDefault(&o.UploadConcurrency, 4)
	setDefault(&o.CommitParallelism, 8)
	setDefault(&o.ListThreshold, defaultListThreshold)
	setDefault(&o.Expired, ExpiredFail)
	return o
}

// Validate returns all problems at once.
func (o Options) Validate() error {
	o = o.withDefaults()
	var problems []error
	if o.Path.Bucket == "" {
		problems = append(problems, fmt.Errorf("%s: no bucket", KeyPath.Name()))
	}
	if err := checkJobName(o.Job); err != nil {
		problems = append(problems, fmt.Errorf("%s: %w", KeyJobName.Name(), err))
	}
	if o.Writers < 1 || o.UploadConcurrency < 1 || o.CommitParallelism < 1 || o.PersistWait < 0 || o.CommitDeadline < 0 || o.Rolling.FileSize < 1 || o.PartSize < 1 {
		problems = append(problems, errors.New("a count, size or duration of the sink is negative"))
	}
	if need := o.neededBudget(); o.MemoryBudget < need {
		problems = append(problems, fmt.Errorf("%s is %s, less than %s x %s: %d writers with parts of %s need at least %s",
			KeyMemoryBudget.Name(), config.MemorySize(o.MemoryBudget), KeyWriters.Name(), KeyPartSize.Name(),
			o.Writers, config.MemorySize(o.PartSize), config.MemorySize(need)))
	}
	if limit := o.PartSize * multipart.MaxParts; o.Rolling.FileSize > limit {
		problems = append(problems, fmt.Errorf("%s is %s, more than %d parts of %s (%s): raise %s",
			KeyFileSize.Name(), config.MemorySize(o.Rolling.FileSize), multipart.MaxParts, config.MemorySize(o.PartSize),
			config.MemorySize(limit), KeyPartSize.Name()))
	}
	return errors.Join(problems...)
}

// neededBudget is what the writers need so that one of them can always fill and send its part.
func (o Options) neededBudget() int64 {
	return int64(o.Writers) * multipart.FileBudget(o.PartSize)
}

func setDefault[V comparable](field *V, value V) {
	var zero V
	if *field == zero {
		*field = value
	}
}

func checkPath(text string) error {
	_, err := s3fs.ParsePath(text)
	return err
}

func checkShard(text string) error {
	_, err := checkpoint.ParseShard(text)
	return err
}

func checkJobName(name string) error {
	if !jobName.MatchString(name) {
		return fmt.Errorf("%q is not a job name: up to 64 letters, digits, dots and dashes, beginning with a letter or digit", name)
	}
	return nil
}
