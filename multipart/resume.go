package multipart

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Resume continues an upload where the handle was taken: bytes written after that are gone. The part size, the token and
// the epoch are the handle's; o.PartSize and o.Epoch are ignored.
//
// The bytes that the checkpoint holds are read back from blobs and checked; a [PieceError] names the blob that is damaged.
// Their memory is booked without waiting, because it was in memory once and the writers that would free some are not
// running yet. Complete pieces are uploaded in the background under their numbers.
//
// For an open file the store is asked for its parts: all those of the handle must be there as the handle says, or Resume
// fails with [ErrNoSuchUpload] or a [PartMismatchError]. For a sealed file nothing is asked and nothing sent: its commit
// may have succeeded before the crash, so Commit looks first.
func Resume(ctx context.Context, api API, h Handle, blobs Blobs, o Options) (*Upload, error) {
	if ctx.Err() != nil {
		return nil, fault("resume", h.Target, h.UploadID, 0, context.Cause(ctx))
	}
	if err := h.Validate(); err != nil {
		return nil, fault("resume", h.Target, h.UploadID, 0, err)
	}
	o.PartSize, o.Epoch = h.PartSize, h.Epoch
	u, err := newUpload(api, h.Target, h.Token, o)
	if err == nil && len(h.Parts)+len(h.Pieces) > int(u.maxParts) {
		err = ErrTooManyParts
	}
	if err != nil {
		return nil, fault("resume", h.Target, h.UploadID, 0, err)
	}
	if err := u.resume(ctx, h, blobs); err != nil {
		u.Abandon()
		return nil, err
	}
	return u, nil
}

func (u *Upload) resume(ctx context.Context, h Handle, blobs Blobs) error {
	u.uploadID, u.createdAt, u.look, u.deferred = h.UploadID, h.CreatedAt, true, true
	if u.unverified = h.UploadID != ""; u.unverified && !h.Sealed {
		if err := u.verify(ctx, h.Parts, len(h.Parts)+len(h.Pieces)); err != nil {
			return err
		}
	}
	if err := u.reload(ctx, h, blobs); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sealed, u.deferred = h.Sealed, h.Sealed
	if u.digest() != h.CRC || u.offset != h.Offset {
		return u.fault("resume", fmt.Errorf("%w: the bytes read back do not add up to it", ErrHandle))
	}
	u.kick()
	return nil
}

// reload puts the handle's parts and pieces in place, in the order of their numbers.
func (u *Upload) reload(ctx context.Context, h Handle, blobs Blobs) error {
	parts, pieces := h.Parts, h.Pieces
	for len(parts)+len(pieces) > 0 {
		if len(pieces) == 0 || len(parts) > 0 && parts[0].Number < pieces[0].Number {
			u.mu.Lock()
			p := u.addPart(extent{size: parts[0].Size, crc: parts[0].CRC, hashed: parts[0].Size})
			p.acked, p.etag = true, parts[0].ETag
			close(p.done)
			u.offset += p.size
			u.mu.Unlock()
			parts = parts[1:]
			continue
		}
		data, err := u.readPiece(ctx, pieces[0], blobs)
		if err != nil {
			return fault("resume", h.Target, h.UploadID, 0, err)
		}
		u.mu.Lock()
		u.tail = data
		u.offset += data.size
		// A short piece stays the tail of an open file and the body of a small one; it is the last part of a sealed
		// multipart upload.
		if data.size == u.partSize || h.Sealed && (len(u.parts) > 0 || h.UploadID != "") {
			u.cut()
		}
		u.mu.Unlock()
		pieces = pieces[1:]
	}
	return nil
}

// readPiece reads one blob into memory and checks it.
func (u *Upload) readPiece(ctx context.Context, p Piece, blobs Blobs) (data extent, err error) {
	r, err := blobs.Open(ctx, p.Ref)
	if err != nil {
		return extent{}, &PieceError{Number: p.Number, Ref: p.Ref, Err: err}
	}
	defer func() {
		if cerr := r.Close(); err == nil && cerr != nil {
			err = &PieceError{Number: p.Number, Ref: p.Ref, Err: cerr}
		}
		if err != nil {
			release(data.pages)
			data = extent{}
		}
	}()
	data.pages = u.budget.force(nil, pagesFor(p.Size))
	for _, page := range data.pages {
		n := min(p.Size-data.size, PageSize)
		if _, err := io.ReadFull(r, page.buf[:n]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return data, &PieceError{Number: p.Number, Ref: p.Ref, Err: fmt.Errorf("read %d bytes from %d: %w", n, data.size, err)}
		}
		data.crc = data.crc.Update(page.buf[:n])
		data.size += n
		data.hashed = data.size
	}
	var extra [1]byte
	if n, err := r.Read(extra[:]); n > 0 {
		return data, &PieceError{Number: p.Number, Ref: p.Ref, Err: fmt.Errorf("more than the %d bytes the handle says", p.Size)}
	} else if err != nil && !errors.Is(err, io.EOF) {
		return data, &PieceError{Number: p.Number, Ref: p.Ref, Err: err}
	}
	if data.crc != p.CRC {
		return data, &PieceError{Number: p.Number, Ref: p.Ref, Err: fmt.Errorf("checksum %v, the handle says %v", data.crc, p.CRC)}
	}
	return data, nil
}

// verify compares parts with those the store has and remembers strays: numbers above total. When the upload is gone but
// had none of the file's parts, nothing is lost: a new one will be created.
func (u *Upload) verify(ctx context.Context, want []Part, total int) error {
	id := u.UploadID()
	listed, err := u.api.ListParts(ctx, u.target, id)
	if errors.Is(err, ErrNoSuchUpload) && len(want) == 0 {
		u.mu.Lock()
		u.uploadID = ""
		u.mu.Unlock()
		err = nil
	}
	if err != nil {
		return fault("list parts", u.target, id, 0, err)
	}
	byNumber := make(map[int32]*Part, len(listed))
	var strays []int32
	for i := range listed {
		p := &listed[i]
		p.ETag = trimETag(p.ETag)
		byNumber[p.Number] = p
		if int(p.Number) > total {
			strays = append(strays, p.Number)
		}
	}
	for _, w := range want {
		got := byNumber[w.Number]
		if got == nil || got.Size != w.Size || got.ETag != w.ETag || got.CRC != 0 && got.CRC != w.CRC {
			return fault("list parts", u.target, id, 0, &PartMismatchError{Want: w, Got: got})
		}
	}
	u.mu.Lock()
	u.strays = strays
	u.mu.Unlock()
	u.unverified = false
	return nil
}
