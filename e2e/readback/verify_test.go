package readback_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/sluice-go/sluice/e2e/readback"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

func one[T readback.Ordered[T]](v T) readback.List[T] {
	return readback.List[T]{Total: 1, First: []T{v}}
}

func TestVerify_ProvesWhatAJobHasPublished(t *testing.T) {
	sequence := datagen.Options{Fields: []datagen.Field{datagen.SequenceField("n", -300, 699)}}
	for name, source := range map[string]datagen.Options{"random": randomRows(1000), "sequence": sequence} {
		for _, shards := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/%d", name, shards), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					for i := range shards {
						w.run(job{name: "main", shard: datagen.Shard{Index: i, Count: shards}, source: source})
					}
					r := w.verify(job{name: "main", source: source})
					assert.True(t, r.Proven, render(t, r))
					assert.Equal(t, "PROVEN: 1000 of 1000 rows, each exactly once", r.Verdict())
					assert.Equal(t, []int64{1000, 1000, 1}, []int64{r.Rows, r.Expected, int64(r.Passes)})
					assert.EqualValues(t, len(w.records("main")), r.Records)
					assert.EqualValues(t, len(w.files("main")), r.Listed)
					assert.EqualValues(t, len(w.files("main")), r.Files)
					require.Len(t, r.Shards, shards)
					var rows int64
					for i, s := range r.Shards {
						assert.Equal(t, datagen.Shard{Index: i, Count: shards}, s.Shard)
						assert.True(t, s.Final)
						assert.EqualValues(t, 1, s.Epoch)
						rows += s.Rows
					}
					assert.EqualValues(t, 1000, rows)
				})
			})
		}
	}
}

// With three shards and one row, two of them have nothing to publish and so no record.
func TestVerify_AShardWithoutRowsNeedsNoRecord(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := job{name: "main", shard: datagen.Shard{Index: 0, Count: 3}, source: randomRows(1)}
		w.run(j)
		r := w.verify(j)
		assert.True(t, r.Proven, render(t, r))
	})
}

func TestVerify_NamesADeletedFileAndItsRows(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		file := w.files("main")[3]
		require.True(t, w.store.DeleteObject("data", file))
		r := w.verify(j)
		assert.Equal(t, one(readback.FileProblem{File: file}), r.MissingFiles)
		assert.Equal(t, readback.List[readback.Range]{Total: 100, First: []readback.Range{{First: 300, Last: 399, Step: 1}}}, r.Missing)
		assert.Equal(t, "NOT PROVEN: 1 file missing; 100 rows missing", r.Verdict())
	})
}

// A store that answers Complete with a lie is caught by the sink; one that loses the object later is caught here.
func TestVerify_NamesAFileThatTheStoreLostBehindARecord(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := job{name: "main", source: randomRows(3000), fileSize: 256 << 10} // larger than a part: a multipart upload
		w.run(j)
		require.Contains(t, w.store.Trace(), "CompleteMultipartUpload")
		file := w.files("main")[0]
		require.True(t, w.store.DeleteObject("data", file))
		w.store.Control(s3test.Match{Op: s3test.CompleteMultipartUpload}, s3test.Always(s3test.DropEffect200()))
		r := w.verify(j)
		assert.Equal(t, one(readback.FileProblem{File: file}), r.MissingFiles)
		assert.False(t, r.Proven)
	})
}

func TestVerify_NamesACutFileItsTornRowAndTheRowsBehindIt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		file := w.files("main")[3]
		whole := w.content(file)
		cut := whole[:95*rowBytes+50] // in the middle of the 96th row, 395
		w.put(file, cut)
		r := w.verify(j)
		assert.Equal(t, one(readback.FileProblem{File: file, Want: fmt.Sprint(100 * rowBytes), Got: fmt.Sprint(len(cut))}), r.WrongSizes)
		assert.Equal(t, one(readback.FileProblem{File: file, Want: crcOf(whole), Got: crcOf(cut)}), r.WrongChecksums)
		require.EqualValues(t, 1, r.Corrupt.Total)
		bad := r.Corrupt.First[0]
		assert.True(t, bad.Torn)
		assert.Equal(t, []int64{95, 95 * rowBytes, 395}, []int64{bad.Index, bad.Offset, bad.Row})
		assert.Equal(t, readback.List[readback.Range]{Total: 5, First: []readback.Range{{First: 395, Last: 399, Step: 1}}}, r.Missing)
	})
}

