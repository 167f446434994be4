package sink

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/checkpoint"
)

func TestRecordKey_ParsesBack(t *testing.T) {
	for _, base := range []string{"", "out", "out/", "a/b", "_sluice"} {
		key := RecordKey(base, "job.1", "2-of-3", 41)
		job, shard, id, ok := parseRecordKey(base, key)
		require.True(t, ok, key)
		require.Equal(t, []any{"job.1", "2-of-3", int64(41)}, []any{job, shard.Dir(), id})
		require.True(t, strings.HasPrefix(key, RecordPrefix(base, "job.1")))
	}
	require.Equal(t, "out/_sluice/main/0-of-1/record-00000000000000000012.json", RecordKey("out", "main", "0-of-1", 12))
}

func TestRecordKey_OtherNamesAreNotRecords(t *testing.T) {
	for _, key := range []string{
		"out/_sluice/main/0-of-1/record-12.json", "out/_sluice/main/record-00000000000000000012.json",
		"out/_sluice/main/0-of-1/record-0000000000000000001x.json", "other/_sluice/main/0-of-1/record-00000000000000000012.json",
		"out/_sluice/main/0-of-1/x/record-00000000000000000012.json", "out/part_main_0-of-1_e1_w0_0.raw", "",
	} {
		_, _, _, ok := parseRecordKey("out", key)
		require.False(t, ok, key)
	}
}

func TestFileName_SaysEverythingThatMakesItUnique(t *testing.T) {
	require.Equal(t, "part_main_0-of-1_e3_w15_120.raw", FileName("main", "0-of-1", 3, 15, 120, ".raw"))
}

// Names of different writers never meet, and no name of one job begins like one of another.
func TestFileName_NeverRepeatsAcrossJobsShardsEpochsWritersCounters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type id struct {
			job     string
			shard   checkpoint.Shard
			epoch   int64
			subtask int
			counter int64
		}
		gen := rapid.Custom(func(t *rapid.T) id {
			count := rapid.IntRange(1, 12).Draw(t, "count")
			return id{
				job:   rapid.StringMatching(`[a1][a1.-]{0,3}`).Draw(t, "job"),
				shard: checkpoint.Shard{Index: rapid.IntRange(0, count-1).Draw(t, "index"), Count: count},
				epoch: rapid.Int64Range(1, 20).Draw(t, "epoch"), subtask: rapid.IntRange(0, 20).Draw(t, "subtask"),
				counter: rapid.Int64Range(0, 20).Draw(t, "counter"),
			}
		})
		name := func(i id) string { return FileName(i.job, i.shard.Dir(), i.epoch, i.subtask, i.counter, ".raw") }
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		require.Regexp(t, jobName, a.job)
		require.Equal(t, a == b, name(a) == name(b), "%v %v", a, b)
		if a.job != b.job {
			require.False(t, strings.HasPrefix(name(a), FilePrefix(b.job)))
		}
	})
}
