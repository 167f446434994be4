package checkpoint

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sluice-go/sluice/checkpoint/crashfs"
)

// blobsLeft returns the blob files, without the directory.
func blobsLeft(m *crashfs.Disk) (names []string) {
	for _, path := range m.Paths() {
		if strings.HasSuffix(path, ".blob") {
			names = append(names, filepath.Base(path))
		}
	}
	slices.Sort(names)
	return names
}

// put writes one blob of checkpoint id and returns its ref and its file.
func put(t *testing.T, s *DirStore, id ID) (ref, file string, w BlobWriter) {
	t.Helper()
	w, err := s.Blobs(t.Context(), id)
	must(t, err)
	ref, err = w.Put(t.Context(), strings.NewReader("x"), 1)
	must(t, err)
	must(t, w.Sync(t.Context()))
	must(t, w.Close())
	file, _, _ = strings.Cut(ref, ":")
	return ref, file, w
}

func TestPrune_KeepsTheNewest_TheBlobsTheyName_AndWhatIsBeingWritten(t *testing.T) {
	ctx := t.Context()
	s, p := newStore(t)
	epoch, err := s.Claim(ctx)
	must(t, err)
	ref1, file1, _ := put(t, s, 1)
	must(t, s.Save(ctx, manifest(1, epoch, ref1)))
	ref2, file2, _ := put(t, s, 2)
	must(t, s.Save(ctx, manifest(2, epoch, ref2)))
	ref3, file3, _ := put(t, s, 3)
	must(t, s.Save(ctx, manifest(3, epoch, ref3, ref1))) // carries a blob of checkpoint 1
	_, file4, _ := put(t, s, 4)                          // not saved yet
	if err := s.Prune(ctx, 0); err == nil {
		t.Error("pruned to nothing")
	}
	must(t, s.Prune(ctx, 2))
	if ids, err := s.List(ctx); err != nil || !slices.Equal(ids, []ID{2, 3}) {
		t.Errorf("%v, %v", ids, err)
	}
	if got, want := blobsLeft(p.Disk()), []string{file1, file2, file3, file4}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	must(t, s.Prune(ctx, 1))
	if got, want := blobsLeft(p.Disk()), []string{file1, file3, file4}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	// An attempt at 4 that was given up without Abort stops being live when 4 is saved.
	ref4, again, _ := put(t, s, 4)
	must(t, s.Save(ctx, manifest(4, epoch, ref4)))
	must(t, s.Prune(ctx, 1))
	if got, want := blobsLeft(p.Disk()), []string{again}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPrune_RemovesWhatDeadRunsHaveLeft(t *testing.T) {
	ctx := t.Context()
	s, p := newStore(t)
	epoch, err := s.Claim(ctx)
	must(t, err)
	must(t, s.Save(ctx, manifest(1, epoch)))
	put(t, s, 2) // the run dies before it saves
	create := func(name string) {
		f, err := p.Create(filepath.Join(s.path, name))
		must(t, err)
		must(t, f.Close())
	}
	create(tempName(1, 50))
	create("README")
	create("chk-1.json")
	create("blobs/notes.txt")
	later := blobName(2, 9, 1)
	create("blobs/" + later)
	must(t, s.Close())
	p.Kill()

	p = p.Disk().Process()
	s, err = openDir(p, "base", "job", "0-of-1")
	must(t, err)
	epoch, err = s.Claim(ctx)
	must(t, err)
	if epoch != 10 {
		t.Fatalf("epoch %d, want one behind the greatest trace", epoch)
	}
	must(t, s.Prune(ctx, 1))
	var left []string
	for _, path := range p.Disk().Paths() {
		left = append(left, strings.TrimPrefix(path, "base/job/0-of-1/"))
	}
	slices.Sort(left)
	want := []string{"README", "blobs/notes.txt", "chk-00000000000000000001.json", "chk-1.json", "epoch-00000000000000000010"}
	if !slices.Equal(left, want) {
		t.Errorf("%q, want %q: what is not ours stays", left, want)
	}
}

func TestPrune_LeavesBlobsOfALaterEpochAlone(t *testing.T) {
	ctx := t.Context()
	s, p := newStore(t)
	_, err := s.Claim(ctx)
	must(t, err)
	f, err := p.Create(filepath.Join(s.path, blobsName, blobName(1, 2, 1)))
	must(t, err)
	must(t, f.Close())
	must(t, s.Prune(ctx, 1))
	if got := blobsLeft(p.Disk()); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

func TestPrune_WhenARetainedManifestCannotBeRead_TouchesNothing(t *testing.T) {
	ctx := t.Context()
	s, p := newStore(t)
	epoch, err := s.Claim(ctx)
	must(t, err)
	for id := ID(1); id <= 3; id++ {
		ref, _, _ := put(t, s, id)
		must(t, s.Save(ctx, manifest(id, epoch, ref)))
	}
	before := p.Disk().Paths()
	slices.Sort(before)
	edit(t, p.Disk(), s.manifestPath(2), func(data []byte) []byte { data[100] ^= 4; return data })
	if err := s.Prune(ctx, 2); err == nil || !strings.Contains(err.Error(), manifestName(2)) {
		t.Errorf("Prune = %v", err)
	}
	after := p.Disk().Paths()
	slices.Sort(after)
	if !slices.Equal(before, after) {
		t.Errorf("%q became %q", before, after)
	}
	must(t, s.Prune(ctx, 1)) // 2 is not retained now
}

func TestPrune_AManifestThatCannotBeDeleted_KeepsItsBlobs(t *testing.T) {
	ctx := t.Context()
	for _, failing := range []string{"remove", "syncdir"} {
		s, p := newStore(t)
		epoch, err := s.Claim(ctx)
		must(t, err)
		for id := ID(1); id <= 2; id++ {
			ref, _, _ := put(t, s, id)
			must(t, s.Save(ctx, manifest(id, epoch, ref)))
		}
		p.Hook = func(_ int, what, _ string) error {
			if what == failing {
				return syscall.EROFS
			}
			return nil
		}
		if err := s.Prune(ctx, 1); err == nil {
			t.Errorf("%s: no error", failing)
		}
		p.Hook = nil
		p.Disk().Crash(nil)
		for id := ID(1); id <= 2; id++ {
			if _, err := s.intact(id); err != nil {
				t.Errorf("%s: %v", failing, err)
			}
		}
	}
}
