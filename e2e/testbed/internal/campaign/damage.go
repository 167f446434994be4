package campaign

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// blobRegion is a part of a blob file that a manifest names.
type blobRegion struct {
	file         string
	offset, size int64
}

// regions reads the blobs that a manifest names: a header line, then JSON with refs of the form file:offset:size:checksum.
func regions(manifest []byte) ([]blobRegion, error) {
	_, body, _ := bytes.Cut(manifest, []byte("\n"))
	var m struct {
		States []struct {
			Refs []string `json:"refs"`
		} `json:"states"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	var all []blobRegion
	for _, s := range m.States {
		for _, ref := range s.Refs {
			parts := strings.Split(ref, ":")
			if len(parts) != 4 {
				return nil, fmt.Errorf("read manifest: ref %q", ref)
			}
			offset, err := strconv.ParseInt(parts[1], 10, 64)
			size, err2 := strconv.ParseInt(parts[2], 10, 64)
			if err := errors.Join(err, err2); err != nil {
				return nil, fmt.Errorf("read manifest: ref %q: %w", ref, err)
			}
			if size > 0 {
				all = append(all, blobRegion{file: parts[0], offset: offset, size: size})
			}
		}
	}
	return all, nil
}

// newestFile returns the last file that matches, by name; empty when there is none.
func newestFile(dir, pattern string) string {
	names, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are well formed
	if len(names) == 0 {
		return ""
	}
	return slices.Max(names)
}

// target is a file to be damaged, and where.
type target struct {
	path     string
	from, to int64 // the bytes that matter
}

// target finds the file that a mishap is about. ok is false when the job has none.
func (j *job) target(m mishap, fraction float64) (t target, ok bool, err error) {
	dir := j.shardDir()
	manifest := newestFile(dir, "chk-*.json")
	switch m {
	case cutManifest, flipManifest:
		t.path = manifest
	case cutEpoch, flipEpoch:
		t.path = newestFile(dir, "epoch-*")
	case cutLock, flipLock:
		t.path = newestFile(dir, "LOCK")
	case cutBlob, flipBlob:
		if manifest == "" {
			return t, false, nil
		}
		text, err := os.ReadFile(manifest)
		if err != nil {
			return t, false, err
		}
		all, err := regions(text)
		if err != nil || len(all) == 0 {
			return t, false, err
		}
		r := all[int(fraction*float64(len(all)))]
		return target{path: filepath.Join(dir, "blobs", r.file), from: r.offset, to: r.offset + r.size}, true, nil
	}
	if t.path == "" {
		return t, false, nil
	}
	info, err := os.Stat(t.path)
	if err != nil {
		return t, false, err
	}
	t.to = info.Size()
	return t, t.to > 0, nil
}

// damaged returns the file's text as the mishap leaves it.
func (t target) damaged(text []byte, m mishap, fraction float64) []byte {
	at := t.from + int64(fraction*float64(t.to-t.from))
	text = slices.Clone(text)
	switch m {
	case cutManifest, cutBlob, cutEpoch, cutLock:
		return text[:at]
	}
	text[at] ^= 1 << (at % 8)
	return text
}

// startDamaged starts a process on a damaged file. It has to name the file and to publish nothing. Then the file is what it was.
func (j *job) startDamaged(ctx context.Context, p lifePlan) error {
	t, ok, err := j.target(p.mishap, p.fraction)
	if err != nil || !ok {
		return err
	}
	info, err := os.Stat(t.path)
	if err != nil {
		return err
	}
	whole, err := os.ReadFile(t.path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(t.path, t.damaged(whole, p.mishap, p.fraction), info.Mode()); err != nil {
		return err
	}
	j.tally.Mishaps[p.mishap]++
	err = j.refused(ctx, p, j.harmless(p.mishap), filepath.Base(t.path))
	if _, gone := os.Stat(t.path); errors.Is(gone, fs.ErrNotExist) {
		return err
	}
	return errors.Join(err, os.WriteFile(t.path, whole, info.Mode()))
}

// harmless says whether a job may go on all the same: nothing depends on what is in the file of an epoch or a lock, only on that
// they are there; and the bytes of files that a commit record lists are not needed any more.
func (j *job) harmless(m mishap) bool {
	switch m {
	case cutEpoch, flipEpoch, cutLock, flipLock:
		return true
	case flipBlob:
		id := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(newestFile(j.shardDir(), "chk-*.json")), "chk-"), ".json")
		_, err := os.Stat(filepath.Join(j.c.bucket(), j.p.name(), "_sluice", j.p.name(), "0-of-1", "record-"+id+".json"))
		return err == nil
	}
	return false
}
