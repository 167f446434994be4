package multipart_test

import (
	"errors"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
)

// interrupted returns the handle of an open file of three parts and a tail, of which part 2 was not acknowledged.
func interrupted(t *testing.T, r *rig) (multipart.Handle, []byte) {
	t.Helper()
	r.wait = 0
	r.store.script(rule{op: "part", part: 2, gate: make(chan struct{})})
	u := r.start()
	data := bytesOf(1, 3*partSize+50)
	r.write(u, data)
	synctest.Wait()
	h := r.persist(u)
	r.store.clearScript()
	r.wait = time.Minute
	require.Len(t, h.Parts, 2)
	require.Len(t, h.Pieces, 2)
	r.write(u, bytesOf(9, 4*partSize)) // parts 4 to 7 of the dead run
	synctest.Wait()
	u.Abandon()
	r.store.takeLog()
	return h, data
}

func TestResume_ContinuesAtTheOffsetAndSendsTheMissingPartsUnderTheirNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h, data := interrupted(t, r)
		u := r.resume(h)
		require.Equal(t, h.Offset, u.Offset())
		require.Equal(t, h.CRC, u.Digest())
		require.Equal(t, int64(50), u.Buffered())
		require.Equal(t, []int32{5, 6, 7}, u.Strays(), "4 is the number of our tail")
		synctest.Wait()
		require.Equal(t, []string{"list data/part-0 up1", "part data/part-0 up1 #2 100000 bytes"}, r.store.takeLog())
		more := bytesOf(2, partSize)
		r.write(u, more)
		r.sealAndCommit(u)
		r.published(join(data, more))
	})
}

func TestResume_KeepsEpochTokenAndPartSizeOfTheHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h, _ := interrupted(t, r)
		o := r.options()
		o.PartSize, o.Epoch = 12345, 99
		u, err := multipart.Resume(t.Context(), r.store, h, r.blobs, o)
		require.NoError(t, err)
		defer u.Abandon()
		synctest.Wait()
		again := r.persist(u)
		require.Equal(t, int64(7), again.Epoch)
		require.Equal(t, h.CreatedAt, again.CreatedAt)
		require.Equal(t, h.PartSize, again.PartSize)
		require.Equal(t, token, u.Token())
		require.Equal(t, target, u.Target())
		require.Equal(t, h.Offset, again.Offset)
	})
}

func TestResume_TwiceFromOneHandleWorksTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h, data := interrupted(t, r)
		u := r.resume(h)
		r.write(u, bytesOf(3, 2*partSize))
		synctest.Wait()
		u.Abandon()
		u = r.resume(h)
		r.sealAndCommit(u)
		r.published(data)
	})
}

func TestResume_APartThatTheStoreLostOrChangedIsAnError(t *testing.T) {
	for name, spoil := range map[string]func(*upload){
		"missing":        func(up *upload) { delete(up.parts, 3) },
		"other size":     func(up *upload) { up.parts[3] = object{data: []byte("x"), etag: up.parts[3].etag} },
		"other etag":     func(up *upload) { o := up.parts[3]; o.etag = md5Of(nil); up.parts[3] = o },
		"other checksum": func(up *upload) { o := up.parts[3]; o.crc++; up.parts[3] = o },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				h, _ := interrupted(t, r)
				spoil(r.store.uploads["up1"])
				_, err := multipart.Resume(t.Context(), r.store, h, r.blobs, r.options())
				mismatch, ok := errors.AsType[*multipart.PartMismatchError](err)
				require.True(t, ok, "%v", err)
				require.Equal(t, h.Parts[1], mismatch.Want)
				require.Equal(t, name == "missing", mismatch.Got == nil)
				require.ErrorContains(t, err, "part 3")
			})
		})
	}
}

func TestResume_AnUploadThatIsGoneIsAnErrorWithAHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h, _ := interrupted(t, r)
		r.store.drop("up1")
		_, err := multipart.Resume(t.Context(), r.store, h, r.blobs, r.options())
		require.ErrorIs(t, err, multipart.ErrNoSuchUpload)
		require.ErrorContains(t, err, "lifecycle rule")
		e, ok := errors.AsType[*multipart.Error](err)
		require.True(t, ok)
		require.Equal(t, "list parts", e.Op)
		require.Equal(t, target, e.Target)
		require.Equal(t, "up1", e.UploadID)
	})
}