// flip changes one byte of the 3rd row of the job's 4th file, row 302.
func flip(w *world) (file string, before, after []byte) {
	file = w.files("main")[3]
	before = w.content(file)
	after = bytes.Clone(before)
	after[2*rowBytes+60] ^= 1
	return file, before, after
}

func requireFlip(t *testing.T, r *readback.Report, file string, before, after []byte) {
	t.Helper()
	assert.Equal(t, one(readback.FileProblem{File: file, Want: crcOf(before), Got: crcOf(after)}), r.WrongChecksums)
	assert.Equal(t, one(readback.BadRow{
		File: file, Index: 2, Offset: 2 * rowBytes, Row: 302, Why: "corrupt row 302: 1 of 100 bytes differ, the first at byte 60",
	}), r.Corrupt)
	assert.Equal(t, one(readback.Range{First: 302, Last: 302, Step: 1}), r.Missing)
	assert.Equal(t, "NOT PROVEN: 1 file with the wrong checksum; 1 row missing; 1 row corrupt", r.Verdict())
	assert.Contains(t, render(t, r), file+", line 3 at byte 202: corrupt row 302")
}

func TestVerify_OneFlippedByteIsAWrongChecksumAndACorruptRow(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		file, before, after := flip(w)
		w.put(file, after)
		requireFlip(t, w.verify(j), file, before, after)
	})
}

// A disk that rots keeps the checksum that the object once had, and the client notices. It is a finding all the same, in each pass.
func TestVerify_AByteThatFlippedInTheStoreIsTheSameFinding(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		file, before, after := flip(w)
		w.put(file, after)
		w.store.Control(s3test.Match{Op: s3test.GetObject, KeyPrefix: file},
			s3test.Always(s3test.Delay(0).WithHeader("x-amz-checksum-crc64nvme", crcOf(before)).WithHeader("x-amz-checksum-type", "FULL_OBJECT")))
		requireFlip(t, w.verify(j), file, before, after)
	})
}

func TestVerify_AWrongChecksumAtTheStoreBesideSoundBytesIsNoProof(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		file := w.files("main")[3]
		w.store.Control(s3test.Match{Op: s3test.GetObject, KeyPrefix: file},
			s3test.Always(s3test.Delay(0).WithHeader("x-amz-checksum-crc64nvme", "AAAAAAAAAAA=").WithHeader("x-amz-checksum-type", "FULL_OBJECT")))
		r := w.verify(j)
		require.EqualValues(t, 1, r.WrongChecksums.Total)
		assert.Equal(t, file, r.WrongChecksums.First[0].File)
		assert.Zero(t, r.Corrupt.Total+r.Missing.Total)
		assert.False(t, r.Proven)
	})
}

// swap exchanges the first rows of two files.
func swap(w *world, a, b string) {
	left, right := w.content(a), w.content(b)
	row := bytes.Clone(left[:rowBytes])
	copy(left, right[:rowBytes])
	copy(right, row)
	w.put(a, left)
	w.put(b, right)
}

// Each row is still there once and sound: only the checksums can tell.
func TestVerify_RowsSwappedBetweenFilesAreWrongChecksums(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		a, b := w.files("main")[3], w.files("main")[7]
		swap(w, a, b)
		r := w.verify(j)
		assert.EqualValues(t, 2, r.WrongChecksums.Total)
		assert.Equal(t, []string{a, b}, []string{r.WrongChecksums.First[0].File, r.WrongChecksums.First[1].File})
		assert.Equal(t, "NOT PROVEN: 2 files with the wrong checksum", r.Verdict())
	})
}

// The file says what its record says; only who looks at the rows can tell.
func TestVerify_ARowWrittenTwiceInPlaceOfAnotherIsFoundByTheRowsAlone(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		a, b := w.files("main")[3], w.files("main")[7]
		twice := w.content(a)
		copy(twice, w.content(b)[:rowBytes]) // row 700 in the place of row 300
		w.put(a, twice)
		w.adopt(a)
		r := w.verify(j)
		assert.Equal(t, one(readback.Range{First: 300, Last: 300, Step: 1}), r.Missing)
		assert.Equal(t, one(readback.Duplicate{Row: 700, Times: 2, Files: []string{a, b}}), r.Duplicates)
		assert.Equal(t, "NOT PROVEN: 1 row missing; 1 duplicate row", r.Verdict())
	})
}

