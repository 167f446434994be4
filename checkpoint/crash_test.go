package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/checkpoint/crashfs"
	"github.com/sluice-go/sluice/checkpoint/internal/flow"
)

// script is a run of n checkpoints. It returns at the first error.
func script(ctx context.Context, p *crashfs.Process, w *flow.Output, n int) error {
	j, _, err := startJob(ctx, p, w, checkpoint.Options{Retain: 2}, nil)
	if err != nil {
		return err
	}
	for range n {
		if err := j.write(ctx, 2); err != nil {
			return err
		}
		if _, err := j.c.Trigger(ctx); err != nil {
			return err
		}
	}
	return errors.Join(j.c.Close(ctx), j.store.Close())
}

// recoverAndCheck restarts after a crash, runs on, and checks that every row was published once.
func recoverAndCheck(ctx context.Context, m *crashfs.Disk, w *flow.Output) error {
	newest, published := w.Newest()
	j, id, err := startJob(ctx, m.Process(), w, checkpoint.Options{Retain: 2}, nil)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if id < newest || id > newest+1 || id < published {
		return fmt.Errorf("restored checkpoint %d where %d was saved and %d was published", id, newest, published)
	}
	if err := j.write(ctx, 2); err != nil {
		return err
	}
	if err := j.finish(ctx); err != nil {
		return err
	}
	return j.check()
}

// eachCrash runs the script once per file operation, with the process dying just before that operation, and then what. It
// returns the first violation.
func eachCrash(t *testing.T, noSync func(dir bool, path string) bool,
	then func(ctx context.Context, m *crashfs.Disk, w *flow.Output, op int) error,
) error {
	t.Helper()
	ctx := t.Context()
	for op, last := 0, false; !last; op++ {
		m, w := crashfs.New("base"), flow.NewOutput()
		m.NoSync = noSync
		p := m.Process()
		p.Hook = func(n int, _, _ string) error {
			if n == op {
				p.Kill()
			}
			return nil
		}
		err := script(ctx, p, w, 3)
		last = p.Ops() <= op
		if last && err != nil {
			t.Fatalf("the script does not even work without a crash: %v", err)
		}
		if err := then(ctx, m, w, op); err != nil {
			return fmt.Errorf("crash before operation %d: %w", op, err)
		}
	}
	return nil
}

func TestCrash_OfTheMachineAtEveryFileOperation_LosesNoSavedCheckpoint(t *testing.T) {
	t.Parallel()
	if err := eachCrash(t, nil, func(ctx context.Context, m *crashfs.Disk, w *flow.Output, _ int) error {
		m.Crash(nil)
		return recoverAndCheck(ctx, m, w)
	}); err != nil {
		t.Error(err)
	}
}

