package crashfs

import (
	"io"
	"slices"
)

// file is an open file of a process.
type file struct {
	p    *Process
	n    *node
	path string
}

var _ File = (*file)(nil)

func (f *file) WriteAt(b []byte, off int64) (int, error) {
	if err := f.p.enter("write", f.path); err != nil {
		return 0, err
	}
	defer f.p.disk.mu.Unlock()
	if grow := off + int64(len(b)) - int64(len(f.n.data)); grow > 0 {
		f.n.data = append(f.n.data, make([]byte, grow)...)
	}
	return copy(f.n.data[off:], b), nil
}

func (f *file) ReadAt(b []byte, off int64) (int, error) {
	if err := f.p.enter("read", f.path); err != nil {
		return 0, err
	}
	defer f.p.disk.mu.Unlock()
	if off >= int64(len(f.n.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.n.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) Size() (int64, error) {
	if err := f.p.enter("size", f.path); err != nil {
		return 0, err
	}
	defer f.p.disk.mu.Unlock()
	return int64(len(f.n.data)), nil
}

func (f *file) Sync() error {
	if err := f.p.enter("sync", f.path); err != nil {
		return err
	}
	defer f.p.disk.mu.Unlock()
	if f.p.disk.NoSync == nil || !f.p.disk.NoSync(false, f.path) {
		f.n.synced = slices.Clone(f.n.data)
	}
	return nil
}

func (f *file) Close() error {
	if err := f.p.enter("close", f.path); err != nil {
		return err
	}
	f.p.disk.mu.Unlock()
	return nil
}
