package readback_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/sluice-go/sluice/e2e/readback"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// store is files in memory; it counts how often each was opened.
type store struct {
	files map[string]string
	names []string

	mu     sync.Mutex
	opened map[string]int
	closed map[string]int
}

func (s *store) open(_ context.Context, pass int, file string) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, ok := s.files[file]
	if !ok {
		return nil, fmt.Errorf("get %s: %w", file, fs.ErrNotExist)
	}
	s.opened[file]++
	if pass != s.opened[file] {
		return nil, fmt.Errorf("pass %d opens %s for the %d. time", pass, file, s.opened[file])
	}
	return &closer{Reader: strings.NewReader(content), closed: func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.closed[file]++
	}}, nil
}

type closer struct {
	io.Reader
	closed func()
}

func (c *closer) Close() error { c.closed(); return nil }

const (
	rowLength = 50
	fileRows  = 100
)

// newStore writes the rows 0 to files*100-1 in files of 100 rows.
func newStore(t require.TestingT, files int) (*store, *datagen.Generator, readback.Expected) {
	g, err := datagen.NewGenerator(5, datagen.RandomField("line", rowLength))
	require.NoError(t, err)
	s := &store{files: map[string]string{}, opened: map[string]int{}, closed: map[string]int{}}
	for f := range files {
		var b []byte
		for i := range fileRows {
			b = append(g.Append(b, int64(f*fileRows+i)), '\n')
		}
		name := fmt.Sprintf("part-%02d", f)
		s.files[name], s.names = string(b), append(s.names, name)
	}
	return s, g, expected(t, int64(files*fileRows))
}

func check(t require.TestingT, s *store, g *datagen.Generator, e readback.Expected) readback.RowFindings {
	f, err := readback.CheckRows(context.Background(), g, e, s.names, s.open, readback.Options{Workers: 3, Window: 256})
	require.NoError(t, err)
	require.Equal(t, s.opened, s.closed, "every file that was opened is closed")
	return f
}

func TestCheckRows_SoundFilesTakeOnePassAndAreCounted(t *testing.T) {
	s, g, e := newStore(t, 20)
	assert.Equal(t, readback.RowFindings{
		Counts:   readback.Counts{Rows: 2000, Characters: 2000 * rowLength, Bytes: 2000 * (rowLength + 1)},
		Files:    20,
		Expected: 2000,
		Passes:   1,
	}, check(t, s, g, e))
}

func TestCheckRows_SequencesAreProvenToo(t *testing.T) {
	g, err := datagen.NewGenerator(0, datagen.SequenceField("n", -5, 4))
	require.NoError(t, err)
	s := &store{files: map[string]string{"a": "-5\n-4\n-3\n4\n", "b": "-2\n-1\n0\n1\n2\n3\n"}, names: []string{"a", "b"}, opened: map[string]int{}, closed: map[string]int{}}
	f := check(t, s, g, expected(t, 10))
	assert.Zero(t, f.Missing.Total+f.Duplicates.Total+f.Unexpected.Total+f.Corrupt.Total)
	assert.Equal(t, int64(10), f.Rows)
}

func TestCheckRows_ALostFileIsItsRowsMissing(t *testing.T) {
	s, g, e := newStore(t, 20)
	s.names = append(s.names[:12:12], s.names[13:]...)
	f := check(t, s, g, e)
	// The 100 rows lie on both sides of a window's end, at row 1280.
	assert.Equal(t, readback.List[readback.Range]{Total: 100, First: []readback.Range{{1200, 1279, 1}, {1280, 1299, 1}}}, f.Missing)
	assert.Equal(t, 3, f.Passes)
}

func TestCheckRows_AFileThatIsGoneIsNamedAndItsRowsAreMissing(t *testing.T) {
	s, g, e := newStore(t, 3)
	delete(s.files, "part-01")
	f := check(t, s, g, e)
	assert.Equal(t, readback.List[readback.FileProblem]{Total: 1, First: []readback.FileProblem{{File: "part-01"}}}, f.Gone)
	assert.Equal(t, int64(100), f.Missing.Total)
	assert.Equal(t, int64(2), f.Files)
}

func TestCheckRows_AFilePublishedTwiceIsNamedBothTimes(t *testing.T) {
	s, g, e := newStore(t, 20)
	s.files["part-99"], s.names = s.files["part-07"], append(s.names, "part-99")
	f := check(t, s, g, e)
	assert.Zero(t, f.Missing.Total)
	assert.Equal(t, int64(100), f.Duplicates.Total)
	require.Len(t, f.Duplicates.First, readback.DefaultListLimit)
	for i, d := range f.Duplicates.First {
		assert.Equal(t, readback.Duplicate{Row: int64(700 + i), Times: 2, Files: []string{"part-07", "part-99"}}, d)
	}
}

func TestCheckRows_RowsBehindTheCheckpointAreUnexpected(t *testing.T) {
	s, g, _ := newStore(t, 3)
	f := check(t, s, g, expected(t, 299))
	assert.Equal(t, readback.List[readback.Unexpected]{Total: 1, First: []readback.Unexpected{{Row: 299, File: "part-02"}}}, f.Unexpected)
	assert.Zero(t, f.Missing.Total)
}

func TestCheckRows_AChangedByteIsACorruptAndAMissingRow(t *testing.T) {
	s, g, e := newStore(t, 3)
	const line = rowLength + 1
	b := []byte(s.files["part-01"])
	b[42*line+30] ^= 1
	s.files["part-01"] = string(b)
	f := check(t, s, g, e)
	assert.Equal(t, readback.List[readback.BadRow]{Total: 1, First: []readback.BadRow{
		{File: "part-01", Index: 42, Offset: 42 * line, Row: 142, Why: "corrupt row 142: 1 of 50 bytes differ, the first at byte 30"},
	}}, f.Corrupt)
	assert.Equal(t, readback.List[readback.Range]{Total: 1, First: []readback.Range{{142, 142, 1}}}, f.Missing)
	assert.Equal(t, int64(300), f.Rows)
}