func TestResume_AnUploadThatIsGoneIsCreatedAnewWhenTheCheckpointHasAllBytes(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.wait = 0
			r.store.script(rule{op: "part", gate: make(chan struct{})})
			u := r.start()
			data := bytesOf(1, 2*partSize+1)
			r.write(u, data)
			if sealed {
				require.NoError(t, u.Seal())
			}
			synctest.Wait()
			h := r.persist(u)
			require.Equal(t, "up1", h.UploadID)
			u.Abandon()
			r.store.clearScript()
			r.store.drop("up1")
			u = r.resume(h)
			r.sealAndCommit(u)
			r.published(data)
		})
	}
}

func TestResume_ADamagedPieceIsAnErrorThatNamesTheBlob(t *testing.T) {
	for name, spoil := range map[string]func(b *blobs, ref string){
		"missing":   func(b *blobs, ref string) { delete(b.data, ref) },
		"short":     func(b *blobs, ref string) { b.data[ref] = b.data[ref][:20] },
		"empty":     func(b *blobs, ref string) { b.data[ref] = nil },
		"long":      func(b *blobs, ref string) { b.data[ref] = append(b.data[ref], 'x') },
		"other bit": func(b *blobs, ref string) { b.data[ref][30] ^= 4 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				h, _ := interrupted(t, r)
				spoil(r.blobs, h.Pieces[1].Ref)
				_, err := multipart.Resume(t.Context(), r.store, h, r.blobs, r.options())
				piece, ok := errors.AsType[*multipart.PieceError](err)
				require.True(t, ok, "%v", err)
				require.Equal(t, h.Pieces[1].Ref, piece.Ref)
				require.Equal(t, int32(4), piece.Number)
				require.ErrorContains(t, err, `of part 4 in blob "blob2"`)
				require.Equal(t, 0, r.store.calls("part"), "nothing is sent before everything is known to be there")
				require.Zero(t, r.budget.Stats().Used)
			})
		})
	}
}

func TestResume_DoesNotWaitForTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		h, data := interrupted(t, r)
		r.budget = multipart.NewBudget(3 * page)
		other, err := multipart.Start(r.store, multipart.Target{Bucket: "bucket", Key: "other"}, "t2", r.options())
		require.NoError(t, err)
		r.write(other, bytesOf(1, 80_000))
		u := r.resume(h)
		require.Equal(t, int64(5*page), r.budget.Stats().Peak)
		other.Abandon()
		r.sealAndCommit(u)
		r.published(data)
	})
}

func TestResume_RefusesABadHandleAndBadOptions(t *testing.T) {
	r := newRig(t)
	h := mixedHandle()
	h.Offset++
	_, err := multipart.Resume(t.Context(), r.store, h, r.blobs, r.options())
	require.ErrorIs(t, err, multipart.ErrHandle)
	o := r.options()
	o.MaxParts = 2
	_, err = multipart.Resume(t.Context(), r.store, mixedHandle(), r.blobs, o)
	require.ErrorIs(t, err, multipart.ErrTooManyParts)
	require.Empty(t, r.store.takeLog())
}

func TestResume_OfASealedFileAsksAndSendsNothingBeforeCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.wait = 0
		r.store.script(rule{op: "part", part: 2, gate: make(chan struct{})})
		u := r.start()
		data := bytesOf(1, 2*partSize+50)
		r.write(u, data)
		require.NoError(t, u.Seal())
		synctest.Wait()
		h := r.persist(u)
		u.Abandon()
		r.store.clearScript()
		r.store.takeLog()

		r.wait = time.Minute
		u = r.resume(h)
		require.True(t, u.Sealed())
		_, err := u.Write(t.Context(), []byte("x"))
		require.ErrorIs(t, err, multipart.ErrSealed)
		require.NoError(t, u.Spill(), "does nothing: the parts are not touched yet")
		start := time.Now()
		again := r.persist(u)
		require.Zero(t, time.Since(start), "nothing is on its way, so there is nothing to wait for")
		require.Equal(t, h.Parts, again.Parts)
		require.Len(t, again.Pieces, 1)
		require.Empty(t, r.store.takeLog())

		_, err = u.Commit(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{
			"head data/part-0",
			"list data/part-0 up1",
			"part data/part-0 up1 #2 100000 bytes",
			"complete data/part-0 up1 3 parts 200050 bytes",
			"head data/part-0",
		}, r.store.takeLog())
		r.published(data)
	})
}

func TestErrNotFound_IsTheFileSystemsNotExist(t *testing.T) {
	require.ErrorIs(t, multipart.ErrNotFound, fs.ErrNotExist)
}
