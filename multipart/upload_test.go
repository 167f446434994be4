package multipart_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
)

func TestStart_DoesNoNetworkAndReportsAllProblemsTogether(t *testing.T) {
	r := newRig(t)
	r.start()
	require.Empty(t, r.store.takeLog())

	_, err := multipart.Start(r.store, target, token, multipart.Options{PartSize: -1, MaxParts: 10_001, Concurrency: -1, PersistWait: -1, Epoch: -1})
	for _, part := range []string{"part size -1", "max parts 10001", "concurrency -1", "persist wait -1", "epoch -1", "budget"} {
		require.ErrorContains(t, err, part)
	}
	_, err = multipart.Start(r.store, target, token, multipart.Options{PartSize: 2 * page, Budget: multipart.NewBudget(page)})
	require.ErrorContains(t, err, "one part of 131072 bytes needs 131072")
	_, err = multipart.Start(r.store, multipart.Target{Bucket: "b"}, token, r.options())
	require.ErrorContains(t, err, "key")
	_, err = multipart.Start(r.store, target, "", r.options())
	require.ErrorContains(t, err, "token")
}

func TestWrite_AnOpenFileWithFewBytesHoldsFewPages(t *testing.T) {
	r := newRig(t)
	u := r.start()
	require.Zero(t, r.budget.Stats().Used)
	r.write(u, []byte("x"))
	require.Equal(t, int64(page), r.budget.Stats().Used)
	r.write(u, bytesOf(1, page-1))
	require.Equal(t, int64(page), r.budget.Stats().Used)
	r.write(u, []byte("x"))
	require.Equal(t, int64(2*page), r.budget.Stats().Used)
	require.Equal(t, int64(page+1), u.Buffered())
}

func TestWrite_PartsAreOfEqualSizeExceptTheLast(t *testing.T) {
	r := newRig(t)
	u := r.start()
	data := bytesOf(1, 3*partSize+17)
	for at := 0; at < len(data); at += 9_999 {
		r.write(u, data[at:min(at+9_999, len(data))])
	}
	require.Equal(t, int64(len(data)), u.Offset())
	require.Equal(t, crcOf(data), u.Digest())
	require.NoError(t, u.Seal())
	h := r.persist(u)
	require.Empty(t, h.Pieces)
	require.Len(t, h.Parts, 4)
	for i, p := range h.Parts {
		part := data[i*partSize : min((i+1)*partSize, len(data))]
		require.Equal(t, multipart.Part{Number: int32(i + 1), Size: int64(len(part)), ETag: md5Of(part), CRC: crcOf(part)}, p)
	}
	_, err := u.Commit(t.Context())
	require.NoError(t, err)
	r.published(data)
}

func TestWrite_TheUploadIsCreatedOnceWithTheFirstFullPart(t *testing.T) {
	r := newRig(t)
	r.conc = 8
	u := r.start()
	r.write(u, bytesOf(1, partSize-1))
	require.Empty(t, u.UploadID())
	require.Empty(t, r.store.takeLog())
	r.write(u, bytesOf(2, 5*partSize))
	r.sealAndCommit(u)
	require.Equal(t, 1, r.store.calls("create"))
	require.Equal(t, 6, r.store.calls("part"))
}

func TestWrite_IsRefusedWholeAtThePartLimit(t *testing.T) {
	r := newRig(t)
	r.size = 1000
	o := r.options()
	o.MaxParts = 3
	u, err := multipart.Start(r.store, target, token, o)
	require.NoError(t, err)
	defer u.Abandon()
	data := bytesOf(1, 3000)
	r.write(u, data[:2990])
	n, err := u.Write(t.Context(), data[:11])
	require.ErrorIs(t, err, multipart.ErrTooManyParts)
	require.Zero(t, n)
	n, err = u.Write(t.Context(), bytesOf(2, 5000))
	require.ErrorIs(t, err, multipart.ErrTooManyParts)
	require.Zero(t, n, "also when it is larger than a part")
	require.Equal(t, int64(2990), u.Offset())
	r.write(u, data[2990:])
	r.sealAndCommit(u)
	r.published(data)
}

func TestWrite_ACancelledContextChangesNothing(t *testing.T) {
	r := newRig(t)
	u := r.start()
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err := u.Write(ctx, []byte("x"))
	require.ErrorIs(t, err, why)
	require.Zero(t, u.Offset())
}

func TestWrite_ConcurrencyBoundsTheUploadsOfAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.conc = 3
		r.store.script(rule{op: "part", delay: time.Second})
		u := r.start()
		start := time.Now()
		r.write(u, bytesOf(1, 9*partSize))
		require.Zero(t, time.Since(start), "queued parts do not hold the writer up")
		r.sealAndCommit(u)
		require.Equal(t, 3*time.Second, time.Since(start))
		require.Equal(t, 3, r.store.most)
	})
}

