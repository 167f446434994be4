package checkpoint

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// runFor runs Run for d of virtual time and returns its error.
func runFor(t *testing.T, c *Coordinator, d time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return c.Run(ctx)
}

// slow takes a number of seconds to store, one number per checkpoint, the last one for all others.
func slow(seconds ...int) *stub {
	return &stub{name: "slow", store: func(ctx context.Context, _ Blobs) ([]byte, []string, error) {
		d := time.Duration(seconds[0]) * time.Second
		if len(seconds) > 1 {
			seconds = seconds[1:]
		}
		return nil, nil, sleepFor(ctx, d)
	}}
}

func TestRun_Interval_IsFromStartToStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts []time.Duration
		c := restored(t, Options{Interval: 10 * time.Second, Observer: times(&starts)}, slow(3))
		if err := runFor(t, c, 35*time.Second); err != nil {
			t.Error(err)
		}
		sameTimes(t, starts, 10*time.Second, 20*time.Second, 30*time.Second)
	})
}

func TestRun_TicksMissedDuringALongCheckpoint_DoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts []time.Duration
		c := restored(t, Options{Interval: 10 * time.Second, Observer: times(&starts)}, slow(47, 1))
		if err := runFor(t, c, 80*time.Second); err != nil {
			t.Error(err)
		}
		// The one from 10 to 57 misses four ticks. One checkpoint follows at once, then the interval counts from its start.
		sameTimes(t, starts, 10*time.Second, 57*time.Second, 67*time.Second, 77*time.Second)
	})
}

func TestRun_MinPause_IsFromEndToStart_AndWinsOverTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts []time.Duration
		o := Options{Interval: 10 * time.Second, MinPause: 6 * time.Second, Observer: times(&starts)}
		c := restored(t, o, slow(7, 2))
		if err := runFor(t, c, 45*time.Second); err != nil {
			t.Error(err)
		}
		// 10 to 17, pause until 23; 23 to 25, pause until 31, but the interval is 33.
		sameTimes(t, starts, 10*time.Second, 23*time.Second, 33*time.Second, 43*time.Second)
	})
}

func TestRun_ATriggeredCheckpoint_CountsForTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts []time.Duration
		c := restored(t, Options{Interval: 10 * time.Second, Observer: times(&starts)}, slow(1))
		done := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- c.Run(ctx) }()
		time.Sleep(4 * time.Second)
		if id, err := c.Trigger(t.Context()); id != 1 || err != nil {
			t.Errorf("Trigger = %d, %v", id, err)
		}
		time.Sleep(20 * time.Second)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		sameTimes(t, starts, 4*time.Second, 14*time.Second, 24*time.Second)
	})
}

func TestRun_WithoutAnInterval_TakesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := restored(t, Options{}, slow(1))
		if err := runFor(t, c, 24*time.Hour); err != nil {
			t.Error(err)
		}
		if s := c.Stats(); s.Durable != 0 {
			t.Errorf("%d checkpoints", s.Durable)
		}
	})
}

func TestRun_Timeout_AbandonsTheCheckpoint_AndItsWorkGoesIntoTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed []Info
		o := Options{Interval: 10 * time.Second, Timeout: 5 * time.Second, TolerableFailures: 1}
		o.Observer.Failed = func(i Info) { failed = append(failed, i) }
		p := slow(60, 1)
		c := restored(t, o, p)
		if err := runFor(t, c, 25*time.Second); err != nil {
			t.Error(err)
		}
		if len(failed) != 1 || !errors.Is(failed[0].Err, ErrTimeout) || failed[0].Total != 5*time.Second {
			t.Fatalf("failed: %+v", failed)
		}
		if !errors.Is(failed[0].Err, context.DeadlineExceeded) {
			t.Error("a timeout must match context.DeadlineExceeded")
		}
		if e, ok := errors.AsType[*Error](failed[0].Err); !ok || e.Op != "store" || e.Participant != "slow" || e.ID != 1 {
			t.Errorf("error does not say where: %v", failed[0].Err)
		}
		if p.discarded != 1 {
			t.Errorf("%d snapshots discarded, want 1", p.discarded)
		}
		if s := c.Stats(); s.LastCommitted != 1 || s.Abandoned != 1 || s.ConsecutiveFailure != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestRun_TolerableFailures_CountsConsecutiveOnes(t *testing.T) {
	fails := func(outcomes string) *stub {
		return &stub{name: "p", store: func(context.Context, Blobs) ([]byte, []string, error) {
			now := outcomes[0]
			outcomes = outcomes[1:]
			if now == 'x' {
				return nil, nil, errInjected
			}
			return nil, nil, nil
		}}
	}
	for _, c := range []struct {
		outcomes  string
		tolerable int
		ends      time.Duration // when Run returns the error; 0 = it does not
	}{
		{"x", 0, 1 * time.Second},
		{"..x", 0, 3 * time.Second},
		{"xxx", 2, 3 * time.Second},
		{"xx.xx.xx.", 2, 0},
		{"x.xx", 1, 4 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			co := restored(t, Options{Interval: time.Second, TolerableFailures: c.tolerable}, fails(c.outcomes))
			err := runFor(t, co, time.Duration(len(c.outcomes))*time.Second+time.Millisecond)
			if c.ends == 0 {
				if err != nil {
					t.Errorf("%s, %d tolerable: %v", c.outcomes, c.tolerable, err)
				}
				return
			}
			many, ok := errors.AsType[*FailuresError](err)
			if !ok || !errors.Is(err, errInjected) || many.Consecutive != c.tolerable+1 {
				t.Errorf("%s, %d tolerable: %v", c.outcomes, c.tolerable, err)
			}
			if took := time.Since(begin); took != c.ends {
				t.Errorf("%s, %d tolerable: ended after %v, want %v", c.outcomes, c.tolerable, took, c.ends)
			}
		})
	}
}

