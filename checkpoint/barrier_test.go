package checkpoint

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestBarrier_NoStepRunsDuringCapture_AndNoStepIsCutInTwo(t *testing.T) {
	// Each step adds to two counters; a capture must never see them differ. They are not atomic: the race detector watches too.
	var a, b [4]int
	var captures int
	p := &stub{name: "p"}
	p.capture = func(ID) (Snapshot, error) {
		captures++
		for i := range a {
			if a[i] != b[i] {
				t.Errorf("capture sees half a step: %d and %d", a[i], b[i])
			}
		}
		return &stubSnapshot{p}, nil
	}
	c := restored(t, Options{}, p)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range a {
		wg.Go(func() {
			for ctx.Err() == nil {
				err := c.Step(ctx, func() error {
					a[i]++
					b[i]++
					return nil
				})
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 20 {
		if _, err := c.Trigger(ctx); err != nil {
			t.Error(err)
		}
	}
	cancel()
	wg.Wait()
	must(t, c.Close(context.Background()))
	if captures != 20 {
		t.Errorf("%d captures", captures)
	}
}

func TestBarrier_WaitsForABlockedStep_AndHoldsBackNewOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		release := make(chan struct{})
		p := &stub{name: "p"}
		p.pending = func(pending bool) {
			if pending {
				log = append(log, "pending")
				go func() { time.Sleep(time.Second); close(release) }() // as a budget that grants credit
			} else {
				log = append(log, "over")
			}
		}
		p.capture = func(ID) (Snapshot, error) {
			log = append(log, "capture")
			return &stubSnapshot{p}, nil
		}
		c := restored(t, Options{}, p)
		var wg sync.WaitGroup
		wg.Go(func() {
			check(t, c.Step(t.Context(), func() error { <-release; log = append(log, "blocked step ends"); return nil }))
		})
		synctest.Wait()
		wg.Go(func() {
			if _, err := c.Trigger(t.Context()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			check(t, c.Step(t.Context(), func() error { log = append(log, "new step"); return nil }))
		})
		wg.Wait()
		want := []string{"pending", "blocked step ends", "capture", "over", "new step"}
		if len(log) != len(want) {
			t.Fatalf("%q, want %q", log, want)
		}
		for i := range want {
			if log[i] != want[i] {
				t.Fatalf("%q, want %q", log, want)
			}
		}
	})
}

func TestBarrier_ThatTimesOut_LetsStepsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pending atomic.Bool
		p := &stub{name: "p", pending: func(on bool) { pending.Store(on) }}
		c := restored(t, Options{Timeout: 3 * time.Second}, p)
		release := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { check(t, c.Step(t.Context(), func() error { <-release; return nil })) })
		synctest.Wait()
		begin := time.Now()
		_, err := c.Trigger(t.Context())
		if e, ok := errors.AsType[*Error](err); !ok || e.Op != "barrier" || !errors.Is(err, ErrTimeout) {
			t.Errorf("Trigger = %v", err)
		}
		if took := time.Since(begin); took != 3*time.Second || pending.Load() || p.discarded != 0 {
			t.Errorf("took %v, pending %v, discarded %d", took, pending.Load(), p.discarded)
		}
		must(t, c.Step(t.Context(), func() error { return nil }))
		close(release)
		wg.Wait()
		if id, err := c.Trigger(t.Context()); id != 1 || err != nil {
			t.Errorf("the next checkpoint = %d, %v", id, err)
		}
	})
}

func TestStep_WaitingForABarrier_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := restored(t, Options{}, &stub{name: "p"})
		release := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { check(t, c.Step(t.Context(), func() error { <-release; return nil })) })
		synctest.Wait()
		wg.Go(func() {
			if _, err := c.Trigger(t.Context()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.Step(ctx, func() error { t.Error("the step ran"); return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Step = %v", err)
		}
		close(release)
		wg.Wait()
	})
}

func TestStep_WithACancelledContext_DoesNothing(t *testing.T) {
	c := restored(t, Options{}, &stub{name: "p"})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInjected)
	err := c.Step(ctx, func() error { t.Error("the step ran"); return nil })
	if !errors.Is(err, errInjected) {
		t.Errorf("Step = %v, want the cause", err)
	}
	if _, err := c.Trigger(ctx); !errors.Is(err, errInjected) {
		t.Errorf("Trigger = %v, want the cause", err)
	}
}

func TestStep_BeforeRestore_IsRefused(t *testing.T) {
	s, _ := newStore(t)
	c, err := NewCoordinator(s, Options{}, &stub{name: "p"})
	must(t, err)
	if err := c.Step(t.Context(), func() error { return nil }); !errors.Is(err, ErrNotRestored) {
		t.Errorf("Step = %v", err)
	}
	if _, err := c.Trigger(t.Context()); !errors.Is(err, ErrNotRestored) {
		t.Errorf("Trigger = %v", err)
	}
	if err := c.Run(t.Context()); !errors.Is(err, ErrNotRestored) {
		t.Errorf("Run = %v", err)
	}
}

