package datagen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// positionVersion is the format of a stored position.
const positionVersion = 1

// Position is how far a shard has come, together with everything that decides what its rows hold.
// It is what a checkpoint stores for the source and what a commit record carries, so that a
// reader can tell from it alone which rows have to be there: Next rows of the shard, made by
// NewGenerator(Seed, Fields[0]).
type Position struct {
	Version int     `json:"version"`
	Next    int64   `json:"next"` // rows of the shard handed out so far = number k of the next one
	Shard   Shard   `json:"shard"`
	Seed    int64   `json:"seed"`
	Fields  []Field `json:"fields"`
}

// ParsePosition reads a stored position. The error wraps [ErrPosition].
func ParsePosition(data []byte) (Position, error) {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return Position{}, fmt.Errorf("%w: %w", ErrPosition, err)
	}
	if head.Version != positionVersion {
		return Position{}, fmt.Errorf("%w: version %d, this build reads version %d", ErrPosition, head.Version, positionVersion)
	}
	var p Position
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return Position{}, fmt.Errorf("%w: %w", ErrPosition, err)
	}
	return p, p.validate()
}

func (p Position) validate() error {
	if err := p.Shard.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrPosition, err)
	}
	if p.Next < 0 || p.Next > p.Shard.Rows(math.MaxInt64) {
		return fmt.Errorf("%w: next row %d of shard %s is no row number", ErrPosition, p.Next, p.Shard)
	}
	if len(p.Fields) == 0 {
		return fmt.Errorf("%w: no fields", ErrPosition)
	}
	for _, f := range p.Fields {
		if err := f.Validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrPosition, err)
		}
	}
	return nil
}

// Generator returns the generator that made the rows before the position.
func (p Position) Generator() (*Generator, error) {
	if len(p.Fields) != 1 {
		return nil, fmt.Errorf("%w: %d fields instead of one", ErrPosition, len(p.Fields))
	}
	return NewGenerator(p.Seed, p.Fields[0])
}

// SameRows reports, as a [*MismatchError], the first setting in which job, the position of the
// job that runs now, differs from p so that its rows would not be p's rows.
func (p Position) SameRows(job Position) error {
	switch {
	case p.Seed != job.Seed:
		return &MismatchError{"datagen.seed", strconv.FormatInt(p.Seed, 10), strconv.FormatInt(job.Seed, 10)}
	case !slices.Equal(p.Fields, job.Fields):
		return &MismatchError{"datagen.fields", fmt.Sprint(p.Fields), fmt.Sprint(job.Fields)}
	}
	return nil
}

// continuable is SameRows and the shard: another split would hand rows out twice and skip others.
func (p Position) continuable(job Position) error {
	if p.Shard != job.Shard {
		return &MismatchError{"job.shard", p.Shard.String(), job.Shard.String()}
	}
	return p.SameRows(job)
}
