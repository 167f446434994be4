package checkpoint

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestLatest_OfADamagedNewest_NamesTheNewestIntactOlderOne_AndDoesNotFallBack(t *testing.T) {
	ctx := t.Context()
	s, p := newStore(t)
	epoch, err := s.Claim(ctx)
	must(t, err)
	var blobs []string
	for id := ID(1); id <= 4; id++ {
		b, err := s.Blobs(ctx, id)
		must(t, err)
		ref, err := b.Put(ctx, strings.NewReader("tail"), 4)
		must(t, err)
		must(t, b.Sync(ctx))
		must(t, b.Close())
		must(t, s.Save(ctx, manifest(id, epoch, ref)))
		name, _, _ := strings.Cut(ref, ":")
		blobs = append(blobs, filepath.Join(s.path, blobsName, name))
	}
	flip := func(data []byte) []byte { data[len(data)/2] ^= 1; return data }
	expect := func(what, file string, older ID) {
		t.Helper()
		_, err := s.Latest(ctx)
		d, ok := errors.AsType[*DamagedError](err)
		if !ok || d.ID != 4 || d.Older != older || d.File != file {
			t.Errorf("%s: %v, want %s and %d as the older one", what, err, file, older)
		}
	}
	edit(t, p.Disk(), blobs[3], func(data []byte) []byte { return data[:3] })
	expect("blob cut", blobs[3], 3)
	must(t, p.Remove(blobs[3]))
	expect("blob gone", blobs[3], 3)
	edit(t, p.Disk(), s.manifestPath(4), flip)
	expect("manifest flipped", s.manifestPath(4), 3)
	must(t, p.Remove(blobs[2]))
	expect("blob of the older one gone too", s.manifestPath(4), 2)
	edit(t, p.Disk(), s.manifestPath(2), func([]byte) []byte { return nil })
	expect("manifest empty", s.manifestPath(4), 1)
	edit(t, p.Disk(), s.manifestPath(1), flip)
	expect("nothing intact", s.manifestPath(4), 0)
	if _, err := s.Load(ctx, 3); err != nil {
		t.Errorf("Load does not look at blobs: %v", err)
	}
	if _, err := s.Load(ctx, 9); !errors.Is(err, ErrNoCheckpoint) {
		t.Errorf("Load of nothing = %v", err)
	}
	// A manifest under the name of another one is damage as well.
	edit(t, p.Disk(), s.manifestPath(4), func([]byte) []byte {
		m := manifest(3, epoch)
		m.Job, m.Shard = "job", "0-of-1"
		data, err := m.Encode()
		must(t, err)
		return data
	})
	expect("manifest of another id", s.manifestPath(4), 0)
}

func TestLatest_OfADiskThatDoesNotAnswer_IsNotCalledDamage(t *testing.T) {
	ctx := t.Context()
	s, p := newStore(t)
	epoch, err := s.Claim(ctx)
	must(t, err)
	must(t, s.Save(ctx, manifest(1, epoch)))
	p.Hook = func(_ int, what, _ string) error {
		if what == "read" {
			return syscall.EIO
		}
		return nil
	}
	_, err = s.Latest(ctx)
	if _, damaged := errors.AsType[*DamagedError](err); damaged || !errors.Is(err, syscall.EIO) {
		t.Errorf("Latest = %v", err)
	}
}

// A reader beside a live run: what it has listed may be pruned before it is read.
func TestLatest_BesideARunThatPrunes_FindsTheNewerOne(t *testing.T) {
	ctx := t.Context()
	s, p := newStore(t)
	epoch, err := s.Claim(ctx)
	must(t, err)
	must(t, s.Save(ctx, manifest(1, epoch)))
	q := p.Disk().Process()
	reader, err := openDir(q, "base", "job", "0-of-1")
	must(t, err)
	q.Hook = func(_ int, what, path string) error {
		if what == "open" && strings.Contains(path, manifestName(1)) {
			must(t, s.Save(ctx, manifest(2, epoch)))
			must(t, s.Prune(ctx, 1))
		}
		return nil
	}
	if m, err := reader.Latest(ctx); err != nil || m.ID != 2 {
		t.Errorf("Latest = %d, %v", m.ID, err)
	}
}
