package datagen_test

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func generator(t require.TestingT, seed int64, f datagen.Field) *datagen.Generator {
	g, err := datagen.NewGenerator(seed, f)
	require.NoError(t, err)
	return g
}

// rowNumbers draws small numbers, which jobs have, and all others.
func rowNumbers() *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64Range(0, 1000), rapid.Int64Range(0, math.MaxInt64-1))
}

func TestRandomRow_IsTheOneThePackageCommentDescribes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, name := rapid.Int64().Draw(t, "seed"), rapid.String().Draw(t, "field")
		length, row := rapid.IntRange(16, 300).Draw(t, "length"), rowNumbers().Draw(t, "row")
		g := generator(t, seed, datagen.RandomField(name, length))
		require.Equal(t, reference(seed, name, length, row), string(g.Append(nil, row)))
	})
}

func TestRandomRow_CarriesItsNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := generator(t, rapid.Int64().Draw(t, "seed"), datagen.RandomField("line", rapid.IntRange(16, 300).Draw(t, "length")))
		row := rowNumbers().Draw(t, "row")
		n, err := g.Number(g.Append(nil, row))
		require.NoError(t, err)
		require.Equal(t, row, n)
	})
}

func TestRandomRow_IsAppendedBehindWhatIsThere(t *testing.T) {
	g := generator(t, 7, datagen.RandomField("line", 100))
	assert.Equal(t, "before:"+reference(7, "line", 100, 3), string(g.Append([]byte("before:"), 3)))
}

// With 16 digits behind the head, a wrong head passes with one chance in 2^64.
func TestRandomRow_AnyChangedByteIsDetected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := generator(t, rapid.Int64().Draw(t, "seed"), datagen.RandomField("line", rapid.IntRange(32, 200).Draw(t, "length")))
		row := g.Append(nil, rowNumbers().Draw(t, "row"))
		at := rapid.IntRange(0, len(row)-1).Draw(t, "at")
		row[at] ^= rapid.ByteRange(1, 255).Draw(t, "change")
		_, err := g.Number(row)
		corrupt, isCorrupt := errors.AsType[*datagen.CorruptError](err)
		require.True(t, isCorrupt || errors.Is(err, datagen.ErrNotARow), "%v", err)
		if at >= 16 {
			require.True(t, isCorrupt)
			require.Equal(t, at, corrupt.At)
			require.Equal(t, 1, corrupt.Differing)
		}
	})
}

// Without digits behind the head nothing can be checked, but a changed row never passes for itself.
func TestRandomRow_OfMinimumLengthChangesItsNumberWithAnyByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := generator(t, 1, datagen.RandomField("line", 16))
		want := rowNumbers().Draw(t, "row")
		row := g.Append(nil, want)
		row[rapid.IntRange(0, 15).Draw(t, "at")] ^= rapid.ByteRange(1, 255).Draw(t, "change")
		if n, err := g.Number(row); err == nil {
			require.NotEqual(t, want, n)
		}
	})
}

func TestRandomRow_OfAnotherLengthIsCorrupt(t *testing.T) {
	g := generator(t, 1, datagen.RandomField("line", 100))
	row := g.Append(nil, 41)
	for name, c := range map[string]struct {
		row []byte
		at  int
	}{
		"one byte short": {row[:99], 99},
		"head only":      {row[:16], 16},
		"one byte more":  {append(g.Append(nil, 41), 'x'), 100},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := g.Number(c.row)
			corrupt, ok := errors.AsType[*datagen.CorruptError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, int64(41), n)
			assert.Equal(t, datagen.CorruptError{Row: 41, Length: len(c.row), WantLength: 100, At: c.at}, *corrupt)
			assert.Equal(t, fmt.Sprintf("corrupt row 41: %d bytes instead of 100", len(c.row)), err.Error())
		})
	}
}

func TestRandomRow_OfAnotherSeedFieldOrLengthIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := generator(t, 1, datagen.RandomField("line", 64)).Append(nil, rowNumbers().Draw(t, "row"))
		for _, other := range []*datagen.Generator{
			generator(t, 2, datagen.RandomField("line", 64)),
			generator(t, 1, datagen.RandomField("text", 64)),
			generator(t, 1, datagen.RandomField("line", 65)),
		} {
			_, err := other.Number(row)
			require.Error(t, err)
		}
	})
}

