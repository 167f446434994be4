package multipart_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
)

func TestAbandon_CancelsPartUploadsWaitsForThemAndLeavesTheStoreAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.conc = 2
		r.store.script(rule{op: "part", gate: make(chan struct{})})
		u := r.start()
		r.write(u, bytesOf(1, 4*partSize+9))
		synctest.Wait()
		require.Equal(t, 2, r.store.sending)
		u.Abandon()
		require.Zero(t, r.store.sending)
		require.Zero(t, r.budget.Stats().Used)
		require.NoError(t, u.Err(), "being cancelled is no failure")
		u.Abandon()
		require.Zero(t, r.store.aborts)
		_, err := u.Commit(t.Context())
		require.ErrorIs(t, err, multipart.ErrClosed)
	})
}

// A blocked write may get its memory in the moment in which the upload is abandoned.
func TestAbandon_BesideAWriteThatJustGotItsMemory(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.size = 2 * page
			r.budget = multipart.NewBudget(2 * page)
			r.store.script(rule{op: "part", gate: make(chan struct{})})
			u := r.start()
			r.write(u, bytesOf(1, 2*page))
			go func() {
				_, err := u.Write(t.Context(), []byte("x"))
				if err != nil {
					require.ErrorIs(t, err, multipart.ErrClosed)
				}
			}()
			synctest.Wait()
			r.budget.Credit(true)
			u.Abandon()
			synctest.Wait()
			require.Zero(t, r.budget.Stats().Used)
		})
	}
}

func TestCommit_EndsWhenTheUploadIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.store.script(rule{op: "part", gate: make(chan struct{})})
		u := r.start()
		r.write(u, bytesOf(1, partSize))
		require.NoError(t, u.Seal())
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := u.Commit(t.Context())
			require.ErrorIs(t, err, multipart.ErrClosed)
		})
		synctest.Wait()
		u.Abandon()
		wg.Wait()
		r.nothingVisible()
	})
}

// The PUT may be on the wire when the upload is abandoned; its pages must not be given to somebody else meanwhile.
func TestCommit_AnAbandonDoesNotPullTheBytesFromUnderAPut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		gate := make(chan struct{})
		r.store.script(rule{op: "put", gate: gate})
		u := r.start()
		data := bytesOf(1, 100)
		r.write(u, data)
		require.NoError(t, u.Seal())
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = u.Commit(t.Context()) })
		synctest.Wait()
		u.Abandon()
		require.Equal(t, int64(page), r.budget.Stats().Used)
		close(gate)
		wg.Wait()
		r.published(data)
		require.Zero(t, r.budget.Stats().Used)
	})
}
