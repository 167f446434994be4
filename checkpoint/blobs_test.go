package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

// content returns n bytes that depend on seed.
func content(seed uint64, n int) []byte {
	b := make([]byte, n)
	var key [32]byte
	key[0] = byte(seed)
	_, _ = rand.NewChaCha8(key).Read(b) // cannot fail
	return b
}

func readBlob(ctx context.Context, s *DirStore, ref string) ([]byte, error) {
	in, err := s.OpenBlob(ctx, ref)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(in)
	return data, errors.Join(err, in.Close())
}

func TestBlobs_PutConcurrently_ShareOneFileAndOneSync(t *testing.T) {
	ctx := t.Context()
	s, p := newStore(t)
	_, err := s.Claim(ctx)
	must(t, err)
	b, err := s.Blobs(ctx, 7)
	must(t, err)
	syncs := 0
	p.Hook = func(_ int, what, _ string) error {
		if what == "sync" {
			syncs++
		}
		return nil
	}
	sizes := []int{0, 1, 5, copyBuffer - 1, copyBuffer, copyBuffer + 1, 3*copyBuffer + 17, 64}
	refs := make([]string, len(sizes))
	var wg sync.WaitGroup
	for i, size := range sizes {
		wg.Go(func() {
			var err error
			// One byte at a time, or in halves: a short read is not the end.
			r := iotest.HalfReader(bytes.NewReader(content(uint64(i), size)))
			refs[i], err = b.Put(ctx, r, int64(size))
			check(t, err)
		})
	}
	wg.Wait()
	must(t, b.Sync(ctx))
	must(t, b.Close())
	must(t, b.Close())
	if syncs != 1 {
		t.Errorf("%d syncs", syncs)
	}
	p.Disk().Crash(nil)
	for i, size := range sizes {
		if !strings.HasPrefix(refs[i], "00000000000000000007-1-1.blob:") {
			t.Errorf("ref %s is not in the one file", refs[i])
		}
		got, err := readBlob(ctx, s, refs[i])
		if err != nil || !bytes.Equal(got, content(uint64(i), size)) {
			t.Errorf("blob of %d bytes: got %d, %v", size, len(got), err)
		}
	}
	if _, err := b.Put(ctx, strings.NewReader(""), 0); !errors.Is(err, ErrClosed) {
		t.Errorf("Put after Close = %v", err)
	}
}

func TestBlobs_PutOfAnotherSizeThanAnnounced_Fails(t *testing.T) {
	ctx := t.Context()
	s, _ := newStore(t)
	_, err := s.Claim(ctx)
	must(t, err)
	b, err := s.Blobs(ctx, 1)
	must(t, err)
	for _, c := range []struct{ has, says int }{{0, 1}, {9, 10}, {11, 10}, {1, 0}, {copyBuffer, 2 * copyBuffer}, {2*copyBuffer + 1, 2 * copyBuffer}, {0, -1}} {
		if ref, err := b.Put(ctx, bytes.NewReader(make([]byte, c.has)), int64(c.says)); !errors.Is(err, ErrSize) {
			t.Errorf("%d bytes announced as %d: %q, %v", c.has, c.says, ref, err)
		}
	}
	if _, err := b.Put(ctx, iotest.ErrReader(errInjected), 10); !errors.Is(err, errInjected) {
		t.Errorf("a reader that fails: %v", err)
	}
	if _, err := b.Put(ctx, io.MultiReader(strings.NewReader("x"), iotest.ErrReader(errInjected)), 1); !errors.Is(err, errInjected) {
		t.Errorf("a reader that fails at its end: %v", err)
	}
	ref, err := b.Put(ctx, strings.NewReader("good"), 4)
	must(t, err)
	must(t, b.Sync(ctx))
	must(t, b.Close())
	if got, err := readBlob(ctx, s, ref); err != nil || string(got) != "good" {
		t.Errorf("after all those: %q, %v", got, err)
	}
}

