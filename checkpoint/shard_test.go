package checkpoint_test

import (
	"math"
	"testing"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func shards() *rapid.Generator[checkpoint.Shard] {
	return rapid.Custom(func(t *rapid.T) checkpoint.Shard {
		n := rapid.IntRange(1, 20).Draw(t, "shards")
		return checkpoint.Shard{Index: rapid.IntRange(0, n-1).Draw(t, "index"), Count: n}
	})
}

func TestShards_PartitionTheRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "shards")
		total := rapid.Int64Range(0, 500).Draw(t, "total")
		owners := make([]int, total)
		for i := range n {
			s := checkpoint.Shard{Index: i, Count: n}
			for k := range s.Rows(total) {
				owners[s.Row(k)]++ // panics for a row that is not one of total
			}
		}
		for row, owned := range owners {
			require.Equal(t, 1, owned, "row %d", row)
		}
	})
}

func TestShard_LastRowOfTheLargestJobDoesNotOverflow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := shards().Draw(t, "shard")
		last := s.Row(s.Rows(math.MaxInt64) - 1)
		require.Less(t, last, int64(math.MaxInt64))
		require.Greater(t, last, int64(math.MaxInt64)-1-int64(s.Count))
	})
}

func TestShard_TextRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := shards().Draw(t, "shard")
		text, err := s.MarshalText()
		require.NoError(t, err)
		var got checkpoint.Shard
		require.NoError(t, got.UnmarshalText(text))
		require.Equal(t, s, got)
	})
	assert.Equal(t, "2/3", checkpoint.Shard{Index: 2, Count: 3}.String())
	assert.Equal(t, "2-of-3", checkpoint.Shard{Index: 2, Count: 3}.Dir())
}

func TestParseShard_RefusesEverythingButTheOneSpelling(t *testing.T) {
	for _, text := range []string{"", "0", "/", "0/", "/1", "1/1", "0/0", "-1/2", "+0/1", "00/1", "0/01", "0 /1", "0/1 ", "0/1/1", "a/b", "0/10000", "0/99999999999"} {
		_, err := checkpoint.ParseShard(text)
		assert.Error(t, err, "%q", text)
	}
}