func TestCrash_OfTheMachineWithSomeUnsyncedDataKept_LosesNoSavedCheckpoint(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		if err := eachCrash(t, nil, func(ctx context.Context, m *crashfs.Disk, w *flow.Output, op int) error {
			m.Crash(rand.New(rand.NewPCG(seed, uint64(op))))
			return recoverAndCheck(ctx, m, w)
		}); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

func TestCrash_OfTheProcessOnly_LosesNoSavedCheckpoint(t *testing.T) {
	t.Parallel()
	if err := eachCrash(t, nil, func(ctx context.Context, m *crashfs.Disk, w *flow.Output, _ int) error {
		return recoverAndCheck(ctx, m, w)
	}); err != nil {
		t.Error(err)
	}
}

// A killed process leaves a manifest that is visible but not synced. The next run publishes what is in it, so it must not be lost
// by a crash of the machine after that: Claim has to sync what it finds.
func TestCrash_OfTheMachineAfterARestart_LosesNothingThatTheRestartPublished(t *testing.T) {
	t.Parallel()
	if err := eachCrash(t, nil, func(ctx context.Context, m *crashfs.Disk, w *flow.Output, _ int) error {
		p := m.Process()
		if _, _, err := startJob(ctx, p, w, checkpoint.Options{Retain: 2}, nil); err != nil {
			return err
		}
		p.Kill()
		m.Crash(nil)
		return recoverAndCheck(ctx, m, w)
	}); err != nil {
		t.Error(err)
	}
}

// A crash in the restart itself, at each of its operations, for each state of the first run that matters.
func TestCrash_DuringTheRestart_LosesNoSavedCheckpoint(t *testing.T) {
	t.Parallel()
	for first := 0; first < 120; first += 23 {
		for second := 0; ; second++ {
			m, w := crashfs.New("base"), flow.NewOutput()
			p := m.Process()
			p.Hook = func(n int, _, _ string) error {
				if n == first {
					p.Kill()
				}
				return nil
			}
			_ = script(t.Context(), p, w, 3)
			m.Crash(nil)
			q := m.Process()
			q.Hook = func(n int, _, _ string) error {
				if n == second {
					q.Kill()
				}
				return nil
			}
			_, _, err := startJob(t.Context(), q, w, checkpoint.Options{Retain: 2}, nil)
			m.Crash(nil)
			if err := recoverAndCheck(t.Context(), m, w); err != nil {
				t.Fatalf("crash before operation %d, then before operation %d of the restart: %v", first, second, err)
			}
			if err == nil {
				break
			}
		}
	}
}

// The crash tests are only worth something if they notice a sync that is not there.
func TestCrash_TestsNoticeEachMissingSync(t *testing.T) {
	t.Parallel()
	restartThenCrash := func(ctx context.Context, m *crashfs.Disk, w *flow.Output, _ int) error {
		p := m.Process()
		if _, _, err := startJob(ctx, p, w, checkpoint.Options{Retain: 2}, nil); err != nil {
			return err
		}
		p.Kill()
		m.Crash(nil)
		return recoverAndCheck(ctx, m, w)
	}
	for name, noSync := range map[string]func(dir bool, path string) bool{
		"all files":                 func(dir bool, _ string) bool { return !dir },
		"all directories":           func(dir bool, _ string) bool { return dir },
		"manifests":                 func(dir bool, path string) bool { return !dir && strings.Contains(path, ".tmp-") },
		"blobs":                     func(dir bool, path string) bool { return !dir && strings.HasSuffix(path, ".blob") },
		"the checkpoint directory":  func(dir bool, path string) bool { return dir && strings.HasSuffix(path, "0-of-1") },
		"the blobs directory":       func(dir bool, path string) bool { return dir && strings.HasSuffix(path, "blobs") },
		"the directory of the job":  func(dir bool, path string) bool { return dir && strings.HasSuffix(path, "job-1") },
		"the directory of all jobs": func(dir bool, path string) bool { return dir && path == "base" },
	} {
		t.Run(name, func(t *testing.T) {
			if eachCrash(t, noSync, restartThenCrash) == nil {
				t.Error("no crash lost anything")
			}
		})
	}
}

func TestFault_AtEveryFileOperation_CostsAtMostARestart(t *testing.T) {
	t.Parallel()
	for i, errno := range []error{syscall.ENOSPC, syscall.EIO, syscall.EROFS} {
		for op, last := i, false; !last; op += 3 { // each operation fails once
			m, w := crashfs.New("base"), flow.NewOutput()
			p := m.Process()
			var at string
			p.Hook = func(n int, what, path string) error {
				if n == op {
					at = what + " " + path
					return errno
				}
				return nil
			}
			if err := faultyRun(t.Context(), p, w, errno); err != nil {
				t.Fatalf("%v in operation %d, %s: %v", errno, op, at, err)
			}
			last = p.Ops() <= op
		}
	}
}

// faultyRun restarts whenever the run cannot go on, and checks the output in the end. An error must be reported as what it was.
func faultyRun(ctx context.Context, p *crashfs.Process, w *flow.Output, errno error) error {
	var j *job
	var err error
	for trigger := 0; trigger < 3; {
		if j == nil {
			if j, _, err = startJob(ctx, p, w, checkpoint.Options{Retain: 1}, nil); err != nil {
				if !errors.Is(err, errno) {
					return fmt.Errorf("restore: %w", err)
				}
				if j != nil {
					if err := j.store.Close(); err != nil {
						return err
					}
				}
				j = nil
				continue
			}
		}
		if err := j.write(ctx, 2); err != nil {
			return err
		}
		trigger++
		if _, err := j.c.Trigger(ctx); err != nil {
			if !errors.Is(err, errno) {
				return fmt.Errorf("trigger: %w", err)
			}
			if errors.Is(err, checkpoint.ErrAmbiguous) || errors.Is(err, checkpoint.ErrFenced) {
				if err := j.store.Close(); err != nil {
					return err
				}
				j = nil
			}
		}
	}
	if j == nil {
		if j, _, err = startJob(ctx, p, w, checkpoint.Options{Retain: 1}, nil); err != nil {
			return err
		}
	}
	if err := j.finish(ctx); err != nil && !errors.Is(err, errno) {
		return err
	} else if err != nil {
		if err := j.store.Close(); err != nil {
			return err
		}
		if j, _, err = startJob(ctx, p, w, checkpoint.Options{Retain: 1}, nil); err != nil {
			return err
		}
		if err := j.finish(ctx); err != nil {
			return err
		}
	}
	return j.check()
}