func TestRandomRow_BytesWithoutAHeadAreNotARow(t *testing.T) {
	g := generator(t, 1, datagen.RandomField("line", 100))
	upper := g.Append(nil, 5)
	for i, c := range upper {
		if 'a' <= c && c <= 'f' {
			upper[i] = c - 'a' + 'A'
		}
	}
	for name, row := range map[string][]byte{
		"empty":       nil,
		"short":       g.Append(nil, 5)[:15],
		"no digits":   []byte("the quick brown fox jumps over the lazy dog"),
		"upper case":  upper,
		"binary":      make([]byte, 100),
		"not utf-8":   []byte("\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7\xf6\xf5\xf4\xf3\xf2\xf1\xf0"),
		"row 2^63-1":  []byte(reference(1, "line", 100, math.MaxInt64)),
		"row -1":      []byte(reference(1, "line", 100, -1)),
		"row -(2^63)": []byte(reference(1, "line", 100, math.MinInt64)),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := g.Number(row)
			assert.ErrorIs(t, err, datagen.ErrNotARow)
		})
	}
}

func TestCorruptError_TellsADamagedHeadFromADamagedRow(t *testing.T) {
	g := generator(t, 1, datagen.RandomField("line", 100))
	head, body := g.Append(nil, 5), g.Append(nil, 5)
	for c := byte('0'); ; c++ { // some digit makes a head that is a row number
		head[0] = c
		if n, err := g.Number(head); n != 5 && !errors.Is(err, datagen.ErrNotARow) {
			assert.ErrorContains(t, err, "damaged head, other seed or other field")
			break
		}
	}
	body[50] ^= 1
	_, err := g.Number(body)
	assert.EqualError(t, err, "corrupt row 5: 1 of 100 bytes differ, the first at byte 50")
}

func TestSequenceRow_IsTheDecimalTextOfStartPlusRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Int64().Draw(t, "start")
		end := rapid.Int64Range(start, start+min(math.MaxInt64-1, math.MaxInt64-max(start, 0))).Draw(t, "end")
		g := generator(t, rapid.Int64().Draw(t, "seed"), datagen.SequenceField("n", start, end))
		row := rapid.Int64Range(0, g.Rows()-1).Draw(t, "row")
		text := g.Append(nil, row)
		require.Equal(t, strconv.FormatInt(start+row, 10), string(text))
		require.LessOrEqual(t, len(text), g.MaxLength())
		n, err := g.Number(text)
		require.NoError(t, err)
		require.Equal(t, row, n)
	})
}

func TestSequenceRow_OtherSpellingsAndNumbersOutsideAreNotRows(t *testing.T) {
	g := generator(t, 0, datagen.SequenceField("n", -10, 1000))
	for _, text := range []string{"", "-", "+5", "05", "-0", "-05", "5 ", " 5", "5\r", "0x5", "5.0", "1e2", "-11", "1001",
		"9223372036854775808", "-9223372036854775809", "18446744073709551621", "99999999999999999999999"} {
		_, err := g.Number([]byte(text))
		assert.ErrorIs(t, err, datagen.ErrNotARow, "%q", text)
	}
	for text, want := range map[string]int64{"-10": 0, "-1": 9, "0": 10, "1000": 1010} {
		n, err := g.Number([]byte(text))
		require.NoError(t, err)
		assert.Equal(t, want, n)
	}
}

func TestSequenceRow_ReachesBothEndsOfTheIntegers(t *testing.T) {
	low := generator(t, 0, datagen.SequenceField("n", math.MinInt64, -2))
	assert.Equal(t, int64(math.MaxInt64), low.Rows())
	assert.Equal(t, "-9223372036854775808", string(low.Append(nil, 0)))
	n, err := low.Number([]byte("-9223372036854775808"))
	require.NoError(t, err)
	assert.Zero(t, n)

	high := generator(t, 0, datagen.SequenceField("n", 1, math.MaxInt64))
	assert.Equal(t, "9223372036854775807", string(high.Append(nil, math.MaxInt64-1)))
	n, err = high.Number([]byte("9223372036854775807"))
	require.NoError(t, err)
	assert.Equal(t, int64(math.MaxInt64-1), n)
}

func TestGenerator_AllocatesNothing(t *testing.T) {
	for _, f := range []datagen.Field{datagen.RandomField("line", 1000), datagen.SequenceField("n", -5, 1<<40)} {
		g := generator(t, 3, f)
		buf := make([]byte, 0, 1024)
		var row int64
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			buf = g.Append(buf[:0], row)
			n, err := g.Number(buf)
			if err != nil || n != row {
				t.Error(n, err)
			}
			row++
		}), f.String())
	}
}
