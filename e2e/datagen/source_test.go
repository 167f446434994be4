package datagen_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func newSource(t require.TestingT, o datagen.Options, shard datagen.Shard) *datagen.Source {
	s, err := datagen.NewSource(o, shard)
	require.NoError(t, err)
	return s
}

func bounded(rows int64) datagen.Options {
	o := options(datagen.RandomField("line", 100))
	o.NumberOfRows = rows
	return o
}

// capture is what a checkpoint of s stores.
func capture(t require.TestingT, s *datagen.Source) []byte {
	snapshot, err := s.Capture(1)
	require.NoError(t, err)
	state, refs, err := snapshot.Store(context.Background(), nil) // it needs no blobs
	require.NoError(t, err)
	require.Empty(t, refs)
	return state
}

func restore(s *datagen.Source, state []byte) error {
	return s.Restore(context.Background(), checkpoint.Restored{ID: 1, Epoch: 2, State: state})
}

func TestSource_ShardsHandOutEveryRowOnceInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total, n := rapid.Int64Range(1, 300).Draw(t, "total"), rapid.IntRange(1, 5).Draw(t, "shards")
		var all []int64
		for i := range n {
			s := newSource(t, bounded(total), datagen.Shard{Index: i, Count: n})
			var mine []int64
			for !s.Done() {
				b := s.Next(rapid.IntRange(1, 50).Draw(t, "most"))
				require.Positive(t, b.Count)
				for j := range b.Count {
					mine = append(mine, b.Row(j))
				}
			}
			require.Zero(t, s.Next(10).Count)
			require.True(t, slices.IsSorted(mine))
			rows, isBounded := s.Rows()
			require.Equal(t, int64(len(mine)), rows)
			require.True(t, isBounded)
			all = append(all, mine...)
		}
		slices.Sort(all)
		require.Len(t, all, int(total))
		for i, row := range all {
			require.Equal(t, int64(i), row)
		}
	})
}

func TestSource_RestartsNeitherLoseNorRepeatRowsOfCommittedCheckpoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const total = 200
		shard := shards().Draw(t, "shard")
		var committed, since []int64 // rows up to the last checkpoint, and behind it
		var state []byte
		s := newSource(t, bounded(total), shard)
		for !s.Done() || len(since) > 0 {
			switch rapid.IntRange(0, 3).Draw(t, "action") {
			case 0: // checkpoint
				state = capture(t, s)
				committed, since = append(committed, since...), nil
			case 1: // crash: what is behind the checkpoint is lost
				s = newSource(t, bounded(total), shard)
				require.NoError(t, restore(s, state))
				since = nil
			default:
				b := s.Next(rapid.IntRange(0, 30).Draw(t, "most"))
				for j := range b.Count {
					since = append(since, b.Row(j))
				}
			}
		}
		var want []int64
		for k := range shard.Rows(total) {
			want = append(want, shard.Row(k))
		}
		require.Equal(t, want, committed)
	})
}