// Half a step must not get into a checkpoint: a row that was written but not counted would be written again after a restore.
func TestStep_ThatFails_EndsAllCheckpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := restored(t, Options{}, &stub{name: "p"})
		release := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			err := c.Step(t.Context(), func() error { <-release; return errInjected })
			if !errors.Is(err, errInjected) {
				t.Errorf("Step = %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() { // its barrier is already up when the step breaks off
			if _, err := c.Trigger(t.Context()); !errors.Is(err, errInjected) {
				t.Errorf("Trigger = %v, want the reason of the step", err)
			}
		})
		synctest.Wait()
		close(release)
		wg.Wait()
		if err := c.Step(t.Context(), func() error { return nil }); !errors.Is(err, errInjected) {
			t.Errorf("later Step = %v", err)
		}
		if _, err := c.Trigger(t.Context()); !errors.Is(err, errInjected) {
			t.Errorf("later Trigger = %v", err)
		}
		if s := c.Stats(); s.Durable != 0 {
			t.Error("a checkpoint of half a step was saved")
		}
	})
}

func TestStep_ThatFailsBeforeItDidAnything_ChangesNothing(t *testing.T) {
	c := restored(t, Options{}, &stub{name: "p"})
	if err := c.Step(t.Context(), func() error { return NoEffect(io.EOF) }); err != io.EOF {
		t.Errorf("Step = %v, want io.EOF itself", err)
	}
	if id, err := c.Trigger(t.Context()); id != 1 || err != nil {
		t.Errorf("Trigger = %d, %v", id, err)
	}
	if NoEffect(nil) != nil {
		t.Error("NoEffect(nil) is an error")
	}
}

func TestStep_ThatPanics_EndsAllCheckpointsAndKeepsNobodyWaiting(t *testing.T) {
	c := restored(t, Options{}, &stub{name: "p"})
	func() {
		defer func() {
			if recover() != "boom" {
				t.Error("the panic did not get through")
			}
		}()
		_ = c.Step(t.Context(), func() error { panic("boom") })
	}()
	if _, err := c.Trigger(t.Context()); err == nil {
		t.Error("a checkpoint of half a step")
	} else if _, ok := errors.AsType[*StepError](err); !ok {
		t.Errorf("Trigger = %v", err)
	}
	must(t, c.Close(t.Context()))
}

func TestClose_TurnsStepsAway_FinishesACheckpointPastItsBarrier_AndIsIdempotent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := restored(t, Options{}, slow(5))
		var wg sync.WaitGroup
		wg.Go(func() {
			if id, err := c.Trigger(t.Context()); id != 1 || err != nil {
				t.Errorf("Trigger = %d, %v", id, err)
			}
		})
		synctest.Wait()
		begin := time.Now()
		must(t, c.Close(t.Context()))
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("Close took %v, want the 5 s of the checkpoint", took)
		}
		wg.Wait()
		if err := c.Step(t.Context(), func() error { return nil }); !errors.Is(err, ErrClosed) {
			t.Errorf("Step = %v", err)
		}
		if _, err := c.Trigger(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("Trigger = %v", err)
		}
		if _, err := c.Restore(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("Restore = %v", err)
		}
		must(t, c.Close(t.Context()))
	})
}

func TestClose_WhoseContextEnds_AbandonsTheCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := slow(3600)
		c := restored(t, Options{Timeout: 2 * time.Hour}, p)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Trigger(t.Context()); !errors.Is(err, ErrClosed) {
				t.Errorf("Trigger = %v", err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		begin := time.Now()
		must(t, c.Close(ctx))
		if took := time.Since(begin); took != 2*time.Second || p.discarded != 1 {
			t.Errorf("Close took %v, %d discarded", took, p.discarded)
		}
		wg.Wait()
	})
}

func TestClose_SaysThatStepsAreStillRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := restored(t, Options{}, &stub{name: "p"})
		release := make(chan struct{})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { check(t, c.Step(t.Context(), func() error { <-release; return nil })) })
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.Close(ctx)
		if err == nil || err.Error() != "close: 3 steps still running: context deadline exceeded" {
			t.Errorf("Close = %v", err)
		}
		close(release)
		wg.Wait()
		must(t, c.Close(t.Context()))
	})
}

func BenchmarkStep(b *testing.B) {
	c := restored(b, Options{}, &stub{name: "p"})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	nothing := func() error { return nil }
	b.Run("one goroutine", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = c.Step(ctx, nothing)
		}
	})
	b.Run("many goroutines", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_ = c.Step(ctx, nothing)
			}
		})
	})
}
