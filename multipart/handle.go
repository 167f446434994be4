package multipart

import (
	"fmt"
	"time"
)

// Piece is the bytes of a part that a checkpoint holds itself: the store had not acknowledged them, or they are the tail.
type Piece struct {
	Number int32  // the part number the bytes are for
	Size   int64  // bytes
	CRC    CRC    // of the bytes
	Ref    string // the blob, opaque
}

// Handle is everything that is needed to continue or commit an upload in another process. Its parts and pieces together
// are the bytes [0, Offset) of the file.
type Handle struct {
	Target    Target
	UploadID  string    // "" while no multipart upload exists
	CreatedAt time.Time // when the multipart upload was created, or without one when the file was started
	Epoch     int64     // the run that started the file
	Token     string    // the owner token in the object's metadata
	PartSize  int64     // bytes of every part but the last
	Parts     []Part    // acknowledged by the store, ascending
	Pieces    []Piece   // held by the checkpoint, ascending
	Offset    int64     // bytes of the file
	CRC       CRC       // of the file's bytes
	Sealed    bool      // the file ends at Offset
}

// Validate reports the first way in which the handle contradicts itself; the error is [ErrHandle]. It checks that parts
// and pieces are numbered 1 to n without gap or double, have legal sizes that add up to Offset, and that their checksums
// add up to CRC.
func (h Handle) Validate() error {
	switch {
	case h.Target.Bucket == "" || h.Target.Key == "":
		return badHandle("bucket and key are required")
	case h.Token == "":
		return badHandle("no owner token")
	case h.PartSize < 1 || h.PartSize > MaxPartSize:
		return badHandle("part size %d", h.PartSize)
	case h.Epoch < 0:
		return badHandle("epoch %d", h.Epoch)
	case len(h.Parts) > 0 && h.UploadID == "":
		return badHandle("parts without an upload id")
	case len(h.Parts)+len(h.Pieces) > MaxParts:
		return badHandle("%d parts, at most %d", len(h.Parts)+len(h.Pieces), MaxParts)
	}
	return h.validateBytes()
}

// validateBytes walks the parts and pieces in the order of their numbers.
func (h Handle) validateBytes() error {
	parts, pieces := h.Parts, h.Pieces
	total := int32(len(parts) + len(pieces))
	shift := crcShift(h.PartSize)
	var sum int64
	var crc CRC
	for n := int32(1); n <= total; n++ {
		var size int64
		var sub CRC
		acked := len(parts) > 0 && parts[0].Number == n
		switch {
		case acked:
			if parts[0].ETag == "" {
				return badHandle("part %d has no etag", n)
			}
			size, sub, parts = parts[0].Size, parts[0].CRC, parts[1:]
		case len(pieces) > 0 && pieces[0].Number == n:
			if pieces[0].Ref == "" {
				return badHandle("piece %d has no reference", n)
			}
			size, sub, pieces = pieces[0].Size, pieces[0].CRC, pieces[1:]
		default:
			return badHandle("part %d of %d is missing or another is twice there", n, total)
		}
		switch {
		case size < 1 || size > h.PartSize:
			return badHandle("part %d has %d bytes, part size is %d", n, size, h.PartSize)
		case size == h.PartSize:
			crc = crc.appendShift(sub, shift)
		case n < total:
			return badHandle("part %d has %d bytes but is not the last of %d", n, size, total)
		case acked && !h.Sealed:
			return badHandle("part %d of %d bytes is in the store but the file is not sealed", n, size)
		default:
			crc = crc.Append(sub, size)
		}
		sum += size
	}
	switch {
	case sum != h.Offset:
		return badHandle("parts and pieces have %d bytes, offset is %d", sum, h.Offset)
	case crc != h.CRC:
		return badHandle("parts and pieces have checksum %v, the file %v", crc, h.CRC)
	}
	return nil
}

func badHandle(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrHandle, fmt.Sprintf(format, args...))
}
