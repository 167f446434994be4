package mainjob

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"strings"
	"time"

	"github.com/sluice-go/sluice/config"
)

const (
	// minBudget is the smallest sink.memory.budget that a run is given, the
	// sink's own default.
	minBudget config.MemorySize = 256 << 20
	// rssAllowance is what the writing process may use above its budget.
	rssAllowance config.MemorySize = 60 << 20
	// minCheckpoints is the number of checkpoints a run with kills must commit.
	minCheckpoints = 6
	// maxKills keeps a campaign within a lunch break.
	maxKills = 1000
)

// Options say what to run. All fields but Dir, Keep and Seed are required.
type Options struct {
	Size     config.MemorySize // bytes of all rows
	Row      config.MemorySize // bytes of one row, its line feed included
	File     config.MemorySize // part file size
	Part     config.MemorySize // multipart part size
	Writers  int
	Interval time.Duration // of checkpoints
	Mode     string        // s3.retry.mode
	Crash    int           // times that the job is killed with SIGKILL

	Sluice  string        // path of the sluice binary
	Dir     string        // where the work directory is made; empty: the system's place for temporary files
	Keep    bool          // keep the work directory
	Timeout time.Duration // of everything
	Seed    uint64        // of the moments of the kills; 0: chosen, and printed

	Out io.Writer // the table and the verdict
	Log io.Writer // progress and the job's own log lines

	// StoreCommand starts the store; nil: this executable, see package store.
	StoreCommand []string
}

// Rows returns the number of rows of the run.
func (o Options) Rows() int64 {
	if o.Row <= 0 {
		return 0
	}
	return int64(o.Size / o.Row)
}

// Budget returns the sink.memory.budget of the run: every writer can fill one
// part while another one is on its way.
func (o Options) Budget() config.MemorySize {
	return max(minBudget, config.MemorySize(o.Writers)*o.Part*2)
}

// Pace returns datagen.rows-per-second, 0 for no limit. With kills the rows last
// for enough intervals that six checkpoints are committed: a kill never loses
// rows, so the rows alone have to last for them, and a slow checkpoint may take
// part of the next interval.
func (o Options) Pace() int64 {
	if o.Crash == 0 {
		return 0
	}
	intervals := float64(minCheckpoints + minCheckpoints/2 + 2*o.Crash)
	return max(1, int64(float64(o.Rows())/(intervals*o.Interval.Seconds())))
}

// Validate reports everything that is wrong, before anything is started.
func (o Options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, s := range []struct {
		name string
		size config.MemorySize
	}{{"SIZE", o.Size}, {"FILE", o.File}, {"PART", o.Part}} {
		if s.size <= 0 {
			bad("%s: must be more than 0", s.name)
		}
	}
	switch {
	case o.Row < 2:
		bad("ROW: %s leaves no room for a row and its line feed", o.Row)
	case o.Size > 0 && o.Rows() < 1:
		bad("SIZE: %s is less than one row of %s", o.Size, o.Row)
	}
	if o.Writers < 1 || int64(o.Writers) > math.MaxInt64/4/max(1, int64(max(o.Part, o.File))) {
		bad("WRITERS: %d is out of range", o.Writers)
	}
	if o.Interval <= 0 {
		bad("INTERVAL: must be more than 0")
	}
	if m := strings.ToLower(o.Mode); m != "adaptive" && m != "standard" {
		bad("MODE: %q is neither adaptive nor standard", o.Mode)
	}
	if o.Crash < 0 || o.Crash > maxKills {
		bad("CRASH: %d is not within 0 and %d", o.Crash, maxKills)
	}
	if o.Timeout <= 0 {
		bad("--timeout: must be more than 0")
	}
	if _, err := exec.LookPath(o.Sluice); err != nil {
		bad("--sluice: %w", err)
	}
	return errors.Join(errs...)
}

// space returns the bytes of disk that the run needs: the rows, and once more
// the open files, which the store copies when an upload is completed; each kill
// can leave such uploads behind.
func (o Options) space() config.MemorySize {
	open := min(o.Size, config.MemorySize(o.Writers)*o.File)
	return o.Size + open*config.MemorySize(1+o.Crash)
}
