package checkpoint

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// memFS is a file system that forgets, in a crash, whatever was not synced: the content of files and the names in directories,
// each on its own. It is the worst that a file system may do, or, with a random source, something between that and the best.
type memFS struct {
	mu    sync.Mutex
	root  *memNode
	locks map[string]*memLock

	// lockBroken lets everybody have the lock: a zombie and its successor side by side.
	lockBroken bool
	// noLinks is a file system without hard links.
	noLinks bool
	// noSync makes a sync do nothing: the mutation that the crash tests must notice.
	noSync func(dir bool, path string) bool
}

// memNode is a file or a directory.
type memNode struct {
	dir     bool
	names   map[string]*memNode // what processes see
	durable map[string]*memNode // what a crash leaves
	log     []memChange         // changes of names since the last sync, in order

	data, synced []byte
}

// memChange is one atomic change of a directory: from disappears, to becomes node.
type memChange struct {
	from, to string
	node     *memNode
}

func newMemFS(dirs ...string) *memFS {
	m := &memFS{root: newMemDir(), locks: make(map[string]*memLock)}
	for _, dir := range dirs {
		n := newMemDir()
		m.root.names[dir], m.root.durable[dir] = n, n
	}
	return m
}

func newMemDir() *memNode {
	return &memNode{dir: true, names: make(map[string]*memNode), durable: make(map[string]*memNode)}
}

func (n *memNode) apply(c memChange) {
	n.log = append(n.log, c)
	change(n.names, c)
}

func change(names map[string]*memNode, c memChange) {
	if c.from != "" {
		delete(names, c.from)
	}
	if c.to != "" {
		names[c.to] = c.node
	}
}

// crash is the end of the machine: all processes die, what was not synced is lost. With a random source, a prefix of the unsynced
// changes of each directory survives, and unsynced content survives, or is zeroed, or is lost.
func (m *memFS) crash(r *rand.Rand) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.root.crash(r)
	clear(m.locks)
}

func (n *memNode) crash(r *rand.Rand) {
	if n.dir {
		if r != nil && len(n.log) > 0 {
			for _, c := range n.log[:r.IntN(len(n.log)+1)] {
				change(n.durable, c)
			}
		}
		n.names, n.log = maps.Clone(n.durable), nil
		for _, child := range n.names {
			child.crash(r)
		}
		return
	}
	if r != nil {
		switch r.IntN(3) {
		case 0:
			n.synced = n.data
		case 1:
			n.synced = append(append([]byte(nil), n.synced...), make([]byte, max(0, len(n.data)-len(n.synced)))...)
		}
	}
	n.data, n.synced = append([]byte(nil), n.synced...), append([]byte(nil), n.synced...)
}

// find returns the node of a path, nil if there is none.
func (m *memFS) find(path string) *memNode {
	n := m.root
	for _, name := range strings.Split(filepath.ToSlash(path), "/") {
		if n == nil || !n.dir {
			return nil
		}
		if name != "." {
			n = n.names[name]
		}
	}
	return n
}

func (m *memFS) parent(path string) (*memNode, string) {
	n := m.find(filepath.Dir(path))
	if n == nil || !n.dir {
		return nil, ""
	}
	return n, filepath.Base(path)
}

// paths lists all files, for assertions.
func (m *memFS) paths() (all []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var walk func(prefix string, n *memNode)
	walk = func(prefix string, n *memNode) {
		for name, child := range n.names {
			if child.dir {
				walk(prefix+name+"/", child)
			} else {
				all = append(all, prefix+name)
			}
		}
	}
	walk("", m.root)
	return all
}

// change edits a file in place, as bit rot does.
func (m *memFS) edit(t testing.TB, path string, f func(data []byte) []byte) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(path)
	if n == nil {
		t.Fatalf("no file %s", path)
	}
	n.data = f(append([]byte(nil), n.data...))
	n.synced = n.data
}

var errDead = errors.New("the process is dead")

// proc is one process that uses the file system. It counts its operations, and its hook may fail any of them, kill the process, or
// let another process run in between.
type proc struct {
	fs   *memFS
	hook func(op int, what, path string) error

	mu   sync.Mutex
	ops  int
	dead bool
	held []*memLock
}

var _ files = (*proc)(nil)

// kill is SIGKILL: nothing happens any more, the system gives the locks back, what was written stays.
func (p *proc) kill() {
	p.mu.Lock()
	p.dead = true
	held := p.held
	p.mu.Unlock()
	for _, l := range held {
		l.Close()
	}
}

func (p *proc) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ops
}

// enter begins an operation. The caller unlocks the file system when there is no error.
func (p *proc) enter(what, path string) error {
	p.mu.Lock()
	op := p.ops
	p.ops++
	hook := p.hook
	p.mu.Unlock()
	if hook != nil {
		if err := hook(op, what, path); err != nil {
			return &fs.PathError{Op: what, Path: path, Err: err}
		}
	}
	p.mu.Lock()
	dead := p.dead
	p.mu.Unlock()
	if dead {
		return errDead
	}
	p.fs.mu.Lock()
	return nil
}

func (p *proc) Mkdir(path string) error {
	if err := p.enter("mkdir", path); err != nil {
		return err
	}
	defer p.fs.mu.Unlock()
	return p.add(path, newMemDir())
}