func TestUpload_ABackgroundErrorSticksAndIsReturnedByEveryCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, op := range []string{"create", "part"} {
			r := newRig(t)
			r.store.script(rule{op: op, err: errInjected, delay: time.Second})
			u := r.start()
			r.write(u, bytesOf(1, 3*partSize))
			time.Sleep(2 * time.Second)
			require.ErrorIs(t, u.Err(), errInjected)
			_, err := u.Write(t.Context(), []byte("x"))
			require.ErrorIs(t, err, errInjected)
			require.ErrorIs(t, u.Seal(), errInjected)
			require.ErrorIs(t, u.Spill(), errInjected)
			_, err = u.Capture().Store(t.Context(), r.blobs)
			require.ErrorIs(t, err, errInjected)
			u.Abandon()
			_, err = u.Write(t.Context(), []byte("x"))
			require.ErrorIs(t, err, multipart.ErrClosed)
		}
	})
}

func TestUpload_AnErrorTheStoreAdapterMadeIsCompletedAndNotWrappedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.store.script(rule{op: "part", err: &multipart.Error{Attempts: 4, Err: multipart.ErrNoSuchUpload}})
		u := r.start()
		r.write(u, bytesOf(1, partSize))
		synctest.Wait()
		err := u.Err()
		require.ErrorIs(t, err, multipart.ErrNoSuchUpload)
		require.EqualError(t, err, "upload part 1 of s3://bucket/data/part-0 (upload up1) after 4 attempts: no such upload "+
			"(the upload was aborted or removed by a lifecycle rule; keep incomplete uploads longer than the oldest checkpoint)")
		u.Abandon()
	})
}

func TestSpill_SendsTheTailAsTheLastPartAndFreesItsMemory(t *testing.T) {
	for name, n := range map[string]int{"small": 10, "parts": 2*partSize + 17, "exact": partSize} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				u := r.start()
				data := bytesOf(1, n)
				r.write(u, data)
				require.NoError(t, u.Spill())
				require.NoError(t, u.Spill(), "twice is fine")
				synctest.Wait()
				require.Zero(t, r.budget.Stats().Used, "the bytes are in the store")
				require.True(t, u.Sealed())
				r.nothingVisible()
				h := r.persist(u)
				require.Empty(t, h.Pieces)
				u.Abandon()
				u = r.resume(h)
				_, err := u.Commit(t.Context())
				require.NoError(t, err)
				r.published(data)
				require.Zero(t, r.store.calls("put"))
			})
		})
	}
	t.Run("a sealed small file", func(t *testing.T) {
		r := newRig(t)
		u := r.start()
		r.write(u, []byte("abc"))
		require.NoError(t, u.Seal())
		require.NoError(t, u.Spill())
		r.sealAndCommit(u)
		r.published([]byte("abc"))
		require.Equal(t, 1, r.store.calls("complete"))
	})
	t.Run("an empty file", func(t *testing.T) {
		r := newRig(t)
		u := r.start()
		require.NoError(t, u.Spill())
		r.sealAndCommit(u)
		require.Empty(t, r.store.takeLog())
	})
}

func TestUpload_TheDigestOutlivesTheBytes(t *testing.T) {
	data := bytesOf(1, partSize+300)
	for _, end := range []func(*rig, *multipart.Upload){
		func(_ *rig, u *multipart.Upload) { u.Abandon() },
		func(r *rig, u *multipart.Upload) { r.sealAndCommit(u) },
	} {
		r := newRig(t)
		u := r.start()
		r.write(u, data)
		end(r, u)
		require.Equal(t, crcOf(data), u.Digest())
		require.Equal(t, int64(len(data)), u.Offset())
		u.Capture().Release()
	}
}

// An HTTP transport may still read a body after the call that sent it has returned. By then the pages may belong to
// another file.
func TestUploadPart_ABodyThatIsReadTooLateFails(t *testing.T) {
	r := newRig(t)
	u := r.start()
	r.write(u, bytesOf(1, 2*partSize))
	r.sealAndCommit(u)
	for _, body := range r.store.bodies {
		_, err := body.Read(make([]byte, 1))
		require.Error(t, err)
		require.NotErrorIs(t, err, io.EOF)
	}
	require.Len(t, r.store.bodies, 2)
}

func TestUpload_ThePartStaysQueuedForCommitWhenItFailedAfterTheSeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.store.script(rule{op: "create", times: 1, err: errInjected, delay: time.Second})
		r.store.script(rule{op: "part", part: 2, times: 2, err: errInjected})
		u := r.start()
		data := bytesOf(1, 3*partSize+1)
		r.write(u, data)
		require.NoError(t, u.Seal())
		time.Sleep(2 * time.Second)
		require.ErrorIs(t, u.Err(), errInjected)
		for range 2 {
			_, err := u.Commit(t.Context())
			require.ErrorIs(t, err, errInjected)
			require.NotErrorIs(t, err, multipart.ErrUnproven, "nothing was asked to be published")
			r.nothingVisible()
		}
		_, err := u.Commit(t.Context())
		require.NoError(t, err)
		r.published(data)
	})
}
