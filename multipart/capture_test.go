package multipart_test

import (
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
)

func TestCapture_HoldsExactlyTheBytesUpToItsOffsetWhileTheWriterGoesOn(t *testing.T) {
	for name, n := range map[string]int{"in the first page": 10, "at a page": page, "behind a part": partSize + 5, "at a part": partSize} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			u := r.start()
			data := bytesOf(1, n)
			r.write(u, data)
			c := u.Capture()
			r.write(u, bytesOf(2, 3*partSize))
			require.Equal(t, int64(n), c.Offset())
			h := r.keep(c)
			require.Equal(t, int64(n), h.Offset)
			require.Equal(t, crcOf(data), h.CRC)
			u.Abandon()
			u = r.resume(h)
			r.sealAndCommit(u)
			r.published(data)
		})
	}
}

// The race detector is the judge: the writer fills the very page that the blob store reads from.
func TestCapture_IsStoredWhileTheWriterFillsTheSamePage(t *testing.T) {
	r := newRig(t)
	u := r.start()
	row := bytesOf(1, 500)
	var all []byte
	var wg sync.WaitGroup
	handles := make([]multipart.Handle, 20)
	for i := range handles {
		r.write(u, row)
		all = append(all, row...)
		c := u.Capture()
		want := crcOf(all)
		wg.Go(func() {
			h, err := c.Store(t.Context(), r.blobs)
			require.NoError(t, err)
			require.Equal(t, want, h.CRC)
			handles[i] = h
		})
		for range 20 {
			r.write(u, row)
			all = append(all, row...)
		}
	}
	wg.Wait()
	u.Abandon()
	last := handles[len(handles)-1]
	u = r.resume(last)
	r.sealAndCommit(u)
	r.published(all[:last.Offset])
}

func TestCapture_CarriesTheFactsOfTheUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		u := r.start()
		started := time.Now()
		h := r.persist(u)
		require.Equal(t, multipart.Handle{
			Target: target, Token: token, Epoch: 7, PartSize: partSize, CreatedAt: started.UTC(),
		}, h)
		time.Sleep(time.Hour)
		data := bytesOf(1, partSize+3)
		r.write(u, data)
		require.NoError(t, u.Seal())
		h = r.persist(u)
		require.Equal(t, "up1", h.UploadID)
		require.Equal(t, started.Add(time.Hour).UTC(), h.CreatedAt, "when the multipart upload was created")
		require.True(t, h.Sealed)
		require.Equal(t, int64(7), h.Epoch)
		u.Abandon()
	})
}

func TestStore_WaitsOneTimeForAllPartsInFlightThenKeepsTheirBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.wait = 10 * time.Second
		r.conc = 1 // parts finish at 4, 8, 12 … seconds
		r.store.script(rule{op: "part", delay: 4 * time.Second})
		u := r.start()
		data := bytesOf(1, 4*partSize+7)
		r.write(u, data)
		start := time.Now()
		h := r.persist(u)
		require.Equal(t, 10*time.Second, time.Since(start))
		require.Len(t, h.Parts, 2)
		require.Equal(t, []int32{3, 4, 5}, []int32{h.Pieces[0].Number, h.Pieces[1].Number, h.Pieces[2].Number})
		require.Equal(t, data[2*partSize:3*partSize], r.blobs.data[h.Pieces[0].Ref])
		require.Equal(t, data[4*partSize:], r.blobs.data[h.Pieces[2].Ref])
		u.Abandon()

		r.store.clearScript()
		u = r.resume(h)
		more := bytesOf(2, partSize)
		r.write(u, more)
		r.sealAndCommit(u)
		r.published(join(data, more))
	})
}

func TestStore_EndsAsSoonAsAllPartsAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.store.script(rule{op: "part", delay: 3 * time.Second})
		u := r.start()
		r.write(u, bytesOf(1, 2*partSize+5))
		c := u.Capture()
		r.store.script(rule{op: "part", delay: time.Hour})
		start := time.Now()
		h := r.keep(c)
		require.Equal(t, 3*time.Second, time.Since(start))
		require.Len(t, h.Parts, 2)
		require.Len(t, h.Pieces, 1)
		u.Abandon()
	})
}

func TestStore_WithoutAWaitDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.wait = 0
		r.store.script(rule{op: "part", delay: time.Second})
		u := r.start()
		r.write(u, bytesOf(1, partSize))
		start := time.Now()
		h := r.persist(u)
		require.Zero(t, time.Since(start))
		require.Len(t, h.Pieces, 1)
		u.Abandon()
	})
}

func TestStore_AnUploadThatDoesNotExistByThenIsNotInTheHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.wait = 2 * time.Second
		r.store.script(rule{op: "create", times: 1, delay: time.Minute})
		u := r.start()
		data := bytesOf(1, 2*partSize+1)
		r.write(u, data)
		h := r.persist(u)
		require.Empty(t, h.UploadID)
		require.Empty(t, h.Parts)
		require.Len(t, h.Pieces, 3)
		time.Sleep(time.Hour) // the store does create it, and the writer goes on
		require.Equal(t, "up1", u.UploadID())
		u.Abandon()

		u = r.resume(h)
		r.sealAndCommit(u)
		r.published(data)
		require.Equal(t, 2, r.store.calls("create"), "the resumed file has an upload of its own")
	})
}

