package readback_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/sluice-go/sluice/e2e/readback"
	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

// With three shards and one row, two of them have nothing to publish and so no record.
func TestVerify_AShardWithoutRowsNeedsNoRecord(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := job{name: "main", shard: datagen.Shard{Index: 0, Count: 3}, source: randomRows(1)}
		w.run(j)
		r := w.verify(j)
		assert.True(t, r.Proven, render(t, r))
	})
}

func TestVerify_AMissingRecordIsNoticedByTotalsFilesAndRows(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		keys := w.records("main")
		lost, err := sink.DecodeRecord(w.content(keys[2]))
		require.NoError(t, err)
		w.store.DeleteObject("data", keys[2])
		r := w.verify(j)
		assert.Equal(t, []string{"totals of record " + keys[3] + " do not continue those of the record before it: one is missing"}, r.Problems)
		assert.EqualValues(t, len(lost.Files), r.ForeignFiles.Total)
		assert.EqualValues(t, 100*len(lost.Files), r.Missing.Total)
		assert.False(t, r.Proven)
	})
}

func TestVerify_WithoutTheNewestRecordTheJobIsNotFinished(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		keys := w.records("main")
		last, err := sink.DecodeRecord(w.content(keys[4]))
		require.NoError(t, err)
		w.store.DeleteObject("data", keys[4])
		r := w.verify(j)
		var rows int64
		for _, f := range last.Files {
			rows += f.Rows
		}
		assert.Equal(t, []string{fmt.Sprintf("shard 0/1 has published %d of 1000 rows: it is not finished", 1000-rows)}, r.Problems)
		assert.Equal(t, rows, r.Missing.Total)
		assert.EqualValues(t, len(last.Files), r.ForeignFiles.Total)
	})
}

func TestVerify_NamesADamagedRecord(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"flipped byte": func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"cut short":    func(b []byte) []byte { return b[:len(b)/2] },
		"empty":        func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				j := w.main()
				key := w.records("main")[2]
				w.put(key, damage(w.content(key)))
				r := w.verify(j)
				require.NotEmpty(t, r.Problems)
				assert.Contains(t, r.Problems[0], "s3://data/"+key+": unreadable commit record")
				assert.NotZero(t, r.Missing.Total)
				assert.False(t, r.Proven)
			})
		})
	}
}

func TestVerify_ARecordThatIsGoneSinceItWasListedIsAFinding(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		key := w.records("main")[2]
		w.store.Control(s3test.Match{Op: s3test.GetObject, KeyPrefix: key}, func(s3test.Request) *s3test.Reply {
			w.store.DeleteObject("data", key)
			return nil
		})
		r := w.verify(j)
		assert.Contains(t, r.Problems[0], key)
		assert.False(t, r.Proven)
	})
}

func TestVerify_ARecordUnderAnotherNameIsNotBelieved(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		key := w.records("main")[2]
		w.editRecord(key, func(r *sink.Record) { r.Job = "another" })
		r := w.verify(j)
		assert.Equal(t, "record "+key+" says that it is of job another, shard 0-of-1, checkpoint 3", r.Problems[0])
		assert.False(t, r.Proven)
	})
}

func TestVerify_AFileListedTwiceInOneRecordOrInTwoIsNamed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		keys := w.records("main")
		first, err := sink.DecodeRecord(w.content(keys[0]))
		require.NoError(t, err)
		twice := first.Files[0]
		original := w.content(keys[4])
		w.editRecord(keys[4], func(r *sink.Record) {
			r.Files = append(r.Files, twice)
			r.TotalFiles++
			r.TotalRows += twice.Rows
			r.TotalBytes += twice.Bytes
			r.RowsAccepted += twice.Rows
		})
		r := w.verify(j)
		assert.Contains(t, r.Problems, "file "+twice.Key+" is in more than one record, the last one is "+keys[4])
		assert.Zero(t, r.Duplicates.Total, "the file is there once, and so are its rows")

		w.put(keys[4], original)
		w.editRecord(keys[4], func(r *sink.Record) { r.Files = append(r.Files, r.Files[0]) })
		r = w.verify(j)
		assert.Contains(t, r.Problems[0], "s3://data/"+keys[4]+": unreadable commit record")
		assert.Contains(t, r.Problems[0], "listed twice")
	})
}

// With sink.expired-upload = skip-and-record a job gives a lost file up and says so: its rows are missing, not unfinished.
func TestVerify_AFileThatTheJobGaveUpIsNamedWithItsRows(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		keys, file := w.records("main"), w.files("main")[9]
		w.editRecord(keys[4], func(r *sink.Record) {
			require.Equal(t, file, r.Files[0].Key)
			r.Files, r.Skipped = nil, r.Files
			r.TotalFiles--
			r.TotalRows -= 100
			r.TotalBytes -= 100 * rowBytes
			r.TotalSkippedRows += 100
		})
		require.True(t, w.store.DeleteObject("data", file))
		r := w.verify(j)
		assert.Equal(t, one(readback.FileProblem{File: file}), r.SkippedFiles)
		assert.Equal(t, readback.List[readback.Range]{Total: 100, First: []readback.Range{{First: 900, Last: 999, Step: 1}}}, r.Missing)
		assert.Equal(t, "NOT PROVEN: 1 file given up, its upload had expired; 100 rows missing", r.Verdict())
		assert.True(t, r.Shards[0].Final)
	})
}