func TestVerify_ARowAppendedToAFileAndItsRecordIsADuplicate(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		a, b := w.files("main")[3], w.files("main")[9] // in the newest record, so that no later one has to be adapted
		w.put(b, append(w.content(b), w.content(a)[:rowBytes]...))
		w.adopt(b)
		keys := w.records("main")
		w.editRecord(keys[len(keys)-1], func(r *sink.Record) {
			f := &r.Files[len(r.Files)-1]
			require.Equal(t, b, f.Key)
			f.Rows++
			f.Bytes += rowBytes
			r.TotalRows++
			r.TotalBytes += rowBytes
			r.RowsAccepted++
		})
		r := w.verify(j)
		assert.Equal(t, one(readback.Duplicate{Row: 300, Times: 2, Files: []string{a, b}}), r.Duplicates)
		assert.Equal(t, []string{"shard 0/1 has published 1001 rows, but its source ends after 1000"}, r.Problems)
		assert.Zero(t, r.WrongSizes.Total+r.WrongChecksums.Total+r.Missing.Total)
	})
}

func TestVerify_ObjectsThatAReaderWouldTakeForDataAreForeign(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		foreign := []string{"out/data.csv", "out/part_main_0-of-1_e9_w0_0.raw", "out/part_mainly_0-of-1_e1_w0_0.raw", "out/year=2026/x.raw"}
		for _, key := range foreign {
			w.put(key, w.content(w.files("main")[0]))
		}
		for _, key := range []string{
			"out/_SUCCESS", "out/.hidden", "out/_temporary/0/x.raw", "other/part_main_0-of-1_e1_w0_0.raw", "output.raw",
		} {
			w.put(key, []byte("x"))
		}
		w.put("out/", nil) // what some tools make for a folder
		w.put("out/year=2026/", nil)
		r := w.verify(j)
		var found []string
		for _, f := range r.ForeignFiles.First {
			found = append(found, f.File)
		}
		assert.Equal(t, foreign, found)
		assert.Equal(t, "NOT PROVEN: 4 files that no record lists", r.Verdict())
	})
}

func TestVerify_FilesOfAnotherJobUnderThePathAreLeftAlone(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		w.run(job{name: "main-2", source: randomRows(200)})
		w.store.DeleteObject("data", w.files("main-2")[0]) // the other job's business
		w.put(w.records("main-2")[0], []byte("damaged"))   // so is this
		r := w.verify(j)
		assert.True(t, r.Proven, render(t, r))
		assert.EqualValues(t, 10, r.Files)

		like := "out/part_main-20_0-of-1_e1_w0_0.raw" // of no job that has a record
		w.put(like, []byte("x"))
		assert.Equal(t, one(readback.FileProblem{File: like}), w.verify(j).ForeignFiles)
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

func TestVerify_WithAnotherSeedEveryRowIsCorrupt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		j.source.Seed++
		r := w.verify(j)
		assert.EqualValues(t, 1000, r.Corrupt.Total)
		assert.EqualValues(t, 1000, r.Missing.Total)
		assert.Len(t, r.Corrupt.First, readback.DefaultListLimit)
		assert.Zero(t, r.WrongChecksums.Total, "the files are what was written")
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

func TestVerify_ListingsOfManyPages(t *testing.T) {
	bubbleWith(t, s3test.Options{PageSize: 3}, func(t *testing.T, w *world) {
		j := w.main()
		w.store.ResetTrace()
		r := w.verify(j)
		assert.True(t, r.Proven, render(t, r))
		// 5 records are 2 pages; 10 files and 5 records are 5.
		assert.Equal(t, 7, strings.Count(w.store.Trace(), "ListObjectsV2"))
	})
}

func TestVerify_ReadsOnWhereABodyBreaksOff(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		w.store.Control(s3test.Match{Op: s3test.GetObject, Every: 2}, s3test.Always(s3test.CutBody(777)))
		r := w.verify(j)
		assert.True(t, r.Proven, render(t, r))
		assert.Contains(t, w.store.Trace(), "range=bytes=777-")
	})
}

func TestVerify_AFileThatGoesAwayWhileItIsReadBackIsNamed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		file := w.files("main")[3]
		w.store.Control(s3test.Match{Op: s3test.GetObject, KeyPrefix: file}, func(s3test.Request) *s3test.Reply {
			w.store.DeleteObject("data", file)
			return nil
		})
		r := w.verify(j)
		assert.Equal(t, one(readback.FileProblem{File: file}), r.Gone)
		assert.EqualValues(t, 100, r.Missing.Total)
	})
}

