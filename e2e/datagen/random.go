package datagen

import (
	"encoding/binary"
	"math"
	"slices"
)

// MinLength is the smallest length of a random string: its first sixteen digits carry the 64 bits
// of the row number.
const MinLength = 16

// MaxLength bounds the length of a random string, so that a reader knows how much memory one row
// can need.
const MaxLength = 16 << 20

// random makes the rows of a random string. With two keys k1 and k2 derived from (seed, field),
// row r is the hexadecimal text, cut to length, of the words
//
//	mix(r + k1) ^ k2, mix(s + gamma), mix(s + 2*gamma), mix(s + 3*gamma), ...   where s = mix(r ^ k2)
//
// modulo 2^64: the first word carries the number and can be undone, the others are the SplitMix64
// sequence that starts at s and prove the content.
type random struct {
	k1, k2 uint64
	length int
}

func newRandom(seed int64, f Field) random {
	base := mix(uint64(seed)+gamma) ^ hash(f.Name)
	var twice uint64 = gamma
	twice += gamma
	return random{k1: mix(base + gamma), k2: mix(base + twice), length: f.Length}
}

func (r *random) append(dst []byte, row int64) []byte {
	at := len(dst)
	dst = slices.Grow(dst, r.length)[:at+r.length]
	out := dst[at:]
	putHex(out, mix(uint64(row)+r.k1)^r.k2)
	out = out[MinLength:]
	s := mix(uint64(row) ^ r.k2)
	for len(out) >= 16 {
		s += gamma
		putHex(out, mix(s))
		out = out[16:]
	}
	if len(out) > 0 {
		var last [16]byte
		putHex(last[:], mix(s+gamma))
		copy(out, last[:])
	}
	return dst
}

// head reads the row number; ok is false when no number of a row is there.
func (r *random) head(row []byte) (n int64, ok bool) {
	if len(row) < MinLength {
		return 0, false
	}
	v, ok := parseHex(row)
	if !ok {
		return 0, false
	}
	u := unmix(v^r.k2) - r.k1
	return int64(u), u <= math.MaxInt64-1
}

// same tells whether row is, byte for byte, row number n. The head has been read already and
// hex has one spelling, so only what follows it is compared.
func (r *random) same(row []byte, n int64) bool {
	if len(row) != r.length {
		return false
	}
	row = row[MinLength:]
	s := mix(uint64(n) ^ r.k2)
	for len(row) >= 16 {
		s += gamma
		v := mix(s)
		if binary.BigEndian.Uint64(row) != hex8(uint32(v>>32)) || binary.BigEndian.Uint64(row[8:]) != hex8(uint32(v)) {
			return false
		}
		row = row[16:]
	}
	if len(row) == 0 {
		return true
	}
	var last [16]byte
	putHex(last[:], mix(s+gamma))
	return string(row) == string(last[:len(row)])
}

func (r *random) number(row []byte) (int64, error) {
	n, ok := r.head(row)
	if !ok {
		return 0, notARow(row)
	}
	if !r.same(row, n) {
		return n, r.corrupt(row, n)
	}
	return n, nil
}

// corrupt compares row with what row n should be. It allocates: damage is rare.
func (r *random) corrupt(row []byte, n int64) error {
	want := r.append(nil, n)
	e := &CorruptError{Row: n, Length: len(row), WantLength: len(want), At: -1}
	for i := range min(len(row), len(want)) {
		if row[i] != want[i] {
			if e.At < 0 {
				e.At = i
			}
			e.Differing++
		}
	}
	if e.At < 0 {
		e.At = min(len(row), len(want))
	}
	return e
}
