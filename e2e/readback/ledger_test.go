package readback_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/sluice-go/sluice/e2e/readback"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func expected(t require.TestingT, next ...int64) readback.Expected {
	e, err := readback.NewExpected(next)
	require.NoError(t, err)
	return e
}

// account gives the files to a ledger, as often as it asks, each file from a goroutine of its own.
func account(t require.TestingT, e readback.Expected, window int64, limit int, files map[string][]int64) readback.LedgerResult {
	l, err := readback.NewLedger(e, window, limit)
	require.NoError(t, err)
	for {
		var wg sync.WaitGroup
		for name, rows := range files {
			wg.Go(func() {
				tally := l.File(name)
				defer tally.Close()
				for _, row := range rows {
					tally.Saw(row)
				}
			})
		}
		wg.Wait()
		again, err := l.EndPass(context.Background())
		require.NoError(t, err)
		if !again {
			return l.Result()
		}
	}
}

// model is the same account kept in a map.
type model struct {
	missing    []int64
	duplicates map[int64]readback.Duplicate
	unexpected []readback.Unexpected
	rows       int64
	extra      int64
}

func modelOf(next []int64, files map[string][]int64) model {
	m := model{duplicates: map[int64]readback.Duplicate{}}
	times, where := map[int64]int64{}, map[int64][]string{}
	want := map[int64]bool{}
	for i, k := range next {
		for ; k > 0; k-- {
			want[(k-1)*int64(len(next))+int64(i)] = true
		}
	}
	for name, rows := range files {
		for _, row := range rows {
			if !want[row] {
				m.unexpected = append(m.unexpected, readback.Unexpected{Row: row, File: name})
				continue
			}
			m.rows++
			times[row]++
			if !slices.Contains(where[row], name) {
				where[row] = append(where[row], name)
			}
		}
	}
	for row := range want {
		switch n := times[row]; {
		case n == 0:
			m.missing = append(m.missing, row)
		case n > 1:
			slices.Sort(where[row])
			m.duplicates[row] = readback.Duplicate{Row: row, Times: n, Files: where[row]}
			m.extra += n - 1
		}
	}
	slices.Sort(m.missing)
	slices.SortFunc(m.unexpected, readback.Unexpected.Compare)
	return m
}

func TestLedger_AgreesWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		next := rapid.SliceOfN(rapid.Int64Range(0, 250), 1, 4).Draw(t, "next")
		e := expected(t, next...)
		files := map[string][]int64{"a": nil, "b": nil, "c": nil}
		put := func(row int64) {
			f := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "file")
			files[f] = append(files[f], row)
		}
		lost := rapid.SliceOfN(rapid.Int64Range(0, 1000), 0, 5).Draw(t, "lost")
		for row := range int64(1000) {
			if e.Contains(row) && !slices.Contains(lost, row) {
				files[string("abc"[row/10%3])] = append(files[string("abc"[row/10%3])], row)
			}
		}
		for _, row := range rapid.SliceOfN(rapid.Int64Range(-5, 1100), 0, 5).Draw(t, "extra") {
			put(row)
		}
		window := rapid.SampledFrom([]int64{64, 128, 1 << 20}).Draw(t, "window")

		got, want := account(t, e, window, 10_000, files), modelOf(next, files)

		require.Equal(t, want.rows, got.Rows)
		var missing []int64
		for _, r := range got.Missing.First {
			for row := r.First; row <= r.Last; row += r.Step {
				missing = append(missing, row)
			}
		}
		slices.Sort(missing)
		require.Equal(t, want.missing, missing)
		require.Equal(t, int64(len(want.missing)), got.Missing.Total)
		require.Equal(t, want.extra, got.Duplicates.Total)
		require.Len(t, got.Duplicates.First, len(want.duplicates))
		for _, d := range got.Duplicates.First {
			require.Equal(t, want.duplicates[d.Row], d)
		}
		require.Equal(t, int64(len(want.unexpected)), got.Unexpected.Total)
		require.Equal(t, slices.CompactFunc(want.unexpected, func(a, b readback.Unexpected) bool { return a == b }), got.Unexpected.First)
		if len(want.missing) == 0 && want.extra == 0 {
			require.Equal(t, 1, got.Passes)
		}
	})
}