func TestVerify_NamesAShardWithoutRecords(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := job{name: "main", shard: datagen.Shard{Index: 0, Count: 2}, source: randomRows(1000)}
		w.run(j)
		r := w.verify(j)
		assert.Equal(t, []string{"shard 1/2 has no commit record"}, r.Problems)
		assert.Equal(t, readback.List[readback.Range]{Total: 500, First: []readback.Range{
			{First: 1, Last: 255, Step: 2}, {First: 257, Last: 511, Step: 2}, {First: 513, Last: 767, Step: 2}, {First: 769, Last: 999, Step: 2},
		}}, r.Missing)
		assert.Equal(t, []bool{true, false}, []bool{r.Shards[0].Final, r.Shards[1].Final})
	})
}

func TestVerify_RecordsOfTwoSplitsDoNotBelongTogether(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		w.run(job{name: "main", shard: datagen.Shard{Index: 1, Count: 2}, source: randomRows(1000)})
		r := w.verify(j)
		assert.Equal(t, []string{"shard 0/2 has no commit record", "there are records of shard 0/1 beside those of a split into 2"}, r.Problems)
		assert.EqualValues(t, 500, r.Duplicates.Total)
	})
}

func TestVerify_WithMoreRowsThanWereAskedForTheJobIsNotFinished(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		j.source.NumberOfRows = 1200
		r := w.verify(j)
		assert.Equal(t, []string{"shard 0/1 has published 1000 of 1200 rows: it is not finished"}, r.Problems)
		assert.EqualValues(t, 200, r.Missing.Total)

		j.source.NumberOfRows = 800
		r = w.verify(j)
		assert.Equal(t, []string{"shard 0/1 has published 1000 rows, but its source ends after 800"}, r.Problems)
		assert.EqualValues(t, 200, r.Unexpected.Total)
	})
}

// Files left open are staged in the checkpoint: durable, but not published.
func TestVerify_AStoppedJobIsNotFinished(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := job{name: "main", source: randomRows(1000), halt: 500}
		w.run(j)
		r := w.verify(j)
		assert.Equal(t, []string{"shard 0/1 has published 400 of 1000 rows: it is not finished"}, r.Problems)
		assert.Equal(t, []int64{400, 1000, 600}, []int64{r.Rows, r.Expected, r.Missing.Total})
		assert.False(t, r.Shards[0].Final)
		assert.Zero(t, r.Corrupt.Total+r.Duplicates.Total+r.ForeignFiles.Total+r.MissingFiles.Total)
	})
}

// Of an unbounded source everything that the sink had taken is expected.
func TestVerify_OfAnUnboundedSourceWhatWasTakenIsExpected(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := job{name: "main", source: randomRows(0), halt: 500}
		w.run(j)
		r := w.verify(j)
		assert.Equal(t, []string{"shard 0/1 has published 400 of 500 rows: it is not finished"}, r.Problems)
		assert.EqualValues(t, 100, r.Missing.Total)

		even := job{name: "even", source: randomRows(0), halt: 600}
		w.run(even) // 6 files of 100 rows, but the last one is open until a further row does not fit
		keys := w.records("even")
		w.editRecord(keys[len(keys)-1], func(r *sink.Record) { r.RowsAccepted = r.TotalRows })
		r = w.verify(even)
		assert.True(t, r.Proven, render(t, r))
		assert.False(t, r.Shards[0].Final, "an unbounded source has no end")
		assert.EqualValues(t, 500, r.Rows)
	})
}

func TestVerify_WhenNothingIsCommittedItSaysWhatIsThereInstead(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.verify(job{name: "main", source: randomRows(10)})
		assert.Equal(t, "NOT PROVEN: 10 rows missing; nothing is committed: no commit record of job main below s3://data/out/_sluice/", r.Verdict())

		w.main()
		r = w.verify(job{name: "mian", source: randomRows(0)})
		assert.Equal(t, "NOT PROVEN: nothing is committed: no commit record of job mian below s3://data/out/_sluice/, only of main", r.Verdict())
	})
}

// Somebody's notes beside the records are nobody's business; among the job's own records they are a finding.
func TestVerify_AnObjectThatIsNoRecord(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		w.put("out/_sluice/notes.txt", []byte("x"))
		w.put("out/_sluice/other/0-of-1/notes.txt", []byte("x"))
		r := w.verify(j)
		assert.True(t, r.Proven, render(t, r))
		w.put("out/_sluice/main/0-of-1/notes.txt", []byte("x"))
		r = w.verify(j)
		assert.False(t, r.Proven)
		require.Len(t, r.Problems, 1)
		assert.Contains(t, r.Problems[0], "s3://data/out/_sluice/main/0-of-1/notes.txt")
	})
}
