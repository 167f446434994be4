package sim

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"hash/crc64"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/multipart"
)

// manifest is a durable checkpoint, decoded by this package's own reading of its formats.
type manifest struct {
	id, epoch int64
	next      int64 // of the source
	published int64 // rows that earlier records list, or that were given up
	backTo    int64 // the checkpoint that the job has gone back to, 0 if it has not
	files     []manifestFile
	refs      []string // of blobs
}

type manifestFile struct {
	handle multipart.Handle
	rows   int64
	staged int64
}

// sinkState mirrors the sink's state; the sink keeps it to itself.
type sinkState struct {
	Published struct{ Rows, SkippedRows int64 } `json:"published"`
	Skipped   []struct{ Rows int64 }            `json:"skipped"`
	Rewound   struct{ To int64 }                `json:"rewound"`
	Files     []struct {
		Handle []byte `json:"handle"`
		Rows   int64  `json:"rows"`
		Staged int64  `json:"staged"`
	} `json:"files"`
}

// checkDisk looks for checkpoints that have become durable with a file operation.
func (w *world) checkDisk(e *event) {
	if e.what == "syncdir" {
		w.scanManifests()
	}
}

// kept lists the files of all checkpoints that would survive the worst crash.
func (w *world) kept() []string {
	if w.plan.bucket {
		return w.store.Keys(stateBucket)
	}
	return w.disk.Durable()
}

// readKept reads one of them.
func (w *world) readKept(path string) ([]byte, error) {
	if !w.plan.bucket {
		return w.disk.ReadDurable(path)
	}
	o, there := w.store.Object(stateBucket, path)
	if !there {
		return nil, fs.ErrNotExist
	}
	return o.Data, nil
}

// scanManifests reads and checks the manifests that the worst crash would leave and that were not there before.
func (w *world) scanManifests() {
	for _, path := range slices.Backward(w.kept()) { // the newest first
		name, isManifest := strings.CutPrefix(path, chkDir+"/chk-")
		if !isManifest || w.manifest[path] != nil {
			continue
		}
		text, err := w.readKept(path)
		if err != nil {
			w.fail("read %s: %v", path, err)
			return
		}
		m, err := readManifest(text)
		if err == nil && strconv.FormatInt(m.id, 10) != strings.TrimLeft(strings.TrimSuffix(name, ".json"), "0") {
			err = fmt.Errorf("it is checkpoint %d", m.id)
		}
		if err != nil {
			w.fail("%s is durable, but %v", path, err)
			return
		}
		if err := w.checkBlobs(m); err != nil {
			if w.haunted() && w.newest != nil && m.id < w.newest.id && m.epoch < w.newest.epoch {
				w.stats.add("manifests of a replaced run that came when their number was free again")
				continue // nobody looks at it: there are newer ones
			}
			w.fail("%s is durable, but %v", path, err)
			return
		}
		w.manifest[path] = m
		if w.newest == nil || m.id > w.newest.id {
			w.newest = m
		}
		w.stats.add("durable checkpoints")
		w.checkParts(m)
	}
}

// readManifest decodes a manifest and checks that it adds up.
func readManifest(text []byte) (*manifest, error) {
	d, err := checkpoint.DecodeManifest(text)
	if err != nil {
		return nil, err
	}
	m := &manifest{id: int64(d.ID), epoch: d.Epoch}
	for _, s := range d.States {
		switch s.Name {
		case "source":
			var position struct{ Next int64 }
			if err := json.Unmarshal(s.State, &position); err != nil {
				return nil, err
			}
			m.next = position.Next
		case "sink":
			if err := m.readSink(s.State); err != nil {
				return nil, err
			}
		}
		m.refs = append(m.refs, s.Refs...)
		if s.Name == "sink" {
			if err := m.checkRefs(s.Refs); err != nil {
				return nil, err
			}
		}
	}
	rows := m.published
	for _, f := range m.files {
		rows += f.rows
	}
	if rows != m.next {
		return nil, fmt.Errorf("the source is at row %d, but %d rows are published or in files", m.next, rows)
	}
	return m, nil
}

