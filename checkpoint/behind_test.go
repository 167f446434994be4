package checkpoint

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// publisher takes a time for each commit and notes when each ended, in virtual time since its making.
type publisher struct {
	stub
	mu     sync.Mutex
	begun  []ID
	ended  []ID
	active int
}

func newPublisher(t *testing.T, took time.Duration, fail func(ID) error) *publisher {
	p := &publisher{stub: stub{name: "publisher"}}
	p.commit = func(ctx context.Context, id ID) error {
		p.mu.Lock()
		p.begun = append(p.begun, id)
		p.active++
		if p.active > 1 {
			t.Error("two commits at once")
		}
		p.mu.Unlock()
		err := sleepFor(ctx, took)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.active--
		p.ended = append(p.ended, id)
		if err == nil && fail != nil {
			err = fail(id)
		}
		return err
	}
	return p
}

func TestBacklog_CheckpointsGoOnWhileCommitsAreSlow_UpToTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts []time.Duration
		p := newPublisher(t, 30*time.Second, nil)
		c := restored(t, Options{Interval: 10 * time.Second, CommitBacklog: 2, Observer: times(&starts)}, p)
		if err := runFor(t, c, 105*time.Second); err != nil {
			t.Error(err)
		}
		// Commits end at 40, 70 and 100 s. The first two checkpoints are on time; each later one waits for a commit to end.
		sameTimes(t, starts, 10*time.Second, 20*time.Second, 40*time.Second, 70*time.Second, 100*time.Second)
		must(t, c.Close(t.Context()))
		if want := []ID{1, 2, 3, 4, 5}; !slices.Equal(p.ended, want) {
			t.Errorf("committed %v, want %v: Close waits for the outstanding ones", p.ended, want)
		}
	})
}

func TestBacklog_TriggerReturnsWhenItsOwnAndAllOlderCommitsHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPublisher(t, 30*time.Second, nil)
		c := restored(t, Options{Interval: 10 * time.Second, CommitBacklog: 4}, p)
		must(t, runFor(t, c, 25*time.Second)) // 1 and 2 are durable
		id, err := c.Trigger(t.Context())
		must(t, err)
		if want := []ID{1, 2, 3}; id != 3 || !slices.Equal(p.ended, want) {
			t.Errorf("checkpoint %d, committed %v, want 3 and %v", id, p.ended, want)
		}
		must(t, c.Close(t.Context()))
	})
}

func TestBacklog_AFailedCommitCountsAgainstTheTolerableFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("store is down")
		p := newPublisher(t, 12*time.Second, func(id ID) error {
			if id >= 2 {
				return failure
			}
			return nil
		})
		c := restored(t, Options{Interval: 10 * time.Second, CommitBacklog: 3, TolerableFailures: 1}, p)
		start := time.Now()
		err := runFor(t, c, time.Hour)
		f, ok := errors.AsType[*FailuresError](err)
		if !ok || !errors.Is(err, failure) || f.Consecutive != 2 {
			t.Errorf("Run = %v, want two failures in a row", err)
		}
		// Commits run 10 to 22, 22 to 34 (fails), 34 to 46 s (fails): Run ends with the second failure, not with the next tick.
		if took := time.Since(start); took != 46*time.Second {
			t.Errorf("Run ended after %v", took)
		}
		must(t, c.Close(t.Context()))
	})
}

func TestBacklog_CloseCancelsCommitsWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPublisher(t, 24*time.Hour, nil)
		c := restored(t, Options{Interval: 10 * time.Second, CommitBacklog: 2, CommitTimeout: 48 * time.Hour}, p)
		must(t, runFor(t, c, 25*time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		must(t, c.Close(ctx))
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("Close took %v", took)
		}
		if len(p.ended) != 2 {
			t.Errorf("%d commits have ended: Close joins them", len(p.ended))
		}
	})
}
