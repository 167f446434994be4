package readback

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-go/sluice/e2e/datagen"
)

// reportVersion is the format of the JSON form.
const reportVersion = 1

// Report is everything that verify finds out about one job's output. Fill it, then call Conclude.
type Report struct {
	Version  int           `json:"version"`
	Location string        `json:"location"` // what was read back, such as s3://bucket/prefix
	Job      string        `json:"job"`
	Shards   []ShardReport `json:"shards"`
	Records  int64         `json:"records"`      // commit records read
	Listed   int64         `json:"record_files"` // files the records list

	// Files of the records against the files of the store.
	MissingFiles   List[FileProblem] `json:"missing_files"`   // in a record, not in the store
	SkippedFiles   List[FileProblem] `json:"skipped_files"`   // given up by the job, and named as such in a record
	ForeignFiles   List[FileProblem] `json:"foreign_files"`   // below the path, data for any reader, and in no record
	WrongSizes     List[FileProblem] `json:"wrong_sizes"`     // bytes as recorded, bytes in the store
	WrongChecksums List[FileProblem] `json:"wrong_checksums"` // checksum as recorded, checksum of what was read

	RowFindings

	// Problems are findings of other kinds, one sentence each: a record that is damaged, a gap in
	// the records' numbers, totals that do not add up.
	Problems []string `json:"problems,omitempty"`

	Seconds     float64   `json:"seconds"`            // of the read-back
	MBPerSecond float64   `json:"mb_per_second"`      // 10^6 bytes of content per second
	Requests    *Requests `json:"requests,omitempty"` // nil when nobody counted

	Proven bool   `json:"proven"`
	Why    string `json:"why"` // why not; empty when proven
}

// ShardReport is how far one shard has committed.
type ShardReport struct {
	Shard      datagen.Shard `json:"shard"`
	Checkpoint int64         `json:"checkpoint"`
	Epoch      int64         `json:"epoch"`
	Rows       int64         `json:"rows"`
	Final      bool          `json:"final"` // the source had ended
}

// Requests is what the read-back asked of the store.
type Requests struct {
	Calls     int64 `json:"calls"`     // a repeated call counts once
	Attempts  int64 `json:"attempts"`  // on the wire
	Throttled int64 `json:"throttled"` // answers that asked to slow down
}

// NewReport returns an empty report; it is not proven.
func NewReport(location, job string) *Report {
	return &Report{Version: reportVersion, Location: location, Job: job}
}

// Problem adds a finding of another kind.
func (r *Report) Problem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// Conclude sets the duration and the verdict. Proven means: something was committed, every
// expected row is there exactly once with the right content, nothing else is there, and the files
// are the recorded ones.
func (r *Report) Conclude(d time.Duration) {
	r.Seconds, r.MBPerSecond = d.Seconds(), 0
	if d > 0 {
		r.MBPerSecond = float64(r.Bytes) / 1e6 / d.Seconds()
	}
	reasons := r.reasons()
	r.Proven, r.Why = len(reasons) == 0, strings.Join(reasons, "; ")
}

// reasons lists everything that stands against the proof.
func (r *Report) reasons() []string {
	var why []string
	count := func(n int64, one, many string) {
		switch {
		case n == 1:
			why = append(why, "1 "+one)
		case n > 1:
			why = append(why, fmt.Sprintf("%d %s", n, many))
		}
	}
	count(r.MissingFiles.Total, "file missing", "files missing")
	count(r.SkippedFiles.Total, "file given up, its upload had expired", "files given up, their uploads had expired")
	count(r.ForeignFiles.Total, "file that no record lists", "files that no record lists")
	count(r.WrongSizes.Total, "file of the wrong size", "files of the wrong size")
	count(r.WrongChecksums.Total, "file with the wrong checksum", "files with the wrong checksum")
	count(r.Gone.Total, "file gone while it was read back", "files gone while they were read back")
	count(r.Missing.Total, "row missing", "rows missing")
	count(r.Duplicates.Total, "duplicate row", "duplicate rows")
	count(r.Corrupt.Total, "row corrupt", "rows corrupt")
	count(r.Unexpected.Total, "row that is not committed", "rows that are not committed")
	why = append(why, r.Problems...)
	if len(why) > 0 {
		return why
	}
	switch {
	case r.Expected == 0:
		why = append(why, "nothing is committed")
	case r.Rows != r.Expected: // only when the rows were not checked
		why = append(why, fmt.Sprintf("%d rows read instead of %d", r.Rows, r.Expected))
	}
	return why
}

// Verdict returns the last line of the text form, without a newline: "PROVEN: N of N rows, each
// exactly once" or "NOT PROVEN: why".
func (r *Report) Verdict() string {
	switch {
	case r.Proven:
		return fmt.Sprintf("PROVEN: %d of %d rows, each exactly once", r.Rows, r.Expected)
	case r.Why == "":
		return "NOT PROVEN: not concluded"
	default:
		return "NOT PROVEN: " + r.Why
	}
}
