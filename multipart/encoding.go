package multipart

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// The binary form of a handle, version 1:
//
//	magic "sluU", version byte 1
//	bucket, key, upload id, token        each: uvarint length, bytes
//	created at                           varint of Unix nanoseconds, 0 for the zero time
//	epoch, part size, offset             uvarint
//	crc                                  8 bytes, big endian
//	flags                                1 byte: bit 0 sealed
//	number of parts                      uvarint; each: number, size (uvarint), crc (8 bytes), etag (string)
//	number of pieces                     uvarint; each: number, size (uvarint), crc (8 bytes), ref (string)
//	CRC-64/NVME of all bytes before      8 bytes, big endian
//
// Every value has exactly one encoding; anything else is refused, and so are bytes behind the end.
const (
	handleMagic   = "sluU"
	handleVersion = 1
	flagSealed    = 1
)

// MarshalBinary returns the handle in its versioned, checksummed form. It refuses a handle that is not valid.
func (h Handle) MarshalBinary() ([]byte, error) {
	if err := h.Validate(); err != nil {
		return nil, err
	}
	b := append([]byte(handleMagic), handleVersion)
	for _, s := range []string{h.Target.Bucket, h.Target.Key, h.UploadID, h.Token} {
		b = appendString(b, s)
	}
	var created int64
	if !h.CreatedAt.IsZero() {
		created = h.CreatedAt.UnixNano()
	}
	b = binary.AppendVarint(b, created)
	b = binary.AppendUvarint(b, uint64(h.Epoch))
	b = binary.AppendUvarint(b, uint64(h.PartSize))
	b = binary.AppendUvarint(b, uint64(h.Offset))
	b = binary.BigEndian.AppendUint64(b, uint64(h.CRC))
	var flags byte
	if h.Sealed {
		flags |= flagSealed
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, uint64(len(h.Parts)))
	for _, p := range h.Parts {
		b = appendPart(b, p.Number, p.Size, p.CRC, p.ETag)
	}
	b = binary.AppendUvarint(b, uint64(len(h.Pieces)))
	for _, p := range h.Pieces {
		b = appendPart(b, p.Number, p.Size, p.CRC, p.Ref)
	}
	return binary.BigEndian.AppendUint64(b, uint64(Checksum(b))), nil
}

// UnmarshalBinary reads what MarshalBinary wrote and validates it. An error is [ErrHandle] and leaves h unchanged.
func (h *Handle) UnmarshalBinary(b []byte) error {
	body := len(b) - 8
	if body < len(handleMagic)+1 || string(b[:len(handleMagic)]) != handleMagic {
		return fmt.Errorf("%w: not an upload handle", ErrHandle)
	}
	if v := b[len(handleMagic)]; v != handleVersion {
		return fmt.Errorf("%w: version %d, this program reads %d", ErrHandle, v, handleVersion)
	}
	if got, want := Checksum(b[:body]), CRC(binary.BigEndian.Uint64(b[body:])); got != want {
		return fmt.Errorf("%w: checksum %v of the bytes, %v written", ErrHandle, got, want)
	}
	d := decoder{b: b[len(handleMagic)+1 : body]}
	out := d.handle()
	if d.err == nil && len(d.b) > 0 {
		d.fail("bytes behind the end")
	}
	if d.err != nil {
		return d.err
	}
	if err := out.Validate(); err != nil {
		return err
	}
	*h = out
	return nil
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendPart(b []byte, number int32, size int64, crc CRC, name string) []byte {
	b = binary.AppendUvarint(b, uint64(number))
	b = binary.AppendUvarint(b, uint64(size))
	b = binary.BigEndian.AppendUint64(b, uint64(crc))
	return appendString(b, name)
}

// minEntry is the fewest bytes a part or piece takes, which bounds the counts that damaged input can make us allocate.
const minEntry = 1 + 1 + 8 + 1

// decoder reads values off b; after the first error every value is zero.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrHandle, what)
	}
	d.b = nil
}

func (d *decoder) handle() Handle {
	var h Handle
	h.Target.Bucket = d.text()
	h.Target.Key = d.text()
	h.UploadID = d.text()
	h.Token = d.text()
	if ns := d.signed(); ns != 0 {
		h.CreatedAt = time.Unix(0, ns).UTC()
	}
	h.Epoch = d.number(math.MaxInt64)
	h.PartSize = d.number(math.MaxInt64)
	h.Offset = d.number(math.MaxInt64)
	h.CRC = CRC(d.fixed64())
	flags := d.byte()
	if flags&^flagSealed != 0 {
		d.fail("unknown flags")
	}
	h.Sealed = flags&flagSealed != 0
	if n := d.count(); n > 0 {
		h.Parts = make([]Part, n)
		for i := range h.Parts {
			p := &h.Parts[i]
			p.Number, p.Size, p.CRC, p.ETag = d.part()
		}
	}
	if n := d.count(); n > 0 {
		h.Pieces = make([]Piece, n)
		for i := range h.Pieces {
			p := &h.Pieces[i]
			p.Number, p.Size, p.CRC, p.Ref = d.part()
		}
	}
	return h
}

func (d *decoder) part() (number int32, size int64, crc CRC, name string) {
	number = int32(d.number(math.MaxInt32))
	size = d.number(math.MaxInt64)
	crc = CRC(d.fixed64())
	return number, size, crc, d.text()
}

func (d *decoder) count() int {
	n := d.number(math.MaxInt32)
	if n > int64(len(d.b)/minEntry) {
		d.fail("count beyond the end")
		return 0
	}
	return int(n)
}

func (d *decoder) number(limit uint64) int64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || v > limit || n > 1 && d.b[n-1] == 0 {
		d.fail("bad number")
		return 0
	}
	d.b = d.b[n:]
	return int64(v)
}

func (d *decoder) signed() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 || n > 1 && d.b[n-1] == 0 {
		d.fail("bad number")
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) take(n int64) []byte {
	if n > int64(len(d.b)) {
		d.fail("short")
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) text() string { return string(d.take(d.number(math.MaxInt32))) }

func (d *decoder) byte() byte {
	if v := d.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (d *decoder) fixed64() uint64 {
	if v := d.take(8); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}