func TestRun_CommitFailures_CountAsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &stub{name: "p", commit: func(context.Context, ID) error { return errInjected }}
		c := restored(t, Options{Interval: time.Second, TolerableFailures: 1}, p)
		err := runFor(t, c, time.Minute)
		many, ok1 := errors.AsType[*FailuresError](err)
		commit, ok2 := errors.AsType[*CommitError](err)
		if !ok1 || !ok2 || many.Consecutive != 2 || commit.ID != 2 || commit.Participant != "p" {
			t.Errorf("%v", err)
		}
		if s := c.Stats(); s.Durable != 2 || s.LastDurable != 2 || s.CommitFailures != 2 || s.LastCommitted != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestRun_CommitThatHangs_EndsByItsOwnTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := slow(4)
		p.commit = func(ctx context.Context, _ ID) error { return sleepFor(ctx, time.Hour) }
		o := Options{Timeout: 5 * time.Second, CommitTimeout: 7 * time.Second}
		c := restored(t, o, p)
		begin := time.Now()
		id, err := c.Trigger(t.Context())
		if _, ok := errors.AsType[*CommitError](err); !ok || id != 1 || !errors.Is(err, ErrTimeout) {
			t.Errorf("Trigger = %d, %v", id, err)
		}
		if took := time.Since(begin); took != 11*time.Second {
			t.Errorf("took %v, want 4 s to store and 7 s to give up the commit", took)
		}
	})
}

func TestRun_EndsWithoutAnErrorWhenToldTo_EvenInsideACheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := slow(60)
		c := restored(t, Options{Interval: time.Second}, p)
		if err := runFor(t, c, 10*time.Second); err != nil {
			t.Errorf("Run = %v after its context ended", err)
		}
		if p.discarded != 1 {
			t.Error("the checkpoint in progress was not abandoned")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := restored(t, Options{Interval: time.Second}, slow(0))
		done := make(chan error)
		go func() { done <- c.Run(t.Context()) }()
		time.Sleep(10 * time.Second)
		must(t, c.Close(t.Context()))
		if err := <-done; err != nil {
			t.Errorf("Run = %v after Close", err)
		}
	})
}

func TestRun_ReturnsAtOnceWhenAStepBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := restored(t, Options{Interval: time.Hour, TolerableFailures: 100}, slow(0))
		done := make(chan error)
		go func() { done <- c.Run(t.Context()) }()
		synctest.Wait()
		err := c.Step(t.Context(), func() error { return errInjected })
		if _, ok := errors.AsType[*StepError](err); !ok || !errors.Is(err, errInjected) {
			t.Errorf("Step = %v", err)
		}
		if err := <-done; !errors.Is(err, errInjected) {
			t.Errorf("Run = %v", err)
		}
	})
}

func TestNextStart_Table(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	for _, c := range []struct{ start, end, interval, pause, want int }{
		{100, 101, 10, 0, 110},
		{100, 130, 10, 0, 130}, // due at 110, but the end comes first
		{100, 105, 10, 5, 110},
		{100, 106, 10, 5, 111},
		{100, 100, 10, 60, 160},
	} {
		got := nextStart(at(c.start), at(c.end), time.Duration(c.interval)*time.Second, time.Duration(c.pause)*time.Second)
		if c.end > c.start+c.interval && c.pause == 0 {
			if got.After(at(c.end)) {
				t.Errorf("%+v: %v, want at once", c, got.Unix())
			}
			continue
		}
		if !got.Equal(at(c.want)) {
			t.Errorf("%+v: %v", c, got.Unix())
		}
	}
}
