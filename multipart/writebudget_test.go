package multipart_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
)

// At the limit a write waits; when its context ends it has taken no byte, though a part of it would have fitted.
func TestWrite_BlockedAtTheBudgetIsAllOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.size = 8 * page
		r.budget = multipart.NewBudget(8 * page)
		u := r.start()
		defer u.Abandon()
		other, err := multipart.Start(r.store, multipart.Target{Bucket: "bucket", Key: "other"}, "t2", r.options())
		require.NoError(t, err)
		defer other.Abandon()
		r.write(other, bytesOf(1, 6*page))
		r.write(u, bytesOf(2, 10))

		n, err := u.TryWrite(bytesOf(3, 2*page))
		require.ErrorIs(t, err, multipart.ErrBudgetFull)
		require.Zero(t, n)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		n, err = u.Write(ctx, bytesOf(3, 2*page))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "write of s3://bucket/data/part-0")
		require.Zero(t, n)
		require.Equal(t, int64(10), u.Offset())
		require.Equal(t, int64(7*page), r.budget.Stats().Used, "nothing was taken")

		go func() {
			time.Sleep(time.Minute)
			other.Abandon()
		}()
		start := time.Now()
		r.write(u, bytesOf(4, 2*page))
		require.Equal(t, time.Minute, time.Since(start), "memory came back when the other file was given up")
	})
}

func TestWrite_BlockedAtTheBudgetGoesOnWithCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.size = 4 * page
		r.budget = multipart.NewBudget(4 * page)
		gate := make(chan struct{})
		r.store.script(rule{op: "part", gate: gate})
		u := r.start()
		defer u.Abandon()
		r.write(u, bytesOf(1, 4*page))
		var done atomic.Bool
		go func() {
			_, err := u.Write(t.Context(), bytesOf(2, page))
			require.NoError(t, err)
			done.Store(true)
		}()
		synctest.Wait()
		require.False(t, done.Load())
		require.Equal(t, 1, r.budget.Stats().Waiting)
		r.budget.Credit(true)
		synctest.Wait()
		require.True(t, done.Load())
		r.budget.Credit(false)
		require.Equal(t, int64(5*page), r.budget.Stats().Used)
		close(gate)
		r.sealAndCommit(u)
	})
}

func TestWrite_BlockedAtTheBudgetEndsWithTheErrorThatKeepsMemoryFromComingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.size = 4 * page
		r.budget = multipart.NewBudget(4 * page)
		r.store.script(rule{op: "part", delay: time.Minute, err: errInjected})
		u := r.start()
		defer u.Abandon()
		r.write(u, bytesOf(1, 4*page))
		_, err := u.Write(t.Context(), []byte("x"))
		require.ErrorIs(t, err, errInjected)
		require.ErrorContains(t, err, "upload part 1 of s3://bucket/data/part-0 (upload up1): injected")
		require.Equal(t, err, u.Err())
	})
}

// Files whose tails fill the whole budget would wait for each other for ever if the write that ends a part had to wait for
// the page that starts the next.
func TestWrite_FilesWithFullTailsDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.size = 2 * page
		const files = 4
		r.budget = multipart.NewBudget(files * multipart.FileBudget(r.size))
		uploads := make([]*multipart.Upload, files)
		for i := range uploads {
			u, err := multipart.Start(r.store, multipart.Target{Bucket: "bucket", Key: string(rune('a' + i))}, "t", r.options())
			require.NoError(t, err)
			defer u.Abandon()
			r.write(u, bytesOf(uint64(i), 2*page-1))
			uploads[i] = u
		}
		require.Equal(t, r.budget.Stats().Limit, r.budget.Stats().Used)
		for range 100 {
			for _, u := range uploads {
				r.write(u, []byte("a row that ends a part"))
			}
		}
		for _, u := range uploads {
			r.sealAndCommit(u)
		}
		s := r.budget.Stats()
		require.LessOrEqual(t, s.Peak, s.Limit+page)
	})
}
