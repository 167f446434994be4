package datagen

import "math"

// Generator makes rows from their numbers and reads the numbers back. It never changes after
// NewGenerator and is safe for concurrent use; Append and a successful Number do not allocate.
//
// Rows are ASCII without a newline, so that the raw format can separate them by '\n'.
type Generator struct {
	kind Kind
	rand random
	seq  sequence
}

// NewGenerator returns the generator of one field under a seed. The error is the one of
// [Field.Validate].
func NewGenerator(seed int64, f Field) (*Generator, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	g := &Generator{kind: f.Kind}
	if f.Kind == Sequence {
		g.seq = sequence{start: f.Start, end: f.End}
	} else {
		g.rand = newRandom(seed, f)
	}
	return g, nil
}

// Append appends row number row, without a newline, to dst and returns the longer slice. The row
// is a pure function of seed, field and number. Numbers run from 0 to Rows()-1; outside of them
// the result is no row of this generator.
func (g *Generator) Append(dst []byte, row int64) []byte {
	if g.kind == Sequence {
		return g.seq.append(dst, row)
	}
	return g.rand.append(dst, row)
}

// Number reads the row number out of a row (without its newline) and checks the whole content by
// making the row again. The error wraps [ErrNotARow] when no number can be read and is a
// [*CorruptError] when the row carries a number but is not that row; then the number it carries is
// returned too.
//
// What it cannot see: a row that was changed into another valid row. For a random string of
// length n that takes a change of the head that happens to fit the other n-16 digits, one chance
// in 16^(n-16), and the number read is then a random 63-bit one, which nobody expects. In a
// sequence every number is a valid row; a changed one shows as one row missing and another there
// twice. Number does not know how many rows a job has made: whoever asks decides which numbers
// are expected.
func (g *Generator) Number(row []byte) (int64, error) {
	if g.kind == Sequence {
		return g.seq.number(row)
	}
	return g.rand.number(row)
}

// Rows returns how many rows the generator can make: the length of a sequence, 2^63-1 for random
// strings.
func (g *Generator) Rows() int64 {
	if g.kind == Sequence {
		n, _ := g.seq.count() // checked by NewGenerator
		return n
	}
	return math.MaxInt64
}

// MaxLength returns the length in bytes of the longest row, without its newline.
func (g *Generator) MaxLength() int {
	if g.kind == Sequence {
		return g.seq.maxLength()
	}
	return g.rand.length
}