func TestSource_ManyWritersGetDisjointBatches(t *testing.T) {
	s := newSource(t, bounded(10_000), datagen.Shard{Index: 0, Count: 1})
	var mu sync.Mutex
	seen := map[int64]int{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				b := s.Next(7)
				if b.Count == 0 {
					return
				}
				mu.Lock()
				for i := range b.Count {
					seen[b.Row(i)]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, seen, 10_000)
	for row, times := range seen {
		require.Equal(t, 1, times, "row %d", row)
	}
}

func TestSource_PositionIsOneNumberWithWhatDecidesTheContent(t *testing.T) {
	o := options(datagen.SequenceField("n", -5, 1<<60))
	o.Seed = -9
	s := newSource(t, o, datagen.Shard{Index: 1, Count: 3})
	s.Next(42)
	assert.JSONEq(t, `{"version":1,"next":42,"shard":"1/3","seed":-9,
		"fields":[{"name":"n","kind":"sequence","start":-5,"end":1152921504606846976}]}`, string(capture(t, s)))
	assert.Equal(t, int64(42), s.Position().Next)
}

func TestSource_PositionBeyond32BitsIsKeptExactly(t *testing.T) {
	o := options(datagen.RandomField("line", 100))
	s := newSource(t, o, datagen.Shard{Index: 0, Count: 1})
	state, err := json.Marshal(datagen.Position{Version: 1, Next: math.MaxInt64 - 3, Shard: datagen.Shard{Index: 0, Count: 1}, Fields: o.Fields})
	require.NoError(t, err)
	require.NoError(t, restore(s, state))
	b := s.Next(10)
	assert.Equal(t, int64(math.MaxInt64-3), b.Row(0))
	assert.Equal(t, 3, b.Count)
	assert.True(t, s.Done())
}

func TestSource_FreshStartBeginsAtItsFirstRow(t *testing.T) {
	s := newSource(t, bounded(10), datagen.Shard{Index: 0, Count: 1})
	s.Next(4)
	require.NoError(t, restore(s, nil))
	assert.Zero(t, s.Next(1).First)
}

func TestSource_RestoreRefusesWhatWouldChangeRows(t *testing.T) {
	base := options(datagen.RandomField("line", 100))
	base.Seed = 7
	whole := datagen.Shard{Index: 0, Count: 1}
	other := func(change func(*datagen.Options)) datagen.Options {
		o := base
		o.Fields = slices.Clone(o.Fields)
		change(&o)
		return o
	}
	for name, c := range map[string]struct {
		o     datagen.Options
		shard datagen.Shard
		want  datagen.MismatchError
	}{
		"seed":   {other(func(o *datagen.Options) { o.Seed = 8 }), whole, datagen.MismatchError{What: "datagen.seed", Checkpoint: "7", Job: "8"}},
		"shard":  {base, datagen.Shard{Index: 0, Count: 2}, datagen.MismatchError{What: "job.shard", Checkpoint: "0/1", Job: "0/2"}},
		"length": {other(func(o *datagen.Options) { o.Fields[0].Length = 101 }), whole, datagen.MismatchError{What: "datagen.fields", Checkpoint: "[line(random, length 100)]", Job: "[line(random, length 101)]"}},
		"name":   {other(func(o *datagen.Options) { o.Fields[0].Name = "text" }), whole, datagen.MismatchError{What: "datagen.fields", Checkpoint: "[line(random, length 100)]", Job: "[text(random, length 100)]"}},
		"kind":   {other(func(o *datagen.Options) { o.Fields[0] = datagen.SequenceField("line", 0, 9) }), whole, datagen.MismatchError{What: "datagen.fields", Checkpoint: "[line(random, length 100)]", Job: "[line(sequence 0 to 9)]"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := newSource(t, base, whole)
			before.Next(5)
			s := newSource(t, c.o, c.shard)
			err := restore(s, capture(t, before))
			mismatch, ok := errors.AsType[*datagen.MismatchError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, c.want, *mismatch)
			assert.ErrorContains(t, err, c.want.Checkpoint)
			assert.ErrorContains(t, err, c.want.Job)
			assert.Zero(t, s.Position().Next, "a refused restore changes nothing")
		})
	}
}

func TestSource_AChangedRateOrBoundIsNoObstacle(t *testing.T) {
	whole := datagen.Shard{Index: 0, Count: 1}
	before := newSource(t, bounded(100), whole)
	before.Next(60)
	state := capture(t, before)

	longer := newSource(t, bounded(1000), whole)
	require.NoError(t, restore(longer, state))
	assert.Equal(t, datagen.Batch{First: 60, Count: 940, Shard: whole}, longer.Next(5000))

	shorter := newSource(t, bounded(50), whole)
	require.NoError(t, restore(shorter, state))
	assert.True(t, shorter.Done())
	assert.Zero(t, shorter.Next(10).Count)
	assert.Equal(t, int64(60), shorter.Position().Next)
}

func TestParsePosition_RefusesWhatItCannotTrust(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":         ``,
		"not json":        `next=5`,
		"no version":      `{"next":5}`,
		"newer version":   `{"version":2,"next":5,"shard":"0/1","seed":0,"fields":[{"name":"a","kind":"random","length":100}]}`,
		"unknown setting": `{"version":1,"next":5,"shard":"0/1","seed":0,"skip":1,"fields":[{"name":"a","kind":"random","length":100}]}`,
		"negative":        `{"version":1,"next":-1,"shard":"0/1","seed":0,"fields":[{"name":"a","kind":"random","length":100}]}`,
		"beyond the rows": `{"version":1,"next":4611686018427387905,"shard":"1/2","seed":0,"fields":[{"name":"a","kind":"random","length":100}]}`,
		"fraction":        `{"version":1,"next":1.5,"shard":"0/1","seed":0,"fields":[{"name":"a","kind":"random","length":100}]}`,
		"bad shard":       `{"version":1,"next":5,"shard":"1/1","seed":0,"fields":[{"name":"a","kind":"random","length":100}]}`,
		"no shard":        `{"version":1,"next":5,"seed":0,"fields":[{"name":"a","kind":"random","length":100}]}`,
		"no fields":       `{"version":1,"next":5,"shard":"0/1","seed":0,"fields":[]}`,
		"bad field":       `{"version":1,"next":5,"shard":"0/1","seed":0,"fields":[{"name":"a","kind":"random","length":1}]}`,
		"unknown kind":    `{"version":1,"next":5,"shard":"0/1","seed":0,"fields":[{"name":"a","kind":"uuid"}]}`,
		"two values":      `{"version":1,"next":5,"shard":"0/1","seed":0,"fields":[{"name":"a","kind":"random","length":100}]}{}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := datagen.ParsePosition([]byte(text))
			assert.ErrorIs(t, err, datagen.ErrPosition)
		})
	}
}

func FuzzParsePosition(f *testing.F) {
	f.Add([]byte(`{"version":1,"next":5,"shard":"0/1","seed":0,"fields":[{"name":"a","kind":"random","length":100}]}`))
	f.Add([]byte(`{"version":1,"next":5,"shard":"1/3","seed":-1,"fields":[{"name":"a","kind":"sequence","end":3}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := datagen.ParsePosition(data)
		if err != nil {
			require.ErrorIs(t, err, datagen.ErrPosition)
			return
		}
		text, err := json.Marshal(p)
		require.NoError(t, err)
		again, err := datagen.ParsePosition(text)
		require.NoError(t, err)
		require.Equal(t, p, again)
	})
}

func shards() *rapid.Generator[datagen.Shard] {
	return rapid.Custom(func(t *rapid.T) datagen.Shard {
		n := rapid.IntRange(1, 20).Draw(t, "shards")
		return datagen.Shard{Index: rapid.IntRange(0, n-1).Draw(t, "index"), Count: n}
	})
}