// A missing row and a duplicate leave the count right; only the sums tell.
func TestLedger_OneRowInPlaceOfAnotherIsFoundInLaterWindows(t *testing.T) {
	rows := make([]int64, 1000)
	for i := range rows {
		rows[i] = int64(i)
	}
	rows[700] = 701
	got := account(t, expected(t, 1000), 64, 0, map[string][]int64{"a": rows[:701], "b": rows[701:]})
	assert.Equal(t, readback.LedgerResult{
		Rows:       1000,
		Missing:    readback.List[readback.Range]{Total: 1, First: []readback.Range{{First: 700, Last: 700, Step: 1}}},
		Duplicates: readback.List[readback.Duplicate]{Total: 1, First: []readback.Duplicate{{Row: 701, Times: 2, Files: []string{"a", "b"}}}},
		Passes:     3, // all windows; the one with rows 640 to 703; the files of row 701
	}, got)
}

func TestLedger_RowsLostTogetherAreOneRange(t *testing.T) {
	var rows []int64
	for row := range int64(3000) {
		if row%3 != 1 || row < 301 || row > 400 {
			rows = append(rows, row)
		}
	}
	got := account(t, expected(t, 1000, 1000, 1000), 1<<12, 0, map[string][]int64{"a": rows})
	assert.Equal(t, readback.List[readback.Range]{Total: 34, First: []readback.Range{{First: 301, Last: 400, Step: 3}}}, got.Missing)
}

func TestLedger_NothingSeenIsEverythingMissing(t *testing.T) {
	got := account(t, expected(t, 100), 1<<10, 0, nil)
	assert.Equal(t, readback.List[readback.Range]{Total: 100, First: []readback.Range{{First: 0, Last: 99, Step: 1}}}, got.Missing)
	got = account(t, expected(t), 0, 0, map[string][]int64{"a": {5}})
	assert.Equal(t, readback.List[readback.Unexpected]{Total: 1, First: []readback.Unexpected{{Row: 5, File: "a"}}}, got.Unexpected)
	assert.Zero(t, got.Rows)
}

func TestLedger_ListsAreBoundedAndTotalsExact(t *testing.T) {
	files := map[string][]int64{}
	for i := range 10 {
		for row := int64(1); row < 2000; row += 2 {
			files[fmt.Sprint(i)] = append(files[fmt.Sprint(i)], row, row+1_000_000)
		}
	}
	got := account(t, expected(t, 2000), 1<<9, 4, files)
	assert.Equal(t, int64(10_000), got.Rows)
	assert.Equal(t, int64(1000), got.Missing.Total)
	assert.Equal(t, int64(9000), got.Duplicates.Total)
	assert.Equal(t, int64(10_000), got.Unexpected.Total)
	assert.Equal(t, []readback.Range{{0, 0, 1}, {2, 2, 1}, {4, 4, 1}, {6, 6, 1}}, got.Missing.First)
	require.Len(t, got.Unexpected.First, 4)
	require.Len(t, got.Duplicates.First, 4)
	for i, d := range got.Duplicates.First {
		assert.Equal(t, readback.Duplicate{Row: int64(2*i + 1), Times: 10, Files: []string{"0", "1", "2", "3"}}, d)
	}
}