// checkRefs checks that the manifest says of every piece's blob that it is needed.
func (m *manifest) checkRefs(refs []string) error {
	for _, f := range m.files {
		for _, p := range f.handle.Pieces {
			if !slices.Contains(refs, p.Ref) {
				return fmt.Errorf("blob %s of %s is not named", p.Ref, f.handle.Target.Key)
			}
		}
	}
	return nil
}

func (m *manifest) readSink(text []byte) error {
	var s sinkState
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	m.published, m.backTo = s.Published.Rows+s.Published.SkippedRows, s.Rewound.To
	for _, f := range s.Skipped {
		m.published += f.Rows
	}
	for _, f := range s.Files {
		file := manifestFile{rows: f.Rows, staged: f.Staged}
		if err := file.handle.UnmarshalBinary(f.Handle); err != nil {
			return err
		}
		if err := addsUp(file.handle); err != nil {
			return err
		}
		m.files = append(m.files, file)
	}
	return nil
}

// addsUp is the first invariant: offset = parts + pieces, numbered without a gap.
func addsUp(h multipart.Handle) error {
	var sum int64
	seen := map[int32]bool{}
	for _, p := range h.Parts {
		sum += p.Size
		seen[p.Number] = true
	}
	for _, p := range h.Pieces {
		sum += p.Size
		seen[p.Number] = true
	}
	if total := len(h.Parts) + len(h.Pieces); sum != h.Offset || len(seen) != total || total > 0 && !seen[int32(total)] {
		return fmt.Errorf("the handle of %s has %d bytes in parts %v and pieces %v, but its offset is %d", h.Target.Key, sum, h.Parts, h.Pieces, h.Offset)
	}
	return nil
}

// checkBlobs checks that the blobs of a checkpoint would survive a crash.
func (w *world) checkBlobs(m *manifest) error {
	for _, ref := range m.refs {
		if err := w.checkBlob(ref); err != nil {
			return err
		}
	}
	return nil
}

// checkBlob checks that the bytes of a blob would survive the worst crash. A ref is file:offset:size:crc32c in a directory and
// object:size:crc64nvme in a bucket.
func (w *world) checkBlob(ref string) error {
	var offset, size int64
	var sum uint64
	name, rest, _ := strings.Cut(ref, ":")
	numbers, format := []any{&offset, &size, &sum}, "%d:%d:%x"
	if w.plan.bucket {
		numbers, format = []any{&size, &sum}, "%d:%x"
	}
	if _, err := fmt.Sscanf(rest, format, numbers...); err != nil {
		return fmt.Errorf("blob ref %q: %w", ref, err)
	}
	data, err := w.readKept(chkDir + "/blobs/" + name)
	switch {
	case err != nil:
		return fmt.Errorf("blob %s is not durable: %w", ref, err)
	case offset+size > int64(len(data)):
		return fmt.Errorf("the bytes of blob %s are not durable", ref)
	}
	data = data[offset : offset+size]
	got := uint64(crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
	if w.plan.bucket {
		got = crc64.Checksum(data, crc64.MakeTable(0x9a6c9329ac4bc9b5)) // NVME, reflected
	}
	if got != sum {
		return fmt.Errorf("the bytes of blob %s are not durable", ref)
	}
	return nil
}

// checkParts checks that the parts which a durable manifest counts on are in the store, or the finished object is.
func (w *world) checkParts(m *manifest) {
	if w.outcome != proven || w.uploads.contested() {
		return
	}
	for _, f := range m.files {
		h := f.handle
		if h.UploadID == "" {
			continue
		}
		if _, there := w.store.Object(bucket, h.Target.Key); there {
			continue
		}
		for _, p := range h.Parts {
			if got := w.uploads.parts[partKey{h.UploadID, p.Number}]; got.size != p.Size || got.etag != p.ETag {
				w.fail("checkpoint %d counts on part %d of %s with etag %s, but the store has %+v", m.id, p.Number, h.Target.Key, p.ETag, got)
				return
			}
		}
	}
}
