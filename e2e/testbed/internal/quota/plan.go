package quota

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-go/sluice/config"
)

// Retry modes, as s3.retry.mode takes them.
const (
	Standard = "standard"
	Adaptive = "adaptive"
)

// Lane is a way to refuse what is above the quota.
type Lane string

// The two ways.
const (
	SlowDown Lane = "503"   // nginx answers 503 SlowDown
	Close    Lane = "close" // a front closes the connection
)

func (l Lane) title() string {
	if l == Close {
		return "The store closes the connection of what is above its quota"
	}
	return "The store answers 503 SlowDown above its quota (nginx limit_req)"
}

// Job is one job of the experiment.
type Job struct {
	Lane    Lane   `json:"lane"`
	Mode    string `json:"mode"`
	Writers int    `json:"writers"`
	Retries int    `json:"retries"` // s3.retry.max-num-retries

	Size     config.MemorySize `json:"size"`      // bytes of all rows
	File     config.MemorySize `json:"file_size"` // part file size
	Interval time.Duration     `json:"-"`         // of checkpoints
	// Buffers are the parts that each writer has memory for; 0 stands for 1. A part
	// is either being filled or on its way, so these are the calls that contend for
	// the quota at a time.
	Buffers int `json:"-"`
	// Detail asks for the pull request's table of this pair of jobs.
	Detail bool `json:"-"`
	// Extra jobs run only when they are asked for.
	Extra bool `json:"-"`
}

// Name tells the job from all others of a plan, for example "503/standard/256x10".
func (j Job) Name() string { return fmt.Sprintf("%s/%s/%dx%d", j.Lane, j.Mode, j.Writers, j.Retries) }

// pair names the job without its mode.
func (j Job) pair() string { return fmt.Sprintf("%d writers, %d retries", j.Writers, j.Retries) }

// rows returns the number of rows of the job.
func (j Job) rows() int64 { return int64(j.Size) / rowSize }

// budget is the sink.memory.budget of the job.
func (j Job) budget() config.MemorySize {
	return config.MemorySize(j.Writers) * partSize * config.MemorySize(max(1, j.Buffers))
}

// space is the disk that the job needs: its rows, once more what the store puts
// together from parts, and the ends of files that the last checkpoint holds.
func (j Job) space() config.MemorySize { return 2*j.Size + j.budget() }

// weight orders jobs by the time that they take, roughly.
func (j Job) weight() int64 { return int64(j.Size) * int64(j.Writers) * int64(j.Retries) }

const (
	rowSize  = 1 << 10
	partSize = 5 << 20 // the smallest that S3 takes, so the most calls for a byte
	fileSize = 4 * partSize
	// seldom is the pull request's interval. Its jobs of many writers died before
	// the first checkpoint.
	seldom = 5 * time.Minute
	// often gives the long table as many checkpoints as the pull request's had.
	often = 10 * time.Second
)

// plan returns the jobs of the experiment, those that take longest first.
func plan(o Options) []Job {
	var jobs []Job
	for _, lane := range []Lane{SlowDown, Close} {
		for _, mode := range []string{Standard, Adaptive} {
			add := func(j Job) {
				j.Lane, j.Mode, j.File = lane, mode, fileSize
				if o.wants(j) {
					jobs = append(jobs, j)
				}
			}
			if o.Short {
				add(Job{Writers: 96, Retries: 8, Size: 2 * 96 * partSize, Interval: seldom, Buffers: 2, Detail: true})
				continue
			}
			add(Job{Writers: 256, Retries: 10, Size: o.Size, Interval: seldom})
			// 20 retries take some three minutes to fail, so there has to be work, and a crowd, for longer.
			add(Job{Writers: 256, Retries: 20, Size: o.Size * 7 / 2, Interval: seldom, Buffers: 3, Extra: mode == Adaptive || lane == Close})
			// As many calls contend as those of 256 writers with one buffer each.
			add(Job{Writers: 32, Retries: 10, Size: o.Size * 3 / 2, Interval: seldom, Buffers: 8})
			add(Job{Writers: 16, Retries: 10, Size: o.Size * 5 / 8, Interval: often, Detail: true})
		}
	}
	slices.SortStableFunc(jobs, func(a, b Job) int { return cmp.Compare(b.weight(), a.weight()) })
	return jobs
}