func (p *proc) add(path string, n *memNode) error {
	parent, name := p.fs.parent(path)
	if parent == nil {
		return &fs.PathError{Op: "add", Path: path, Err: fs.ErrNotExist}
	}
	if parent.names[name] != nil {
		return &fs.PathError{Op: "add", Path: path, Err: fs.ErrExist}
	}
	parent.apply(memChange{to: name, node: n})
	return nil
}

func (p *proc) ReadDir(path string) ([]string, error) {
	if err := p.enter("readdir", path); err != nil {
		return nil, err
	}
	defer p.fs.mu.Unlock()
	n := p.fs.find(path)
	if n == nil {
		return nil, &fs.PathError{Op: "readdir", Path: path, Err: fs.ErrNotExist}
	}
	var names []string
	for name := range n.names {
		names = append(names, name)
	}
	return names, nil
}

func (p *proc) Create(path string) (file, error) {
	if err := p.enter("create", path); err != nil {
		return nil, err
	}
	defer p.fs.mu.Unlock()
	n := &memNode{}
	if err := p.add(path, n); err != nil {
		return nil, err
	}
	return &memFile{p: p, n: n, path: path}, nil
}

func (p *proc) Open(path string) (file, error) {
	if err := p.enter("open", path); err != nil {
		return nil, err
	}
	defer p.fs.mu.Unlock()
	n := p.fs.find(path)
	if n == nil || n.dir {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return &memFile{p: p, n: n, path: path}, nil
}

func (p *proc) Link(from, to string) error {
	if err := p.enter("link", to); err != nil {
		return err
	}
	defer p.fs.mu.Unlock()
	if p.fs.noLinks {
		return &fs.PathError{Op: "link", Path: to, Err: errors.ErrUnsupported}
	}
	n := p.fs.find(from)
	if n == nil {
		return &fs.PathError{Op: "link", Path: from, Err: fs.ErrNotExist}
	}
	return p.add(to, n)
}

func (p *proc) Rename(from, to string) error {
	if err := p.enter("rename", to); err != nil {
		return err
	}
	defer p.fs.mu.Unlock()
	dir, old := p.fs.parent(from)
	same, name := p.fs.parent(to)
	if dir == nil || dir != same || dir.names[old] == nil {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	dir.apply(memChange{from: old, to: name, node: dir.names[old]})
	return nil
}

func (p *proc) Remove(path string) error {
	if err := p.enter("remove", path); err != nil {
		return err
	}
	defer p.fs.mu.Unlock()
	dir, name := p.fs.parent(path)
	if dir == nil || dir.names[name] == nil {
		return &fs.PathError{Op: "remove", Path: path, Err: fs.ErrNotExist}
	}
	dir.apply(memChange{from: name})
	return nil
}

func (p *proc) SyncDir(path string) error {
	if err := p.enter("syncdir", path); err != nil {
		return err
	}
	defer p.fs.mu.Unlock()
	n := p.fs.find(path)
	if n == nil {
		return &fs.PathError{Op: "syncdir", Path: path, Err: fs.ErrNotExist}
	}
	if p.fs.noSync == nil || !p.fs.noSync(true, path) {
		n.durable, n.log = maps.Clone(n.names), nil
	}
	return nil
}

func (p *proc) Lock(path, holder string) (io.Closer, error) {
	if err := p.enter("lock", path); err != nil {
		return nil, err
	}
	defer p.fs.mu.Unlock()
	if l := p.fs.locks[path]; l != nil && !p.fs.lockBroken {
		return nil, &heldError{l.holder}
	}
	l := &memLock{fs: p.fs, path: path, holder: holder}
	p.fs.locks[path] = l
	p.mu.Lock()
	p.held = append(p.held, l)
	p.mu.Unlock()
	return l, nil
}

type memLock struct {
	fs           *memFS
	path, holder string
}

func (l *memLock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	if l.fs.locks[l.path] == l {
		delete(l.fs.locks, l.path)
	}
	return nil
}

type memFile struct {
	p    *proc
	n    *memNode
	path string
}

func (f *memFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.p.enter("write", f.path); err != nil {
		return 0, err
	}
	defer f.p.fs.mu.Unlock()
	if grow := off + int64(len(b)) - int64(len(f.n.data)); grow > 0 {
		f.n.data = append(f.n.data, make([]byte, grow)...)
	}
	return copy(f.n.data[off:], b), nil
}

func (f *memFile) ReadAt(b []byte, off int64) (int, error) {
	if err := f.p.enter("read", f.path); err != nil {
		return 0, err
	}
	defer f.p.fs.mu.Unlock()
	if off >= int64(len(f.n.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.n.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) Size() (int64, error) {
	if err := f.p.enter("size", f.path); err != nil {
		return 0, err
	}
	defer f.p.fs.mu.Unlock()
	return int64(len(f.n.data)), nil
}

func (f *memFile) Sync() error {
	if err := f.p.enter("sync", f.path); err != nil {
		return err
	}
	defer f.p.fs.mu.Unlock()
	if f.p.fs.noSync == nil || !f.p.fs.noSync(false, f.path) {
		f.n.synced = append([]byte(nil), f.n.data...)
	}
	return nil
}

func (f *memFile) Close() error {
	if err := f.p.enter("close", f.path); err != nil {
		return err
	}
	f.p.fs.mu.Unlock()
	return nil
}
