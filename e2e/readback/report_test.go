package readback_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/sluice-go/sluice/e2e/readback"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sound is the report of a job whose rows are all there.
func sound() *readback.Report {
	r := readback.NewReport("s3://data/out", "demo")
	r.Shards = []readback.ShardReport{{Shard: datagen.Shard{Index: 0, Count: 1}, Checkpoint: 7, Epoch: 2, Rows: 1000, Final: true}}
	r.Records, r.Listed, r.Files, r.Expected, r.Passes = 7, 4, 4, 1000, 1
	r.Counts = readback.Counts{Rows: 1000, Characters: 1_024_000, Bytes: 1_025_000}
	return r
}

func render(t *testing.T, r *readback.Report) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, r.WriteText(&b))
	return b.String()
}

func TestReport_OfASoundJobEndsWithTheProof(t *testing.T) {
	r := sound()
	r.Requests = &readback.Requests{Calls: 20, Attempts: 23, Throttled: 3}
	r.Conclude(400 * time.Millisecond)
	assert.True(t, r.Proven)
	assert.Equal(t, `read back s3://data/out, job demo
  shard 0/1                      checkpoint 7, epoch 2, 1000 rows, source at its end
  commit records                 7
  files                          4 of 4
  rows                           1000 of 1000
  characters                     1024000
  bytes                          1025000
  read-back duration             0.4 s
  read-back throughput           2.6 MB/s
  read-back S3 calls             20
  read-back HTTP attempts        23
  read-back throttled responses  3
  read-back completed calls/s    50.0
PROVEN: 1000 of 1000 rows, each exactly once
`, render(t, r))
}

func TestReport_EveryFindingStandsAgainstTheProofAndIsNamed(t *testing.T) {
	file := readback.List[readback.FileProblem]{Total: 1, First: []readback.FileProblem{{File: "out/part-1", Want: "10", Got: "11"}}}
	for name, c := range map[string]struct {
		find func(*readback.Report)
		why  string
		line string
	}{
		"missing file":   {func(r *readback.Report) { r.MissingFiles = file }, "1 file missing", "missing files: 1\n  out/part-1"},
		"skipped file":   {func(r *readback.Report) { r.SkippedFiles = file }, "1 file given up, its upload had expired", "files given up by the job: 1\n  out/part-1"},
		"foreign file":   {func(r *readback.Report) { r.ForeignFiles = file }, "1 file that no record lists", "files that no record lists: 1\n  out/part-1"},
		"wrong size":     {func(r *readback.Report) { r.WrongSizes = file }, "1 file of the wrong size", "out/part-1: 11 instead of 10"},
		"wrong checksum": {func(r *readback.Report) { r.WrongChecksums = file }, "1 file with the wrong checksum", "out/part-1: 11 instead of 10"},
		"gone":           {func(r *readback.Report) { r.Gone = file }, "1 file gone while it was read back", "gone while they were read back: 1\n  out/part-1"},
		"missing rows": {func(r *readback.Report) {
			r.Missing.Add(1, 3, readback.Range{First: 5, Last: 7, Step: 1})
			r.Missing.Add(1, 1, readback.Range{First: 9, Last: 9, Step: 1})
		}, "4 rows missing", "missing rows: 4\n  rows 5-7\n  ..."},
		"duplicate row": {func(r *readback.Report) {
			r.Duplicates.Add(1, 1, readback.Duplicate{Row: 5, Times: 2, Files: []string{"a", "b"}})
		}, "1 duplicate row", "duplicate rows: 1\n  row 5, 2 times: a, b"},
		"corrupt row": {func(r *readback.Report) {
			r.Corrupt.Add(1, 1, readback.BadRow{File: "a\nPROVEN", Index: 3, Offset: 90, Row: 5, Why: "no \x1b"})
		}, "1 row corrupt", "corrupt rows: 1\n  a\\nPROVEN, line 4 at byte 90: no \\x1b\n"},
		"unexpected rows": {func(r *readback.Report) { r.Unexpected.Add(1, 2, readback.Unexpected{Row: 5, File: "a"}) }, "2 rows that are not committed", "row 5 in a"},
		"another problem": {func(r *readback.Report) { r.Problem("record %d is damaged", 3) }, "record 3 is damaged", "problem: record 3 is damaged"},
		"nothing there":   {func(r *readback.Report) { r.Expected, r.Rows = 0, 0 }, "nothing is committed", ""},
		"not checked":     {func(r *readback.Report) { r.Rows = 0 }, "0 rows read instead of 1000", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := sound()
			c.find(r)
			r.Conclude(time.Second)
			assert.False(t, r.Proven)
			assert.Equal(t, c.why, r.Why)
			text := render(t, r)
			assert.Contains(t, text, c.line)
			assert.True(t, strings.HasSuffix(text, "\nNOT PROVEN: "+c.why+"\n"), text)
		})
	}
}

func TestReport_ReasonsAreJoined(t *testing.T) {
	r := sound()
	r.Missing.Add(1, 3, readback.Range{First: 5, Last: 7, Step: 1})
	r.Corrupt.Add(1, 3, readback.BadRow{File: "a"})
	r.Problem("record 3 is damaged")
	r.Conclude(0)
	assert.Equal(t, "NOT PROVEN: 3 rows missing; 3 rows corrupt; record 3 is damaged", r.Verdict())
}

func TestReport_IsNotProvenBeforeItIsConcluded(t *testing.T) {
	assert.Equal(t, "NOT PROVEN: not concluded", sound().Verdict())
}

func TestReport_JSONCarriesEveryFinding(t *testing.T) {
	r := sound()
	r.Missing.Add(20, 3, readback.Range{First: 5, Last: 7, Step: 1})
	r.Conclude(2 * time.Second)
	var b strings.Builder
	require.NoError(t, r.WriteJSON(&b))
	assert.JSONEq(t, `{
		"version": 1, "location": "s3://data/out", "job": "demo",
		"shards": [{"shard": "0/1", "checkpoint": 7, "epoch": 2, "rows": 1000, "final": true}],
		"records": 7, "record_files": 4,
		"missing_files": {"total": 0}, "skipped_files": {"total": 0}, "foreign_files": {"total": 0}, "wrong_sizes": {"total": 0}, "wrong_checksums": {"total": 0},
		"rows": 1000, "characters": 1024000, "bytes": 1025000, "files": 4, "expected_rows": 1000,
		"missing_rows": {"total": 3, "first": [{"first": 5, "last": 7, "step": 1}]},
		"duplicate_rows": {"total": 0}, "unexpected_rows": {"total": 0}, "corrupt_rows": {"total": 0}, "gone_files": {"total": 0},
		"passes": 1, "seconds": 2, "mb_per_second": 0.5125, "proven": false, "why": "3 rows missing"
	}`, b.String())

	var back readback.Report
	require.NoError(t, json.Unmarshal([]byte(b.String()), &back))
	assert.Equal(t, *r, back)
}
