package readback_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/e2e/readback"
	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

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
