package datagen

import (
	"encoding/json"
	"fmt"
	"sync"
)

// Batch is a run of consecutive rows of one shard: its rows k = First to First+Count-1.
type Batch struct {
	First int64
	Count int
	Shard Shard
}

// Row returns the row number, as [Generator.Append] takes it, of the batch's i-th row, counted
// from 0.
func (b Batch) Row(i int) int64 { return b.Shard.Row(b.First + int64(i)) }

// Source hands out the row numbers of one shard, each once, and knows how far it has come. It is
// a participant of the checkpoint, so that rows made = rows read back after any number of
// restarts: the position is one 64-bit number however many rows there are. All methods are safe
// for concurrent use.
type Source struct {
	count   int64 // rows of this shard
	bounded bool

	mu       sync.Mutex
	position Position
}

// NewSource returns the source of one shard, standing before its first row. The error is the one
// of [Options.Validate] or [Shard.Validate].
func NewSource(o Options, shard Shard) (*Source, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := shard.Validate(); err != nil {
		return nil, err
	}
	total, bounded := o.Rows()
	return &Source{
		count:    shard.Rows(total),
		bounded:  bounded,
		position: Position{Version: positionVersion, Shard: shard, Seed: o.Seed, Fields: append([]Field(nil), o.Fields...)},
	}, nil
}

// Next takes the next rows, at most most of them. Count is 0 when the source has ended (or most
// is below 1). It never blocks.
//
// Call it inside a step of the checkpoint coordinator and write all rows of the batch in the same
// step: then a checkpoint holds either the position behind the batch and its rows, or neither.
// When the step fails the rows are gone for this run; the run has to end and go on from its last
// checkpoint.
func (s *Source) Next(most int) Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := Batch{First: s.position.Next, Shard: s.position.Shard}
	b.Count = int(max(0, min(int64(most), s.count-b.First)))
	s.position.Next += int64(b.Count)
	return b
}

// Done tells whether the source has ended: Next has handed out its last row.
func (s *Source) Done() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.position.Next >= s.count
}

// Rows returns how many rows this shard makes before it ends; bounded is false for a source that
// ends only with the row numbers.
func (s *Source) Rows() (rows int64, bounded bool) { return s.count, s.bounded }

// Position returns how far the source is. Inside a barrier that is the position of the
// checkpoint.
func (s *Source) Position() Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.position // Fields is never changed
}

// encode returns the position as it is stored.
func (s *Source) encode() ([]byte, error) { return json.Marshal(s.Position()) }

// restore moves to a stored position after checking that the rows behind it are this source's.
// A bound that has changed is no obstacle: it changes no row, only where the source ends, and a
// source that has already passed it has ended.
func (s *Source) restore(state []byte) error {
	p, err := ParsePosition(state)
	if err != nil {
		return fmt.Errorf("restore source: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := p.continuable(s.position); err != nil {
		return fmt.Errorf("restore source: %w", err)
	}
	s.position = p
	return nil
}
