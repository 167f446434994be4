package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
