package datagen

import (
	"math"
	"strconv"
)

// sequence makes the rows of a sequence: the decimal text of start + row. A number is its own
// content; there is nothing else in the row that could be checked.
type sequence struct {
	start, end int64
}

// count is the number of values; ok is false when end is before start or when there are more
// values than row numbers.
func (s sequence) count() (n int64, ok bool) {
	if s.end < s.start {
		return 0, false
	}
	span := uint64(s.end) - uint64(s.start)
	if span >= math.MaxInt64 {
		return 0, false
	}
	return int64(span) + 1, true
}

func (s sequence) append(dst []byte, row int64) []byte {
	return strconv.AppendInt(dst, s.start+row, 10)
}

func (s sequence) maxLength() int {
	var b [20]byte
	return max(len(s.append(b[:0], 0)), len(strconv.AppendInt(b[:0], s.end, 10)))
}

func (s sequence) number(row []byte) (int64, error) {
	v, ok := parseDecimal(row)
	if !ok || v < s.start || v > s.end {
		return 0, notARow(row)
	}
	return int64(uint64(v) - uint64(s.start)), nil
}

// parseDecimal reads the one spelling that strconv.AppendInt gives a number: no sign but '-', no
// leading zero, no "-0", nothing around it. It is written by hand because strconv takes a string
// and its error allocates.
func parseDecimal(b []byte) (int64, bool) {
	digits := b
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		digits = b[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && (negative || len(digits) > 1) {
		return 0, false
	}
	var v uint64 // 19 digits stay below 2^64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + uint64(c-'0')
	}
	switch {
	case negative && v <= 1<<63:
		return int64(-v), true
	case !negative && v <= math.MaxInt64:
		return int64(v), true
	}
	return 0, false
}
