package readback_test

import (
	"slices"
	"testing"

	"github.com/sluice-go/sluice/e2e/readback"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// However findings are split over lists and in whatever order they come, the same first ones are
// kept and all are counted.
func TestList_KeepsTheSmallestAndCountsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOf(rapid.Int64Range(0, 30)).Draw(t, "rows")
		limit := rapid.IntRange(1, 8).Draw(t, "limit")
		var whole, left, right readback.List[readback.Unexpected]
		for _, row := range rows {
			v := readback.Unexpected{Row: row}
			whole.Add(limit, 1, v)
			if rapid.Bool().Draw(t, "left") {
				left.Add(limit, 1, v)
			} else {
				right.Add(limit, 1, v)
			}
		}
		left.Merge(limit, right)

		want := slices.Compact(slices.Sorted(slices.Values(rows)))
		want = want[:min(limit, len(want))]
		for _, l := range []readback.List[readback.Unexpected]{whole, left} {
			require.Equal(t, int64(len(rows)), l.Total)
			require.Len(t, l.First, len(want))
			for i, row := range want {
				require.Equal(t, row, l.First[i].Row)
			}
		}
	})
}
