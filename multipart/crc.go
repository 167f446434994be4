package multipart

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/minio/crc64nvme"
)

// CRC is a CRC-64/NVME checksum, the one S3 calls CRC64NVME. The checksum of no bytes is zero.
type CRC uint64

// Checksum returns the checksum of p.
func Checksum(p []byte) CRC { return CRC(crc64nvme.Checksum(p)) }

// Update returns the checksum of the bytes behind c followed by p.
func (c CRC) Update(p []byte) CRC { return CRC(crc64nvme.Update(uint64(c), p)) }

// Append returns the checksum of the bytes behind c followed by size other bytes whose checksum is next. It looks at no
// byte, so that the digest of a file follows from the checksums of its parts.
func (c CRC) Append(next CRC, size int64) CRC { return c.appendShift(next, crcShift(size)) }

// appendShift is Append with crcShift(size) already computed: parts of equal size need it once.
func (c CRC) appendShift(next CRC, shift uint64) CRC {
	return CRC(mulMod(shift, uint64(c))) ^ next
}

// String returns the checksum as S3 writes it: base64 of eight bytes, big endian.
func (c CRC) String() string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(c)))
}

// ParseCRC reads the form that String writes.
func ParseCRC(s string) (CRC, error) {
	if want := base64.StdEncoding.EncodedLen(crc64nvme.Size); len(s) != want {
		return 0, fmt.Errorf("checksum %q: %d characters, want %d", s, len(s), want)
	}
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil {
		return 0, fmt.Errorf("checksum %q: %w", s, err)
	}
	if len(b) != crc64nvme.Size { // the decoder skips line breaks
		return 0, fmt.Errorf("checksum %q: %d bytes, want %d", s, len(b), crc64nvme.Size)
	}
	return CRC(binary.BigEndian.Uint64(b)), nil
}

// A CRC is the remainder of the message as a polynomial over GF(2), so appending n bytes multiplies it by x^(8n) modulo
// the polynomial and adds the new remainder. The bit order is reflected: bit 63 is the coefficient of x^0.
const (
	polyOne = uint64(1) << 63
	polyX   = uint64(1) << 62
)

// crcShift returns x^(8*size) modulo the CRC polynomial, by squaring.
func crcShift(size int64) uint64 {
	result, square := polyOne, polyX
	for bits := uint64(size) * 8; bits != 0; bits >>= 1 {
		if bits&1 != 0 {
			result = mulMod(square, result)
		}
		square = mulMod(square, square)
	}
	return result
}

// mulMod multiplies two polynomials modulo the CRC polynomial.
func mulMod(a, b uint64) uint64 {
	var product uint64
	for bit := polyOne; a != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
			a &^= bit
		}
		b = b>>1 ^ crc64nvme.NVME&-(b&1)
	}
	return product
}
