package multipart

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func acquireNow(t *testing.T, b *Budget, n int) []*page {
	t.Helper()
	pages, ok := b.tryAcquire(nil, n, false)
	require.True(t, ok)
	require.Len(t, pages, n)
	return pages
}

func TestBudget_RoundsDownToWholePages(t *testing.T) {
	require.Equal(t, int64(PageSize), NewBudget(0).Stats().Limit)
	require.Equal(t, int64(PageSize), NewBudget(2*PageSize-1).Stats().Limit)
	require.Equal(t, int64(2*PageSize), NewBudget(2*PageSize).Stats().Limit)
}

func TestBudget_ServesWaitersInTheOrderTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(4 * PageSize)
		held := acquireNow(t, b, 4)
		var served [3][]*page
		for i, n := range []int{3, 1, 2} {
			go func() {
				pages, err := b.acquire(t.Context(), nil, nil, n, false)
				require.NoError(t, err)
				served[i] = pages
			}()
			synctest.Wait()
		}
		require.Equal(t, 3, b.Stats().Waiting)
		// back gives n pages back and says how many requests are served then.
		back := func(n int) (count int) {
			release(held[:n])
			held = held[n:]
			synctest.Wait()
			for _, pages := range served {
				if pages != nil {
					count++
				}
			}
			return count
		}
		require.Zero(t, back(1), "one page would do for the second, but the first comes first")
		_, ok := b.tryAcquire(nil, 1, false)
		require.False(t, ok, "nor does a newcomer overtake")
		require.Zero(t, back(1))
		require.Equal(t, 1, back(1))
		require.Len(t, served[0], 3)
		require.Equal(t, 2, back(1))
		require.Len(t, served[1], 1)
		release(served[1])
		synctest.Wait()
		require.Nil(t, served[2])
		release(served[0])
		synctest.Wait()
		release(served[2])
		require.Zero(t, b.Stats().Used)
	})
}

func TestBudget_ACancelledWaiterTakesNothingAndLetsTheNextThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(4 * PageSize)
		held := acquireNow(t, b, 2)
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		var got error
		go func() { _, got = b.acquire(ctx, nil, nil, 3, false) }()
		synctest.Wait()
		var second []*page
		go func() { second, _ = b.acquire(t.Context(), nil, nil, 2, false) }()
		synctest.Wait()
		require.Empty(t, second)
		cancel(why)
		synctest.Wait()
		require.ErrorIs(t, got, why)
		require.Len(t, second, 2, "the one behind was only blocked by the order")
		release(held)
		release(second)
		require.Zero(t, b.Stats().Used)
	})
}

func TestBudget_CreditLetsWaitingAndNewRequestsThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(2 * PageSize)
		held := acquireNow(t, b, 2)
		var waited []*page
		go func() { waited, _ = b.acquire(t.Context(), nil, nil, 2, false) }()
		synctest.Wait()
		require.Empty(t, waited)
		b.Credit(true)
		synctest.Wait()
		require.Len(t, waited, 2)
		fresh := acquireNow(t, b, 1)
		require.Equal(t, int64(5*PageSize), b.Stats().Used)

		b.Credit(true) // a second sink
		b.Credit(false)
		fresh = append(fresh, acquireNow(t, b, 1)...)
		b.Credit(false)
		_, ok := b.tryAcquire(nil, 1, false)
		require.False(t, ok, "credit is over")
		b.Credit(false) // one too many changes nothing
		release(held)
		release(waited)
		release(fresh)
		require.Equal(t, BudgetStats{Limit: 2 * PageSize, Peak: 6 * PageSize, Free: 2 * PageSize}, b.Stats())
	})
}

func TestBudget_OneRequestThatBringsMemoryBackMayExceedTheLimit(t *testing.T) {
	b := NewBudget(2 * PageSize)
	held := acquireNow(t, b, 2)
	extra, ok := b.tryAcquire(nil, 1, true)
	require.True(t, ok)
	_, ok = b.tryAcquire(nil, 1, true)
	require.False(t, ok, "but not a second one on top")
	release(held)
	release(extra)
}

func TestBudget_RecycledAndUsedPagesTogetherNeverExceedTheLimit(t *testing.T) {
	b := NewBudget(3 * PageSize)
	pages := b.force(nil, 5)
	check := func() {
		s := b.Stats()
		require.LessOrEqual(t, s.Free+min(s.Used, s.Limit), s.Limit)
	}
	for _, p := range pages {
		release([]*page{p})
		check()
	}
	require.Equal(t, int64(3*PageSize), b.Stats().Free)
	again := acquireNow(t, b, 2)
	require.Subset(t, pages, again, "pages are recycled")
	check()
	release(again)
}

func TestBudget_APageGoesBackWithItsLastReference(t *testing.T) {
	b := NewBudget(2 * PageSize)
	pages := acquireNow(t, b, 2)
	retain(pages[:1])
	release(pages)
	require.Equal(t, int64(PageSize), b.Stats().Used)
	release(pages[:1])
	require.Zero(t, b.Stats().Used)
}

func TestBudget_HoldsUnderContention(t *testing.T) {
	b := NewBudget(8 * PageSize)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 300 {
				ctx, cancel := context.WithCancel(t.Context())
				if i%2 == 0 {
					go cancel()
				}
				pages, err := b.acquire(ctx, nil, nil, i%4+1, false)
				if err == nil {
					for _, p := range pages {
						p.buf[0]++ // the race detector sees a page that two own
					}
					release(pages)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	s := b.Stats()
	require.Zero(t, s.Used)
	require.Zero(t, s.Waiting)
	require.LessOrEqual(t, s.Peak, s.Limit)
}