func TestBlobs_EveryFlippedBit_IsNoticedAtTheEnd(t *testing.T) {
	ctx := t.Context()
	s, p := newStore(t)
	_, err := s.Claim(ctx)
	must(t, err)
	b, err := s.Blobs(ctx, 3)
	must(t, err)
	_, err = b.Put(ctx, strings.NewReader("before"), 6)
	must(t, err)
	ref, err := b.Put(ctx, strings.NewReader("the blob in question"), 20)
	must(t, err)
	must(t, b.Close())
	path := filepath.Join(s.path, blobsName, "00000000000000000003-1-1.blob")
	for i := range 26 {
		for bit := range 8 {
			flip := func(data []byte) []byte { data[i] ^= 1 << bit; return data }
			edit(t, p.Disk(), path, flip)
			_, err := readBlob(ctx, s, ref)
			d, damaged := errors.AsType[*DamagedError](err)
			if damaged != (i >= 6) {
				t.Fatalf("bit %d of byte %d: %v", bit, i, err)
			}
			if damaged && (d.File != path || d.ID != 3) {
				t.Fatalf("%v does not name the file", err)
			}
			edit(t, p.Disk(), path, flip)
		}
	}
	edit(t, p.Disk(), path, func(data []byte) []byte { return data[:25] })
	if _, err := s.OpenBlob(ctx, ref); err == nil {
		t.Error("a cut file was opened")
	}
	must(t, p.Remove(path))
	_, err = s.OpenBlob(ctx, ref)
	if _, damaged := errors.AsType[*DamagedError](err); !damaged {
		t.Errorf("a file that is gone: %v", err)
	}
}

func TestBlobs_Open_AcceptsOnlyRefsOfItsOwnSpelling(t *testing.T) {
	ctx := t.Context()
	s, _ := newStore(t)
	name := blobName(1, 1, 1)
	for _, ref := range []string{
		"", ":::", name, name + ":0:1", name + ":0:1:0000000g", name + ":0:1:0", name + ":+0:1:00000000", name + ":00:1:00000000",
		name + ":-1:1:00000000", name + ":0:-1:00000000", name + ":9223372036854775807:1:00000000", name + ":0:1:000000AB",
		"../" + name + ":0:1:00000000", "x/" + name + ":0:1:00000000", "1-1-1.blob:0:1:00000000", "LOCK:0:1:00000000", name + ":0:1:00000000:",
	} {
		if _, err := s.OpenBlob(ctx, ref); err == nil || !strings.Contains(err.Error(), "not a blob ref") {
			t.Errorf("%q: %v", ref, err)
		}
	}
}

func TestBlobs_Abort_DeletesWhatWasPut(t *testing.T) {
	ctx := t.Context()
	s, p := newStore(t)
	_, err := s.Claim(ctx)
	must(t, err)
	for name, end := range map[string]func(BlobWriter) error{
		"at once":     BlobWriter.Abort,
		"after close": func(b BlobWriter) error { return errors.Join(b.Close(), b.Abort(), b.Abort()) },
	} {
		b, err := s.Blobs(ctx, 1)
		must(t, err)
		_, err = b.Put(ctx, strings.NewReader("x"), 1)
		must(t, err)
		must(t, end(b))
		for _, path := range p.Disk().Paths() {
			if strings.HasSuffix(path, ".blob") {
				t.Errorf("%s: %s is left", name, path)
			}
		}
		if len(s.live) != 0 {
			t.Errorf("%s: still counted as live: %v", name, s.live)
		}
	}
	empty, err := s.Blobs(ctx, 1)
	must(t, err)
	must(t, errors.Join(empty.Sync(ctx), empty.Close(), empty.Abort()))
}

func TestBlobs_WithoutAClaim_AreRefused(t *testing.T) {
	s, _ := newStore(t)
	if _, err := s.Blobs(t.Context(), 1); !errors.Is(err, ErrUnclaimed) {
		t.Errorf("%v", err)
	}
}

func TestBlobs_OnTheRealFileSystem_AreReadBack(t *testing.T) {
	ctx := t.Context()
	s, epoch := claimed(t, t.TempDir())
	b, err := s.Blobs(ctx, 1)
	must(t, err)
	var wg sync.WaitGroup
	refs := make([]string, 8)
	for i := range refs {
		wg.Go(func() {
			var err error
			refs[i], err = b.Put(ctx, bytes.NewReader(content(uint64(i), 1<<20+i)), int64(1<<20+i))
			check(t, err)
		})
	}
	wg.Wait()
	must(t, b.Sync(ctx))
	must(t, b.Close())
	must(t, s.Save(ctx, manifest(1, epoch, refs...)))
	_, err = s.Latest(ctx)
	must(t, err)
	for i, ref := range refs {
		if got, err := readBlob(ctx, s, ref); err != nil || !bytes.Equal(got, content(uint64(i), 1<<20+i)) {
			t.Errorf("%s: %d bytes, %v", ref, len(got), err)
		}
	}
}

func FuzzParseRef(f *testing.F) {
	f.Add("00000000000000000042-7-3.blob:0:1048576:deadbeef")
	f.Add(fmt.Sprintf("%s:0:0:00000000", blobName(1<<62, 1<<62, 1)))
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseRef(text)
		if err == nil && (r.String() != text || strings.ContainsAny(r.file, `/\`) || r.offset < 0 || r.size < 0 || r.offset+r.size < 0) {
			t.Errorf("%q became %+v", text, r)
		}
	})
}
