package readback_test

import (
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