// Any one damage to the bytes of the files is found.
func TestCheckRows_AnyByteChangedRemovedOrAddedIsNoticed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, g, e := newStore(t, 3)
		name := rapid.SampledFrom(s.names).Draw(t, "file")
		content := s.files[name]
		at := rapid.IntRange(0, len(content)-1).Draw(t, "at")
		switch rapid.SampledFrom([]string{"change", "remove", "add", "cut"}).Draw(t, "damage") {
		case "change":
			b := []byte(content)
			b[at] ^= rapid.ByteRange(1, 255).Draw(t, "bits")
			content = string(b)
		case "remove":
			content = content[:at] + content[at+1:]
		case "add":
			content = content[:at] + string([]byte{rapid.Byte().Draw(t, "byte")}) + content[at:]
		case "cut":
			content = content[:at]
		}
		s.files[name] = content
		f := check(t, s, g, e)
		require.NotZero(t, f.Missing.Total+f.Duplicates.Total+f.Corrupt.Total)
	})
}

func TestCheckRows_ATornLastRowIsReportedAndCountsAsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		cut int
		row int64
		why string
	}{
		"only its newline": {1, 299, "torn row 299: the file ends without its newline"},
		"some bytes":       {11, 299, "torn row at the end of the file: corrupt row 299: 40 bytes instead of 50"},
		"nearly all":       {46, -1, "torn row at the end of the file: not a row of this generator: 5 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			s, g, e := newStore(t, 3)
			s.files["part-02"] = s.files["part-02"][:fileRows*(rowLength+1)-c.cut]
			f := check(t, s, g, e)
			require.Equal(t, int64(1), f.Corrupt.Total)
			bad := f.Corrupt.First[0]
			assert.True(t, strings.HasPrefix(bad.Why, c.why), bad.Why)
			bad.Why = ""
			assert.Equal(t, readback.BadRow{File: "part-02", Index: 99, Offset: 99 * (rowLength + 1), Row: c.row, Torn: true}, bad)
			assert.Equal(t, int64(1), f.Missing.Total)
			assert.Equal(t, int64(300), f.Rows)
		})
	}
}

func TestCheckRows_AnotherSeedIsEveryRowCorruptWithABoundedList(t *testing.T) {
	s, _, e := newStore(t, 3)
	g, err := datagen.NewGenerator(6, datagen.RandomField("line", rowLength))
	require.NoError(t, err)
	f := check(t, s, g, e)
	assert.Equal(t, int64(300), f.Corrupt.Total)
	assert.Equal(t, int64(300), f.Missing.Total)
	require.Len(t, f.Corrupt.First, readback.DefaultListLimit)
	for i, bad := range f.Corrupt.First {
		assert.Equal(t, "part-00", bad.File)
		assert.Equal(t, int64(i), bad.Index)
	}
}

func TestCheckRows_AnEndlessLineIsOneCorruptRow(t *testing.T) {
	s, g, e := newStore(t, 1)
	s.files["part-00"] = strings.Repeat("x", 1<<20) + "\n" + s.files["part-00"]
	f := check(t, s, g, e)
	assert.Equal(t, readback.List[readback.BadRow]{Total: 1, First: []readback.BadRow{
		{File: "part-00", Row: -1, Why: "1048576 bytes, longer than any row"},
	}}, f.Corrupt)
	assert.Zero(t, f.Missing.Total)
}

func TestCheckRows_AFailureToReadIsAnErrorThatNamesTheFile(t *testing.T) {
	broken := errors.New("connection reset")
	s, g, e := newStore(t, 20)
	open := func(ctx context.Context, pass int, file string) (io.ReadCloser, error) {
		if file == "part-13" {
			return io.NopCloser(io.MultiReader(strings.NewReader("abc\n"), iotest.ErrReader(broken))), nil
		}
		return s.open(ctx, pass, file)
	}
	_, err := readback.CheckRows(t.Context(), g, e, s.names, open, readback.Options{})
	assert.ErrorIs(t, err, broken)
	assert.EqualError(t, err, "read back part-13 at byte 4: connection reset")

	_, err = readback.CheckRows(t.Context(), g, e, s.names, func(context.Context, int, string) (io.ReadCloser, error) { return nil, broken },
		readback.Options{Workers: 1})
	assert.EqualError(t, err, "read back part-00: connection reset")
}

func TestCheckRows_StopsWhenTheContextEnds(t *testing.T) {
	stop := errors.New("stop")
	s, g, e := newStore(t, 20)
	ctx, cancel := context.WithCancelCause(t.Context())
	open := func(ctx context.Context, pass int, file string) (io.ReadCloser, error) {
		cancel(stop)
		return s.open(ctx, pass, file)
	}
	_, err := readback.CheckRows(ctx, g, e, s.names, open, readback.Options{Workers: 2})
	assert.ErrorIs(t, err, stop)
	assert.LessOrEqual(t, len(s.opened), 2)
}

func TestCheckRows_BadOptionsAreRefused(t *testing.T) {
	s, g, e := newStore(t, 1)
	_, err := readback.CheckRows(t.Context(), g, e, s.names, nil, readback.Options{})
	assert.ErrorIs(t, err, readback.ErrNoOpener)
	for _, o := range []readback.Options{{Workers: -1}, {ListLimit: -1}, {Window: 3}} {
		_, err := readback.CheckRows(t.Context(), g, e, s.names, s.open, o)
		assert.Error(t, err)
	}
}
