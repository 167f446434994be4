package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func owner(t *testing.T, dir string) (epoch int64, live bool, holder string) {
	t.Helper()
	s, err := OpenDir(dir, "job", "0-of-1")
	must(t, err)
	epoch, err = s.NewestEpoch(t.Context())
	must(t, err)
	live, holder, err = s.Live(t.Context())
	must(t, err)
	must(t, s.Close())
	return epoch, live, holder
}

func TestOwner_FollowsTheRunsOfAStore(t *testing.T) {
	dir := t.TempDir()
	for run := range int64(3) {
		if epoch, live, _ := owner(t, dir); epoch != run || live {
			t.Errorf("before run %d: epoch %d, live %t", run+1, epoch, live)
		}
		s, claim := claimed(t, dir)
		epoch, live, holder := owner(t, dir)
		if epoch != claim || !live || !strings.HasPrefix(holder, fmt.Sprintf("pid %d since ", os.Getpid())) {
			t.Errorf("in run %d: epoch %d, live %t, holder %q", claim, epoch, live, holder)
		}
		if live, _, err := s.Live(t.Context()); !live || err != nil {
			t.Errorf("asked of the run's own store: live %t, %v", live, err)
		}
		must(t, s.Close())
	}
}

func TestOwner_LookingCreatesNothing(t *testing.T) {
	dir := t.TempDir()
	if epoch, live, _ := owner(t, dir); epoch != 0 || live {
		t.Errorf("epoch %d, live %t", epoch, live)
	}
	names, err := os.ReadDir(dir)
	must(t, err)
	if len(names) != 0 {
		t.Errorf("looking created %v", names)
	}
}

func TestOwner_TheEpochIsKnownFromWhatARunLeftBehindWithoutItsFile(t *testing.T) {
	dir := t.TempDir()
	s, epoch := claimed(t, dir)
	must(t, s.Save(t.Context(), manifest(1, epoch)))
	must(t, s.Close())
	must(t, os.Remove(filepath.Join(s.Path(), epochName(epoch))))
	if got, _, _ := owner(t, dir); got != epoch {
		t.Errorf("epoch %d, want %d", got, epoch)
	}
	must(t, os.WriteFile(filepath.Join(s.Path(), manifestName(1)), []byte("damaged"), 0o600))
	if _, err := s.NewestEpoch(t.Context()); err == nil {
		t.Error("an epoch was told without any evidence")
	} else if _, ok := errors.AsType[*DamagedError](err); !ok {
		t.Errorf("%v", err)
	}
}

func TestOwner_AskingAgainAndAgainLeavesTheLockFree(t *testing.T) {
	dir := t.TempDir()
	s, _ := claimed(t, dir)
	must(t, s.Close())
	for range 3 {
		if _, live, _ := owner(t, dir); live {
			t.Error("free lock reported as held")
		}
		s, _ = claimed(t, dir)
		must(t, s.Close())
	}
}

// lookedAt is a file system in which somebody else has the lock when it is asked for, as often as told.
type lookedAt struct {
	files
	times int
}

func (l *lookedAt) Lock(path, holder string) (io.Closer, error) {
	if l.times > 0 {
		l.times--
		return nil, &heldError{holder: "pid 7, which only looks"}
	}
	return l.files.Lock(path, holder)
}

func TestClaim_WaitsForSomebodyWhoOnlyLooks_AndForNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s, err := openDir(&lookedAt{osFiles{}, 3}, t.TempDir(), "job", "0-of-1")
		must(t, err)
		if _, err := s.Claim(t.Context()); err != nil || time.Since(start) != 30*time.Millisecond {
			t.Errorf("Claim = %v after %v", err, time.Since(start))
		}
		must(t, s.Close())

		s, err = openDir(&lookedAt{osFiles{}, 1000}, t.TempDir(), "job", "0-of-1")
		must(t, err)
		start = time.Now()
		_, err = s.Claim(t.Context())
		if !errors.Is(err, ErrEpochTaken) || !strings.Contains(err.Error(), "pid 7") || time.Since(start) > 100*time.Millisecond {
			t.Errorf("Claim = %v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond)
		defer cancel()
		if _, err = s.Claim(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Claim = %v", err)
		}
		must(t, s.Close())
	})
}

func TestFailuresError_SaysHowManyInPlainWords(t *testing.T) {
	for n, want := range map[int]string{
		1: "1 checkpoint failure (tolerable: 0): x",
		3: "3 checkpoint failures in a row (tolerable: 2), the last one: x",
	} {
		if got := (&FailuresError{Consecutive: n, Tolerable: n - 1, Err: errors.New("x")}).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
