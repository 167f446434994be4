package readback

import (
	"fmt"
	"math"
	"slices"

	"github.com/sluice-go/sluice/e2e/datagen"
)

// Expected is the set of row numbers that have to be there: of each shard i of n, the rows k*n + i
// for all k below the shard's position. It is immutable; the zero value is the empty set.
type Expected struct {
	next  []int64 // by shard index
	total int64
	end   int64 // the largest row + 1
}

// NewExpected returns the set of a job with len(next) shards of which shard i has committed its
// first next[i] rows.
func NewExpected(next []int64) (Expected, error) {
	e := Expected{next: slices.Clone(next)}
	for i, k := range next {
		s := datagen.Shard{Index: i, Count: len(next)}
		if err := s.Validate(); err != nil {
			return Expected{}, err
		}
		if k < 0 || k > s.Rows(math.MaxInt64) {
			return Expected{}, fmt.Errorf("shard %s: %d is no number of rows", s, k)
		}
		e.total += k // at most 2^63-1: the shards partition the row numbers
		if k > 0 {
			e.end = max(e.end, s.Row(k-1)+1)
		}
	}
	return e, nil
}

// Expect returns the set that source positions, one for each shard that has committed anything,
// stand for, and the generator of its rows. Positions of different jobs (another number of
// shards, seed or field) and two positions of one shard are errors.
func Expect(positions ...datagen.Position) (Expected, *datagen.Generator, error) {
	if len(positions) == 0 {
		return Expected{}, nil, fmt.Errorf("no source position: nothing is committed")
	}
	first := positions[0]
	if err := first.Shard.Validate(); err != nil {
		return Expected{}, nil, err
	}
	next := make([]int64, first.Shard.Count)
	seen := make([]bool, len(next))
	for _, p := range positions {
		if err := p.Shard.Validate(); err != nil {
			return Expected{}, nil, err
		}
		if p.Shard.Count != first.Shard.Count {
			return Expected{}, nil, fmt.Errorf("shards %s and %s do not belong to one split of the rows", first.Shard, p.Shard)
		}
		if err := first.SameRows(p); err != nil {
			return Expected{}, nil, fmt.Errorf("shards %s and %s made rows of different jobs: %w", first.Shard, p.Shard, err)
		}
		if seen[p.Shard.Index] {
			return Expected{}, nil, fmt.Errorf("shard %s: two positions", p.Shard)
		}
		seen[p.Shard.Index], next[p.Shard.Index] = true, p.Next
	}
	g, err := first.Generator()
	if err != nil {
		return Expected{}, nil, err
	}
	e, err := NewExpected(next)
	return e, g, err
}

// Total returns the number of rows in the set.
func (e Expected) Total() int64 { return e.total }

// Contains tells whether row is in the set.
func (e Expected) Contains(row int64) bool {
	if row < 0 || row >= e.end {
		return false
	}
	n := int64(len(e.next))
	return row/n < e.next[row%n]
}

// step is the distance of two rows of one shard.
func (e Expected) step() int64 { return int64(len(e.next)) }

// window returns, for shard i, the rows of the set from low to below high: first, first+step, ...
// below limit; none when first >= limit.
func (e Expected) window(i int, low, high int64) (first, limit int64) {
	n := e.step()
	k := max(low-int64(i)+n-1, 0) / n // the first k whose row is at least low
	if k >= e.next[i] {
		return 0, 0
	}
	return k*n + int64(i), min(high, (e.next[i]-1)*n+int64(i)+1)
}
