package datagen

import "encoding/binary"

// gamma is the increment of the SplitMix64 sequence: 2^64 divided by the golden ratio, made odd.
const gamma = 0x9e3779b97f4a7c15

// The two multipliers of SplitMix64's output function and their inverses modulo 2^64. A test
// computes the inverses with math/big.
const (
	mul1    = 0xbf58476d1ce4e5b9
	mul2    = 0x94d049bb133111eb
	mul1Inv = 0x96de1b173f119089
	mul2Inv = 0x319642b2d24d8ec3
)

// mix is the output function of SplitMix64, a bijection on 64 bits in which every output bit
// depends on every input bit.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * mul1
	z = (z ^ z>>27) * mul2
	return z ^ z>>31
}

// unmix is the inverse of mix.
func unmix(z uint64) uint64 {
	z = (z ^ z>>31 ^ z>>62) * mul2Inv
	z = (z ^ z>>27 ^ z>>54) * mul1Inv
	return z ^ z>>30 ^ z>>60
}

// hash is FNV-1a with 64 bits.
func hash(s string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return h
}

const (
	ones    = 0x0101010101010101
	nibbles = 0x0f * ones
)

// hex8 gives the eight lower-case hexadecimal digits of v as one word whose most significant byte
// is the first digit. It works on all eight digits at once, which is what makes rows cheaper than
// the network they are sent to.
func hex8(v uint32) uint64 {
	x := uint64(v)
	x = (x | x<<16) & 0x0000ffff0000ffff
	x = (x | x<<8) & 0x00ff00ff00ff00ff
	x = (x | x<<4) & nibbles
	// A digit of ten or more carries into its high nibble when 6 is added; those bytes are moved
	// from behind '9' to 'a'.
	letter := (x + 6*ones) >> 4 & ones
	return x + '0'*ones + letter*('a'-'0'-10)
}

// putHex writes the sixteen digits of v to the first sixteen bytes of dst.
func putHex(dst []byte, v uint64) {
	_ = dst[15]
	binary.BigEndian.PutUint64(dst, hex8(uint32(v>>32)))
	binary.BigEndian.PutUint64(dst[8:], hex8(uint32(v)))
}

// parseHex reads sixteen lower-case digits; ok is false when any of them is something else.
func parseHex(src []byte) (v uint64, ok bool) {
	for _, c := range src[:16] {
		switch {
		case '0' <= c && c <= '9':
			v = v<<4 | uint64(c-'0')
		case 'a' <= c && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}
