package readback_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/sluice-go/sluice/e2e/readback"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// slowReaders give the same bytes in other portions.
var slowReaders = map[string]func(io.Reader) io.Reader{
	"as they are": func(r io.Reader) io.Reader { return r },
	"one by one":  iotest.OneByteReader,
	"half reads":  iotest.HalfReader,
	"end at once": iotest.DataErrReader,
}

func text() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(
			rapid.String(), rapid.StringMatching(`[a-f0-9]{0,60}`), rapid.Just("\n"), rapid.Just("\n"), rapid.Just("\r"),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		), 0, 20).Draw(t, "pieces"), "")
	})
}

func TestLineReader_SplitsAsStringsSplitDoes(t *testing.T) {
	for name, slow := range slowReaders {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				content := text().Draw(t, "content")
				maxRow := rapid.IntRange(1, 40).Draw(t, "max row")
				size := rapid.IntRange(4, 100).Draw(t, "buffer")
				l := readback.NewLineReaderSize(slow(strings.NewReader(content)), maxRow, size)

				var offset, characters int64
				lines := strings.SplitAfter(content, "\n")
				if lines[len(lines)-1] == "" {
					lines = lines[:len(lines)-1]
				}
				for i, want := range lines {
					row, whole := strings.CutSuffix(want, "\n")
					line, ok := l.Next()
					require.True(t, ok)
					require.Equal(t, int64(i), line.Index)
					require.Equal(t, offset, line.Offset)
					require.Equal(t, int64(len(row)), line.Length)
					require.Equal(t, !whole, line.Torn)
					require.Equal(t, len(row) > maxRow, line.TooLong)
					if !line.TooLong {
						require.Equal(t, row, string(line.Content))
					}
					offset += int64(len(want))
					characters += int64(utf8.RuneCountInString(row))
				}
				_, ok := l.Next()
				require.False(t, ok)
				require.NoError(t, l.Err())
				require.Equal(t, readback.Counts{Rows: int64(len(lines)), Characters: characters, Bytes: int64(len(content))}, l.Counts())
			})
		})
	}
}

func TestLineReader_HoldsALineFarLongerThanItsBufferInConstantMemory(t *testing.T) {
	const runes = 1 << 20 // of three bytes each, so that they lie across every read
	content := io.MultiReader(strings.NewReader("a\n"), io.LimitReader(&repeat{text: "\u20ac"}, 3*runes), strings.NewReader("\nb\n"))
	l := readback.NewLineReader(content, 100)
	a, _ := l.Next()
	assert.Equal(t, "a", string(a.Content))
	long, ok := l.Next()
	require.True(t, ok)
	assert.Equal(t, readback.Line{Index: 1, Offset: 2, Length: 3 * runes, TooLong: true}, long)
	b, _ := l.Next()
	assert.Equal(t, "b", string(b.Content))
	assert.Equal(t, int64(3*runes+3), b.Offset)
	_, ok = l.Next()
	assert.False(t, ok)
	assert.Equal(t, readback.Counts{Rows: 3, Characters: runes + 2, Bytes: 3*runes + 5}, l.Counts())
}

// repeat gives text over and over.
type repeat struct {
	text string
	at   int
}

func (r *repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.text[r.at]
		r.at = (r.at + 1) % len(r.text)
	}
	return len(p), nil
}

// A connection that breaks is not the end of the file, even where its error wraps io.EOF.
func TestLineReader_ErrorIsNoEndAndItsLineIsNotReturned(t *testing.T) {
	broken := fmt.Errorf("connection broke: %w", io.EOF)
	l := readback.NewLineReader(io.MultiReader(strings.NewReader("whole\nhalf a li"), iotest.ErrReader(broken)), 100)
	line, ok := l.Next()
	require.True(t, ok)
	assert.Equal(t, "whole", string(line.Content))
	_, ok = l.Next()
	assert.False(t, ok)
	assert.Equal(t, broken, l.Err())
	_, ok = l.Next()
	assert.False(t, ok)
}

func TestLineReader_GivesUpOnAStreamThatGivesNothing(t *testing.T) {
	l := readback.NewLineReader(silent{}, 100)
	_, ok := l.Next()
	assert.False(t, ok)
	assert.ErrorIs(t, l.Err(), io.ErrNoProgress)
}

type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }

func TestLineReader_ResetForgetsTheStreamBefore(t *testing.T) {
	l := readback.NewLineReader(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(errors.New("broken"))), 100)
	l.Next()
	l.Next()
	require.Error(t, l.Err())
	l.Reset(strings.NewReader("c\n"))
	line, ok := l.Next()
	require.True(t, ok)
	assert.Equal(t, readback.Line{Content: []byte("c"), Length: 1}, line)
	require.NoError(t, l.Err())
	assert.Equal(t, readback.Counts{Rows: 1, Characters: 1, Bytes: 2}, l.Counts())
}
