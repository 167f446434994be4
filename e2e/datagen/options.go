package datagen

import (
	"errors"
	"fmt"
	"math"
)

// Defaults, as in Flink.
const (
	DefaultRowsPerSecond = 10_000
	DefaultLength        = 100
)

// Field describes one field of a row. Use RandomField and SequenceField.
type Field struct {
	Name   string `json:"name"`             // enters the content of random rows
	Kind   Kind   `json:"kind"`             //
	Length int    `json:"length,omitempty"` // random: characters, MinLength to MaxLength
	Start  int64  `json:"start,omitempty"`  // sequence: the first value
	End    int64  `json:"end,omitempty"`    // sequence: the last value, included
}

// RandomField is a random string of length hexadecimal digits.
func RandomField(name string, length int) Field {
	return Field{Name: name, Kind: Random, Length: length}
}

// SequenceField counts from start to end, both included, and then ends the source.
func SequenceField(name string, start, end int64) Field {
	return Field{Name: name, Kind: Sequence, Start: start, End: end}
}

// Validate reports every problem of the field, each under its configuration key.
func (f Field) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("datagen.fields.%s.%s: %s", f.Name, key, fmt.Sprintf(format, args...)))
	}
	switch f.Kind {
	case Random:
		switch {
		case f.Length < MinLength:
			bad("length", "%d is too short: the first %d characters of a random string carry its row number, without which a row cannot be proven", f.Length, MinLength)
		case f.Length > MaxLength:
			bad("length", "%d is above %d, the longest row that is read back", f.Length, MaxLength)
		}
		if f.Start != 0 || f.End != 0 {
			bad("start", "start and end belong to kind sequence")
		}
	case Sequence:
		if f.Length != 0 {
			bad("length", "a length belongs to kind random")
		}
		if f.End < f.Start {
			bad("end", "%d is below start %d", f.End, f.Start)
		} else if _, ok := (sequence{f.Start, f.End}).count(); !ok {
			bad("end", "%d to %d holds more than %d values, more than there are row numbers", f.Start, f.End, int64(math.MaxInt64))
		}
	default:
		bad("kind", "%s is neither random nor sequence", f.Kind)
	}
	return errors.Join(errs...)
}

// String shows the field the way an operator wrote it.
func (f Field) String() string {
	if f.Kind == Sequence {
		return fmt.Sprintf("%s(sequence %d to %d)", f.Name, f.Start, f.End)
	}
	return fmt.Sprintf("%s(%s, length %d)", f.Name, f.Kind, f.Length)
}

// Options say which rows a job makes and how fast.
type Options struct {
	// RowsPerSecond is the rate of one process, that is of one job shard, whatever the number of
	// its writers. It is an upper bound. 0 = as fast as the rows are taken; Flink has no such
	// value.
	RowsPerSecond int64
	// NumberOfRows bounds the whole job, all its shards together. 0 = unbounded.
	NumberOfRows int64
	// Seed selects the content of random strings; any value is as good as any other.
	Seed int64
	// Fields of a row. The raw format takes exactly one.
	Fields []Field
}

// DefaultOptions returns Flink's defaults and no field: what a row holds has to be said.
func DefaultOptions() Options { return Options{RowsPerSecond: DefaultRowsPerSecond} }

// Validate reports every problem of the options.
func (o Options) Validate() error {
	errs := []error{o.validateJob()}
	for _, f := range o.Fields {
		errs = append(errs, f.Validate())
	}
	return errors.Join(errs...)
}

// validateJob checks everything but what is inside the fields.
func (o Options) validateJob() error {
	var errs []error
	if o.RowsPerSecond < 0 {
		errs = append(errs, fmt.Errorf("datagen.rows-per-second: %d is negative; 0 means unlimited", o.RowsPerSecond))
	}
	if o.NumberOfRows < 0 {
		errs = append(errs, fmt.Errorf("datagen.number-of-rows: %d is negative; leave it away for an unbounded source", o.NumberOfRows))
	}
	switch len(o.Fields) {
	case 0:
		errs = append(errs, errors.New("datagen.fields: no field; the raw format takes exactly one, for example datagen.fields.line.length: 1024"))
	case 1:
	default:
		errs = append(errs, fmt.Errorf("datagen.fields: %d fields (%s); the raw format takes exactly one", len(o.Fields), names(o.Fields)))
	}
	return errors.Join(errs...)
}

func names(fields []Field) string {
	var s string
	for i, f := range fields {
		if i > 0 {
			s += ", "
		}
		s += f.Name
	}
	return s
}

// Generator returns the generator of the options' rows. The error is the one of Validate.
func (o Options) Generator() (*Generator, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return NewGenerator(o.Seed, o.Fields[0])
}

// Rows returns how many rows the job makes before it ends: the smaller one of NumberOfRows and
// the length of a sequence. bounded is false when neither of them ends it; rows is then 2^63-1,
// the number of row numbers. The options must be valid.
func (o Options) Rows() (rows int64, bounded bool) {
	rows = math.MaxInt64
	if o.NumberOfRows > 0 {
		rows, bounded = o.NumberOfRows, true
	}
	for _, f := range o.Fields {
		if f.Kind != Sequence {
			continue
		}
		if n, ok := (sequence{f.Start, f.End}).count(); ok {
			rows, bounded = min(rows, n), true
		}
	}
	return rows, bounded
}
