package sink

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/checkpoint"
)

// jobName is what job.name may look like. An underscore is not allowed: it is the delimiter between the
// parts of a file name, so that everything of job "a-1" starts with "part_a-1_" and nothing of job "a-10" does.
var jobName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,63}$`)

// recordRoot is the folder below the sink's path that holds the commit records of every job. Hive-style readers
// skip names that begin with an underscore.
const recordRoot = "_sluice"

// FileName returns the name of a part file: prefix, job, shard, epoch, subtask, counter and extension. The epoch
// is claimed anew by every run and the counter only grows within one, so no name is ever used twice.
func FileName(job, shard string, epoch int64, subtask int, counter int64, extension string) string {
	return fmt.Sprintf("%s%s_e%d_w%d_%d%s", FilePrefix(job), shard, epoch, subtask, counter, extension)
}

// FilePrefix returns what the name of every part file of a job begins with.
func FilePrefix(job string) string { return "part_" + job + "_" }

// RecordPrefix returns the key prefix, ending in a slash, of a job's commit records; base is the key of the sink's
// path. With an empty job it is the prefix of all jobs' records below that path.
func RecordPrefix(base, job string) string {
	p := joinKey(base, recordRoot) + "/"
	if job == "" {
		return p
	}
	return p + job + "/"
}

// RecordKey returns the key of the record that checkpoint id of one shard publishes.
func RecordKey(base, job, shard string, id int64) string {
	return fmt.Sprintf("%s%s/record-%020d.json", RecordPrefix(base, job), shard, id)
}

// parseRecordKey is the inverse of RecordKey for keys below RecordPrefix(base, ""): ok is false for a key of another
// form.
func parseRecordKey(base, key string) (job string, shard checkpoint.Shard, id int64, ok bool) {
	rest, found := strings.CutPrefix(key, RecordPrefix(base, ""))
	if !found {
		return "", checkpoint.Shard{}, 0, false
	}
	parts := strings.Split(rest, "/")
	if len(parts) != 3 {
		return "", checkpoint.Shard{}, 0, false
	}
	digits, found := strings.CutPrefix(parts[2], "record-")
	if !found {
		return "", checkpoint.Shard{}, 0, false
	}
	digits, found = strings.CutSuffix(digits, ".json")
	if !found || len(digits) != 20 {
		return "", checkpoint.Shard{}, 0, false
	}
	id, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return "", checkpoint.Shard{}, 0, false
	}
	shard, err = checkpoint.ParseShardDir(parts[1])
	return parts[0], shard, id, err == nil
}

// joinKey joins a base key, which may be empty or end in a slash, and a name.
func joinKey(base, name string) string {
	base = strings.TrimSuffix(base, "/")
	if base == "" {
		return name
	}
	return base + "/" + name
}