func TestStore_AnUploadCreatedWhileThePiecesAreStoredComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.wait = 0
		gate := make(chan struct{})
		r.store.script(rule{op: "create", gate: gate})
		u := r.start()
		r.write(u, bytesOf(1, 2*partSize))
		synctest.Wait()
		r.blobs.log = func(string) {
			r.blobs.log = nil
			close(gate)
			synctest.Wait() // both parts are acknowledged
		}
		h := r.persist(u)
		require.Empty(t, h.UploadID)
		require.Len(t, h.Pieces, 2, "a part without an upload would be lost")
		u.Abandon()
	})
}

func TestStore_PartsAcknowledgedWhileItStoresOthersAreNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.wait = 0
		second := make(chan struct{})
		r.store.script(rule{op: "part", part: 1, gate: make(chan struct{})}, rule{op: "part", part: 2, gate: second})
		u := r.start()
		r.write(u, bytesOf(1, 2*partSize))
		synctest.Wait()
		r.blobs.log = func(string) {
			r.blobs.log = nil
			close(second)
			synctest.Wait()
		}
		h := r.persist(u)
		require.Len(t, h.Pieces, 1)
		require.Equal(t, int32(2), h.Parts[0].Number)
		u.Abandon()
		r.store.clearScript()
		u = r.resume(h)
		r.sealAndCommit(u)
		r.published(bytesOf(1, 2*partSize))
	})
}

func TestStore_MemoryOfAPartGoesBackWhenItIsUploadedAndNoCaptureHoldsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		gate := make(chan struct{})
		r.store.script(rule{op: "part", gate: gate})
		u := r.start()
		r.write(u, bytesOf(1, partSize+1))
		synctest.Wait()
		first, second := u.Capture(), u.Capture()
		require.Equal(t, int64(3*page), r.budget.Stats().Used, "a capture takes no memory of its own")
		close(gate)
		synctest.Wait()
		require.Equal(t, int64(3*page), r.budget.Stats().Used, "the captures hold the part")
		first.Release()
		require.Equal(t, int64(3*page), r.budget.Stats().Used)
		r.keep(second)
		require.Equal(t, int64(page), r.budget.Stats().Used, "the tail stays")
		u.Abandon()
	})
}

func TestStore_FailsWithTheCheckpointStoreAndGivesTheMemoryBack(t *testing.T) {
	r := newRig(t)
	u := r.start()
	r.write(u, []byte("abc"))
	c := u.Capture()
	r.blobs.err = errInjected
	_, err := c.Store(t.Context(), r.blobs)
	require.ErrorIs(t, err, errInjected)
	require.ErrorContains(t, err, "store piece 1 of s3://bucket/data/part-0: injected")
	_, err = c.Store(t.Context(), r.blobs)
	require.ErrorIs(t, err, multipart.ErrClosed, "a capture is stored once")
	u.Abandon()
	require.Zero(t, r.budget.Stats().Used)
}

func TestStore_EndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.store.script(rule{op: "part", delay: time.Hour})
		u := r.start()
		r.write(u, bytesOf(1, partSize))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := u.Capture().Store(ctx, r.blobs)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = u.Capture().Store(ctx, r.blobs)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		u.Abandon()
	})
}

func TestStore_AnAbandonBetweenCaptureAndStoreDoesNoHarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.store.script(rule{op: "part", part: 2, gate: make(chan struct{})})
		u := r.start()
		data := bytesOf(1, 2*partSize+9)
		r.write(u, data)
		synctest.Wait()
		c := u.Capture()
		u.Abandon()
		start := time.Now()
		h := r.keep(c)
		require.Zero(t, time.Since(start))
		require.Len(t, h.Parts, 1)
		r.store.clearScript()
		u = r.resume(h)
		r.sealAndCommit(u)
		r.published(data)
	})
}

func TestStore_ACaptureOfAClosedUploadSaysSo(t *testing.T) {
	r := newRig(t)
	u := r.start()
	r.write(u, []byte("abc"))
	r.sealAndCommit(u)
	_, err := u.Capture().Store(t.Context(), r.blobs)
	require.ErrorIs(t, err, multipart.ErrClosed)
	u = r.start()
	u.Abandon()
	_, err = u.Capture().Store(t.Context(), r.blobs)
	require.ErrorIs(t, err, multipart.ErrClosed)
}

func TestStore_ABlobReaderThatIsReadTooLateFails(t *testing.T) {
	r := newRig(t)
	u := r.start()
	r.write(u, []byte("abc"))
	r.persist(u)
	u.Abandon()
	require.Len(t, r.blobs.seen, 1)
	_, err := r.blobs.seen[0].Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, io.EOF)
}

// A sink captures a pending file at a barrier while the commit of the checkpoint before is still running.
func TestCapture_BesideARunningCommit(t *testing.T) {
	for name, n := range map[string]int{"small": 10, "parts": 2*partSize + 17} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				for _, op := range []string{"put", "part", "complete", "head"} {
					r.store.script(rule{op: op, delay: time.Second})
				}
				r.wait = 0
				u := r.start()
				data := bytesOf(1, n)
				r.write(u, data)
				require.NoError(t, u.Seal())
				var wg sync.WaitGroup
				wg.Go(func() {
					_, err := u.Commit(t.Context())
					require.NoError(t, err)
				})
				var handles []multipart.Handle
				for range 4 {
					time.Sleep(400 * time.Millisecond)
					handles = append(handles, r.persist(u))
				}
				wg.Wait()
				for _, h := range handles {
					u := r.resume(h)
					_, err := u.Commit(t.Context())
					require.NoError(t, err, "a restored process finds the work done")
				}
				r.published(data)
			})
		})
	}
}