// One shard of very many has few rows with large numbers.
func TestLedger_RowNumbersBeyond32BitsAreAccountedFor(t *testing.T) {
	shard := datagen.Shard{Index: 4000, Count: 9999}
	next := make([]int64, shard.Count)
	next[shard.Index] = 500_000
	var rows []int64
	for k := range next[shard.Index] {
		if k != 490_000 {
			rows = append(rows, shard.Row(k))
		}
	}
	rows = append(rows, shard.Row(489_999))
	lost, twice := int64(490_000*9999+4000), int64(489_999*9999+4000)
	require.Greater(t, twice, int64(math.MaxUint32))

	got := account(t, expected(t, next...), 0, 0, map[string][]int64{"a": rows})
	assert.Equal(t, readback.LedgerResult{
		Rows:       500_000,
		Missing:    readback.List[readback.Range]{Total: 1, First: []readback.Range{{First: lost, Last: lost, Step: 9999}}},
		Duplicates: readback.List[readback.Duplicate]{Total: 1, First: []readback.Duplicate{{Row: twice, Times: 2, Files: []string{"a"}}}},
		Passes:     3, // both rows lie in one window
	}, got)
}

func TestNewLedger_RefusesMoreRowsThanItCanSum(t *testing.T) {
	_, err := readback.NewLedger(expected(t, math.MaxInt64), 0, 0)
	assert.ErrorContains(t, err, "more than 1048576 windows")
}

func TestNewLedger_RefusesWindowsItCannotIndex(t *testing.T) {
	for _, window := range []int64{-64, 1, 63, 65, 100, 1 << 37} {
		_, err := readback.NewLedger(expected(t, 10), window, 0)
		assert.Error(t, err, "%d", window)
	}
	_, err := readback.NewLedger(expected(t, 10), 0, -1)
	assert.Error(t, err)
}

func TestLedger_StopsWhenTheContextEnds(t *testing.T) {
	l, err := readback.NewLedger(expected(t, 1<<20), 64, 0)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = l.EndPass(ctx)
	assert.ErrorIs(t, err, context.Canceled)
}

func TestExpected_IsTheRowsOfEveryShardBelowItsPosition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		next := rapid.SliceOfN(rapid.Int64Range(0, 50), 1, 5).Draw(t, "next")
		e := expected(t, next...)
		want := map[int64]bool{}
		for i, n := range next {
			for k := range n {
				want[k*int64(len(next))+int64(i)] = true
			}
		}
		require.Equal(t, int64(len(want)), e.Total())
		for row := int64(-3); row < 300; row++ {
			require.Equal(t, want[row], e.Contains(row), "row %d", row)
		}
	})
}

func TestExpect_TakesOnePositionOfEachShardOfOneJob(t *testing.T) {
	line := []datagen.Field{datagen.RandomField("line", 100)}
	at := func(i, n int, next int64) datagen.Position {
		return datagen.Position{Version: 1, Next: next, Shard: datagen.Shard{Index: i, Count: n}, Seed: 3, Fields: line}
	}
	e, g, err := readback.Expect(at(2, 3, 10), at(0, 3, 7)) // shard 1 has committed nothing yet
	require.NoError(t, err)
	assert.Equal(t, int64(17), e.Total())
	n, err := g.Number(g.Append(nil, 5))
	require.NoError(t, err)
	assert.Equal(t, int64(5), n)

	seed, field := at(1, 3, 1), at(1, 3, 1)
	seed.Seed, field.Fields = 4, []datagen.Field{datagen.RandomField("line", 101)}
	for name, positions := range map[string][]datagen.Position{
		"none":             {},
		"another split":    {at(0, 3, 1), at(1, 2, 1)},
		"one shard twice":  {at(0, 3, 1), at(0, 3, 1)},
		"another seed":     {at(0, 3, 1), seed},
		"another field":    {at(0, 3, 1), field},
		"no shard at all":  {{}},
		"too many rows":    {at(1, 2, math.MaxInt64)},
		"negative":         {at(0, 1, -1)},
		"second not valid": {at(0, 3, 1), {}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readback.Expect(positions...)
			assert.Error(t, err)
		})
	}
}
