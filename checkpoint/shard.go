package checkpoint

import (
	"fmt"
	"strconv"
	"strings"
)

// Shard is one of several processes that write one data set. Each has its own epochs, checkpoints and commit records. Of n shards,
// shard i has the rows k*n + i for k = 0, 1, 2, ...: together every row once. The zero value is not a shard; a job of
// one process is Shard{0, 1}.
type Shard struct {
	Index int // 0 to Count-1
	Count int
}

// maxShardCount is more processes than share a job, and few enough for a reader to hold them all.
const maxShardCount = 9999

// ParseShard reads "i/n" with 0 <= i < n, the form of the key job.shard and of [Shard.String].
func ParseShard(s string) (Shard, error) { return parseShard(s, "/") }

// ParseShardDir reads "i-of-n", the form of [Shard.Dir].
func ParseShardDir(s string) (Shard, error) { return parseShard(s, "-of-") }

func parseShard(s, delimiter string) (Shard, error) {
	left, right, found := strings.Cut(s, delimiter)
	i, errI := parseCount(left)
	n, errN := parseCount(right)
	if !found || errI != nil || errN != nil {
		return Shard{}, fmt.Errorf("shard %q: want i%sn, two plain numbers, like 0%s1", s, delimiter, delimiter)
	}
	sh := Shard{Index: i, Count: n}
	return sh, sh.Validate()
}

// parseCount accepts digits only and no leading zero, so that one shard has one spelling.
func parseCount(s string) (int, error) {
	v, err := strconv.ParseUint(s, 10, 31)
	if err == nil && strconv.FormatUint(v, 10) != s {
		err = strconv.ErrSyntax
	}
	return int(v), err
}

// Validate reports an index outside of 0 to Count-1.
func (s Shard) Validate() error {
	if s.Count < 1 || s.Count > maxShardCount {
		return fmt.Errorf("shard %s: the number of shards must be 1 to %d", s, maxShardCount)
	}
	if s.Index < 0 || s.Index >= s.Count {
		return fmt.Errorf("shard %s: shards of %d are counted from 0 to %d", s, s.Count, s.Count-1)
	}
	return nil
}

// String returns "i/n".
func (s Shard) String() string { return strconv.Itoa(s.Index) + "/" + strconv.Itoa(s.Count) }

// Dir returns "i-of-n", the spelling in object keys and directory names.
func (s Shard) Dir() string { return strconv.Itoa(s.Index) + "-of-" + strconv.Itoa(s.Count) }

// MarshalText returns String.
func (s Shard) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *Shard) UnmarshalText(text []byte) error {
	v, err := ParseShard(string(text))
	if err == nil {
		*s = v
	}
	return err
}

// Row returns the row number of the shard's k-th row, counted from 0.
func (s Shard) Row(k int64) int64 { return k*int64(s.Count) + int64(s.Index) }

// Rows returns how many of the job's first total rows are this shard's.
func (s Shard) Rows(total int64) int64 {
	n, i := int64(s.Count), int64(s.Index)
	if total <= i {
		return 0
	}
	return (total-i-1)/n + 1 // rounding up without overflow
}
