package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-go/sluice/checkpoint/crashfs"
)

// manifest returns the smallest manifest that can be saved.
func manifest(id ID, epoch int64, refs ...string) Manifest {
	return Manifest{ID: id, Epoch: epoch, CreatedAt: time.Now(), States: []NamedState{{Name: "p", State: []byte("s"), Refs: refs}}}
}

// claimed returns a store on the real file system that has been claimed.
func claimed(t testing.TB, dir string) (*DirStore, int64) {
	t.Helper()
	s, err := OpenDir(dir, "job", "0-of-1")
	must(t, err)
	epoch, err := s.Claim(context.Background())
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s, epoch
}

func TestOpenDir_AcceptsOnlyNamesThatAreOneHarmlessSegment(t *testing.T) {
	for _, name := range []string{"a", "job-1", "0-of-16", "A.b_c-9", strings.Repeat("x", 128)} {
		if _, err := OpenDir(t.TempDir(), name, name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", ".hidden", "a..b", "a/b", `a\b`, "a b", "ä", "a:b", "a\n", strings.Repeat("x", 129)} {
		if _, err := OpenDir(t.TempDir(), name, "0-of-1"); err == nil || !strings.Contains(err.Error(), "job name") {
			t.Errorf("job %q: %v", name, err)
		}
		if _, err := OpenDir(t.TempDir(), "job", name); err == nil || !strings.Contains(err.Error(), "shard name") {
			t.Errorf("shard %q: %v", name, err)
		}
	}
	if _, err := OpenDir("", "job", "0-of-1"); err == nil {
		t.Error("an empty directory name was accepted")
	}
}

func TestOpenDir_CreatesNothing_AndAnAbsentDirectoryHasNoCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there")
	s, err := OpenDir(dir, "job", "0-of-1")
	must(t, err)
	if _, err := s.Latest(t.Context()); !errors.Is(err, ErrNoCheckpoint) {
		t.Errorf("Latest = %v", err)
	}
	if ids, err := s.List(t.Context()); err != nil || len(ids) != 0 {
		t.Errorf("List = %v, %v", ids, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestOpenDir_OfSomethingThatIsNoReadableDirectory_SaysSo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if _, err := OpenDir(file, "job", "0-of-1"); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("%v", err)
	}
	p := crashfs.New("base").Process()
	p.Hook = func(int, string, string) error { return syscall.EACCES }
	if _, err := openDir(p, "base", "job", "0-of-1"); !errors.Is(err, syscall.EACCES) || !strings.Contains(err.Error(), "base/job/0-of-1") {
		t.Errorf("%v", err)
	}
}

func TestClaim_GivesGrowingEpochs_AlsoWhenTheEpochFileIsGone(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	for want := int64(1); want <= 3; want++ {
		s, epoch := claimed(t, dir)
		if epoch != want {
			t.Errorf("epoch %d, want %d", epoch, want)
		}
		must(t, s.Save(ctx, manifest(ID(want), epoch)))
		must(t, s.Close())
	}
	must(t, os.Remove(filepath.Join(dir, "job", "0-of-1", epochName(3))))
	s, epoch := claimed(t, dir)
	if epoch != 4 {
		t.Errorf("epoch %d: those of the manifests must count", epoch)
	}
	b, err := s.Blobs(ctx, 4)
	must(t, err)
	_, err = b.Put(ctx, strings.NewReader("x"), 1)
	must(t, err)
	must(t, b.Close())
	must(t, s.Close())
	must(t, os.Remove(filepath.Join(dir, "job", "0-of-1", epochName(4))))
	if _, epoch := claimed(t, dir); epoch != 5 {
		t.Errorf("epoch %d: those of the blobs must count", epoch)
	}
}

func TestClaim_OfAStoreThatALiveRunHolds_SaysWho(t *testing.T) {
	dir := t.TempDir()
	first, _ := claimed(t, dir)
	second, err := OpenDir(dir, "job", "0-of-1")
	must(t, err)
	_, err = second.Claim(t.Context())
	taken, ok := errors.AsType[*TakenError](err)
	if !ok || !errors.Is(err, ErrEpochTaken) {
		t.Fatalf("Claim = %v", err)
	}
	if want := fmt.Sprintf("pid %d since ", os.Getpid()); !strings.Contains(taken.Holder, want) || !strings.Contains(err.Error(), first.Path()) {
		t.Errorf("%v: want the process and the directory", err)
	}
	// Another shard of the job is somebody else's.
	other, err := OpenDir(dir, "job", "1-of-2")
	must(t, err)
	_, err = other.Claim(t.Context())
	must(t, err)
	must(t, other.Close())
	must(t, first.Close())
	must(t, first.Close())
	if epoch, err := second.Claim(t.Context()); epoch != 2 || err != nil {
		t.Errorf("Claim after Close = %d, %v", epoch, err)
	}
	must(t, second.Close())
}

func TestClaim_ByTwoRunsAtTheSameTimeWithoutAWorkingLock_GivesTheEpochToOne(t *testing.T) {
	m := crashfs.New("base")
	m.LockBroken = true
	p := m.Process()
	var other int64
	p.Hook = func(_ int, what, path string) error {
		if what == "create" && strings.Contains(path, "epoch-") && other == 0 {
			s, err := openDir(m.Process(), "base", "job", "0-of-1")
			must(t, err)
			other, err = s.Claim(t.Context())
			must(t, err)
		}
		return nil
	}
	s, err := openDir(p, "base", "job", "0-of-1")
	must(t, err)
	if _, err := s.Claim(t.Context()); other != 1 || !errors.Is(err, ErrEpochTaken) {
		t.Errorf("Claim = %v, while the other run has epoch %d", err, other)
	}
}

func TestSave_NeedsAClaimAndTheNextNumber(t *testing.T) {
	ctx := t.Context()
	s, p := newStore(t)
	if err := s.Save(ctx, manifest(1, 1)); !errors.Is(err, ErrUnclaimed) {
		t.Errorf("before the claim: %v", err)
	}
	epoch, err := s.Claim(ctx)
	must(t, err)
	must(t, s.Save(ctx, manifest(1, epoch)))
	for _, id := range []ID{1, 3} {
		if err := s.Save(ctx, manifest(id, epoch)); !errors.Is(err, ErrFenced) {
			t.Errorf("id %d after 1: %v", id, err)
		}
	}
	if err := s.Save(ctx, manifest(2, epoch-1)); !errors.Is(err, ErrFenced) {
		t.Errorf("an older epoch: %v", err)
	}
	if err := s.Save(ctx, manifest(2, epoch, "../../etc/passwd:0:1:00000000")); err == nil {
		t.Error("a ref to anywhere was saved")
	}
	if err := s.Save(ctx, manifest(2, epoch, blobName(2, 1, 9)+":0:1:00000000")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a ref to nothing was saved: %v", err)
	}
	wrong := manifest(2, epoch)
	wrong.Job, wrong.Shard = "other", "0-of-1"
	if err := s.Save(ctx, wrong); err == nil {
		t.Error("a manifest of another job was saved")
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Save(cancelled, manifest(2, epoch)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	must(t, s.Save(ctx, manifest(2, epoch)))
	must(t, s.Close())
	if err := s.Save(ctx, manifest(3, epoch)); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	for _, name := range p.Disk().Paths() {
		if strings.Contains(name, ".tmp-") {
			t.Errorf("%s is left", name)
		}
	}
}

func TestSave_WhenTheEpochFileOfALaterRunAppears_IsFenced(t *testing.T) {
	ctx := t.Context()
	s, p := newStore(t)
	epoch, err := s.Claim(ctx)
	must(t, err)
	f, err := p.Create(filepath.Join("base", "job", "0-of-1", epochName(epoch+1)))
	must(t, err)
	must(t, f.Close())
	if err := s.Save(ctx, manifest(1, epoch)); !errors.Is(err, ErrFenced) {
		t.Errorf("Save = %v", err)
	}
	if err := s.Prune(ctx, 1); !errors.Is(err, ErrFenced) {
		t.Errorf("Prune = %v", err)
	}
	if ids, err := s.List(ctx); err != nil || len(ids) != 0 {
		t.Errorf("List = %v, %v", ids, err)
	}
}

func TestSave_WhoseDirectorySyncFails_IsAmbiguous(t *testing.T) {
	ctx := t.Context()
	s, p := newStore(t)
	epoch, err := s.Claim(ctx)
	must(t, err)
	p.Hook = func(_ int, what, _ string) error {
		if what == "syncdir" {
			return syscall.EIO
		}
		return nil
	}
	if err := s.Save(ctx, manifest(1, epoch)); !errors.Is(err, ErrAmbiguous) || !errors.Is(err, syscall.EIO) {
		t.Errorf("Save = %v", err)
	}
	p.Hook = func(_ int, what, _ string) error {
		if what == "link" {
			return syscall.ENOSPC
		}
		return nil
	}
	s, p2 := newStore(t)
	epoch, err = s.Claim(ctx)
	must(t, err)
	p2.Hook = p.Hook
	if err := s.Save(ctx, manifest(1, epoch)); errors.Is(err, ErrAmbiguous) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Save = %v, but it is certain that there is no manifest", err)
	}
	p2.Hook = nil
	must(t, s.Save(ctx, manifest(1, epoch)))
}

func TestSave_OnAFileSystemWithoutHardLinks_Renames(t *testing.T) {
	ctx := t.Context()
	s, p := newStore(t)
	p.Disk().NoLinks = true
	epoch, err := s.Claim(ctx)
	must(t, err)
	must(t, s.Save(ctx, manifest(1, epoch)))
	p.Disk().Crash(nil)
	m, err := s.Latest(ctx)
	if err != nil || m.ID != 1 {
		t.Errorf("Latest = %+v, %v", m, err)
	}
	f, err := p.Create(filepath.Join("base", "job", "0-of-1", tempName(1, 99)))
	must(t, err)
	must(t, f.Close())
	err = s.linkNew(filepath.Join(s.path, tempName(1, 99)), s.manifestPath(1))
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("renamed over checkpoint 1: %v", err)
	}
}

func TestDirStore_OnTheRealFileSystem_IsPrivateAndTidy(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	s, epoch := claimed(t, filepath.Join(dir, "new", "deep"))
	for id := ID(1); id <= 3; id++ {
		b, err := s.Blobs(ctx, id)
		must(t, err)
		ref, err := b.Put(ctx, strings.NewReader("tail"), 4)
		must(t, err)
		must(t, b.Sync(ctx))
		must(t, b.Close())
		must(t, s.Save(ctx, manifest(id, epoch, ref)))
		must(t, s.Prune(ctx, 2))
	}
	var names []string
	must(t, filepath.WalkDir(s.Path(), func(path string, e fs.DirEntry, err error) error {
		must(t, err)
		if !e.IsDir() {
			rel, _ := filepath.Rel(s.Path(), path)
			names = append(names, filepath.ToSlash(rel))
		}
		if info, err := e.Info(); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0 {
			t.Errorf("%s: others may %v, %v", path, info.Mode(), err)
		}
		return nil
	}))
	want := []string{
		"LOCK", "blobs/00000000000000000002-1-3.blob", "blobs/00000000000000000003-1-5.blob",
		"chk-00000000000000000002.json", "chk-00000000000000000003.json", "epoch-00000000000000000001",
	}
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}