// A store that does not answer is no finding about the data: the check could not be finished, whichever request it was.
func TestVerify_AStoreThatFailsIsAnErrorThatNamesTheRequest(t *testing.T) {
	for name, c := range map[string]struct {
		match s3test.Match
		want  string
	}{
		"listing":     {s3test.Match{Op: s3test.ListObjectsV2}, "list s3://data/out/_sluice/"},
		"record":      {s3test.Match{Op: s3test.GetObject, KeyPrefix: "out/_sluice/"}, "/record-00000000000000000001.json"},
		"second list": {s3test.Match{Op: s3test.ListObjectsV2, KeyPrefix: ""}, "list s3://data/out/"},
		"file":        {s3test.Match{Op: s3test.GetObject, KeyPrefix: "out/part_"}, "read back out/part_main_0-of-1_e1_w0_"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				j := w.main()
				skip := name == "second list"
				w.store.Control(c.match, func(q s3test.Request) *s3test.Reply {
					if skip && q.Query.Get("prefix") != "out/" {
						return nil
					}
					return s3test.Status(500, "InternalError")
				})
				_, err := readback.Verify(t.Context(), w.fs, readback.Target{Path: base, Job: "main", Source: j.source}, readback.Options{})
				require.ErrorContains(t, err, c.want)
				assert.ErrorContains(t, err, "InternalError after 4 attempts")
			})
		})
	}
}

func TestVerify_AnObjectAmongTheRecordsThatIsNoneIsAnErrorThatNamesIt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		w.put("out/_sluice/notes.txt", []byte("x"))
		_, err := readback.Verify(t.Context(), w.fs, readback.Target{Path: base, Job: "main", Source: j.source}, readback.Options{})
		require.ErrorIs(t, err, sink.ErrRecord)
		assert.ErrorContains(t, err, "s3://data/out/_sluice/notes.txt")
	})
}

func TestVerify_WrongTargetsAreRefusedBeforeAnyRequest(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_, err := readback.Verify(t.Context(), w.fs, readback.Target{Path: base, Job: "main"}, readback.Options{})
		require.ErrorContains(t, err, "datagen.fields")
		require.Empty(t, w.store.Trace())
	})
}

func TestVerify_StopsWhenItsContextEnds(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		j := w.main()
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		w.store.Control(s3test.Match{Op: s3test.GetObject, KeyPrefix: "out/part_", Nth: 5}, func(s3test.Request) *s3test.Reply {
			cancel(cause)
			return nil
		})
		_, err := readback.Verify(ctx, w.fs, readback.Target{Path: base, Job: "main", Source: j.source}, readback.Options{Workers: 1})
		require.ErrorIs(t, err, cause)
	})
}

// A sink whose path is the bucket itself, or ends in a slash, is read back like any other.
func TestVerify_ThePathMayBeTheBucketOrEndInASlash(t *testing.T) {
	for _, path := range []s3fs.Path{{Bucket: "data"}, {Bucket: "data", Key: "out/"}} {
		t.Run(path.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				j := job{name: "main", source: randomRows(100)}
				w.runAt(path, j)
				r, err := readback.Verify(t.Context(), w.fs, readback.Target{Path: path, Job: "main", Source: j.source}, readback.Options{})
				require.NoError(t, err)
				assert.True(t, r.Proven, render(t, r))
				w.put(path.Key+"x", []byte("x"))
				r, err = readback.Verify(t.Context(), w.fs, readback.Target{Path: path, Job: "main", Source: j.source}, readback.Options{})
				require.NoError(t, err)
				assert.Equal(t, one(readback.FileProblem{File: path.Key + "x"}), r.ForeignFiles)
			})
		})
	}
}

// A hundred times the rows in as many files: what is kept, and what is made on the way, does not grow with the rows.
func TestVerify_KeepsNoRows(t *testing.T) {
	mallocs := func(rows int64) (n uint64) {
		bubble(t, func(t *testing.T, w *world) {
			j := job{name: "main", source: randomRows(rows), fileSize: rows * rowBytes / 2}
			w.run(j)
			require.Len(t, w.files("main"), 2)
			require.True(t, w.verify(j).Proven) // connections and pools are there now
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			require.True(t, w.verify(j).Proven)
			runtime.ReadMemStats(&after)
			n = after.Mallocs - before.Mallocs
		})
		return n
	}
	few, many := mallocs(400), mallocs(40_000)
	t.Logf("%d allocations for 400 rows, %d for 40,000", few, many)
	assert.Less(t, many, few+4000, "less than one allocation for ten rows")
}
