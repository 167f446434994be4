package checkpoint

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// lockDirVariable makes the test binary a process that claims a directory and then waits to be killed.
const lockDirVariable = "CHECKPOINT_TEST_CLAIM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(lockDirVariable); dir != "" {
		s, err := OpenDir(dir, "job", "0-of-1")
		if err == nil {
			_, err = s.Claim(context.Background())
		}
		fmt.Println("claimed:", err)
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the parent is gone or kills us
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestLock_IsGivenBackWhenTheProcessIsKilled(t *testing.T) {
	dir := t.TempDir()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), lockDirVariable+"="+dir)
	stdin, err := child.StdinPipe()
	must(t, err)
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "claimed: <nil>\n" {
		t.Fatalf("child: %q, %v", line, err)
	}
	s, err := OpenDir(dir, "job", "0-of-1")
	must(t, err)
	_, err = s.Claim(t.Context())
	if !errors.Is(err, ErrEpochTaken) || !strings.Contains(err.Error(), "pid "+strconv.Itoa(child.Process.Pid)+" since ") {
		t.Errorf("Claim = %v, want the child's process id", err)
	}
	must(t, child.Process.Kill())
	_ = child.Wait() // "killed"
	if epoch, err := s.Claim(t.Context()); epoch != 2 || err != nil {
		t.Errorf("Claim after the kill = %d, %v", epoch, err)
	}
	must(t, s.Close())
}

func TestLock_OnAFileThatWasDeleted_DoesNotKeepOthersOut_ButTheEpochDoes(t *testing.T) {
	dir := t.TempDir()
	zombie, epoch := claimed(t, dir)
	must(t, os.Remove(filepath.Join(zombie.Path(), lockName)))
	heir, next := claimed(t, dir)
	if next != epoch+1 {
		t.Errorf("epoch %d after %d", next, epoch)
	}
	if err := zombie.Save(t.Context(), manifest(1, epoch)); !errors.Is(err, ErrFenced) {
		t.Errorf("Save of the zombie = %v", err)
	}
	must(t, heir.Save(t.Context(), manifest(1, next)))
}

func TestHolderText_OfAnythingInTheLockFile_IsOneShortLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "an unknown process",
		"pid 1 since x\nmore":    "pid 1 since x",
		"\x00\x01":               "",
		strings.Repeat("a", 999): strings.Repeat("a", 200),
	} {
		if got := holderText(strings.NewReader(in)); got != want {
			t.Errorf("%.20q: %q", in, got)
		}
	}
}
