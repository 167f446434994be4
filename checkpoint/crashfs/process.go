package crashfs

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
)

// ErrDead is returned by every operation of a process that was killed.
var ErrDead = errors.New("the process is dead")

// HeldError is returned by Lock when somebody has the lock.
type HeldError struct{ holder string }

// Error implements error.
func (e *HeldError) Error() string { return "held by " + e.holder }

// Holder returns what the holder has said about itself.
func (e *HeldError) Holder() string { return e.holder }

// File is an open file. Its operations count as those of its process.
type File = interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	Sync() error
}

// Process is one process that uses a disk. It satisfies checkpoint.FileSystem.
type Process struct {
	// Hook is called before each operation, with its number (0, 1, ...), its name in lower case and its path. An error fails
	// the operation, which then has no effect. Nil is no hook.
	Hook func(op int, what, path string) error

	disk *Disk

	mu   sync.Mutex
	ops  int
	dead bool
	held []*lock
}

// Process returns a new process.
func (d *Disk) Process() *Process { return &Process{disk: d} }

// Disk returns the disk that the process uses.
func (p *Process) Disk() *Disk { return p.disk }

// Kill is SIGKILL: nothing happens any more, the system gives the locks back, what was written stays.
func (p *Process) Kill() {
	p.mu.Lock()
	p.dead = true
	held := p.held
	p.held = nil
	p.mu.Unlock()
	for _, l := range held {
		_ = l.Close() // cannot fail
	}
}

// Ops returns how many operations there were.
func (p *Process) Ops() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ops
}

// enter begins an operation. The caller unlocks the disk when there is no error.
func (p *Process) enter(what, path string) error {
	p.mu.Lock()
	op := p.ops
	p.ops++
	hook := p.Hook
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
		return ErrDead
	}
	p.disk.mu.Lock()
	return nil
}

// Mkdir makes a directory, which must not exist.
func (p *Process) Mkdir(path string) error {
	if err := p.enter("mkdir", path); err != nil {
		return err
	}
	defer p.disk.mu.Unlock()
	return p.add(path, newDir())
}

func (p *Process) add(path string, n *node) error {
	parent, name := p.disk.parent(path)
	if parent == nil {
		return &fs.PathError{Op: "add", Path: path, Err: fs.ErrNotExist}
	}
	if parent.names[name] != nil {
		return &fs.PathError{Op: "add", Path: path, Err: fs.ErrExist}
	}
	parent.apply(change{to: name, node: n})
	return nil
}

// ReadDir returns the names in a directory, sorted.
func (p *Process) ReadDir(path string) ([]string, error) {
	if err := p.enter("readdir", path); err != nil {
		return nil, err
	}
	defer p.disk.mu.Unlock()
	n := p.disk.find(path)
	if n == nil || !n.dir {
		return nil, &fs.PathError{Op: "readdir", Path: path, Err: fs.ErrNotExist}
	}
	return slices.Sorted(maps.Keys(n.names)), nil
}

// Create makes a new file, which must not exist.
func (p *Process) Create(path string) (File, error) {
	if err := p.enter("create", path); err != nil {
		return nil, err
	}
	defer p.disk.mu.Unlock()
	n := &node{}
	if err := p.add(path, n); err != nil {
		return nil, err
	}
	return &file{p: p, n: n, path: path}, nil
}

// Open opens a file.
func (p *Process) Open(path string) (File, error) {
	if err := p.enter("open", path); err != nil {
		return nil, err
	}
	defer p.disk.mu.Unlock()
	n := p.disk.find(path)
	if n == nil || n.dir {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return &file{p: p, n: n, path: path}, nil
}

// Link gives a file a second name, which must not exist.
func (p *Process) Link(from, to string) error {
	if err := p.enter("link", to); err != nil {
		return err
	}
	defer p.disk.mu.Unlock()
	if p.disk.NoLinks {
		return &fs.PathError{Op: "link", Path: to, Err: errors.ErrUnsupported}
	}
	n := p.disk.find(from)
	if n == nil {
		return &fs.PathError{Op: "link", Path: from, Err: fs.ErrNotExist}
	}
	return p.add(to, n)
}

// Rename gives a file another name in the same directory, over what may be there.
func (p *Process) Rename(from, to string) error {
	if err := p.enter("rename", to); err != nil {
		return err
	}
	defer p.disk.mu.Unlock()
	dir, old := p.disk.parent(from)
	same, name := p.disk.parent(to)
	if dir == nil || dir != same || dir.names[old] == nil {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	dir.apply(change{from: old, to: name, node: dir.names[old]})
	return nil
}

// Remove removes a name.
func (p *Process) Remove(path string) error {
	if err := p.enter("remove", path); err != nil {
		return err
	}
	defer p.disk.mu.Unlock()
	dir, name := p.disk.parent(path)
	if dir == nil || dir.names[name] == nil {
		return &fs.PathError{Op: "remove", Path: path, Err: fs.ErrNotExist}
	}
	dir.apply(change{from: name})
	return nil
}

// SyncDir makes the names in a directory durable, additions and removals.
func (p *Process) SyncDir(path string) error {
	if err := p.enter("syncdir", path); err != nil {
		return err
	}
	defer p.disk.mu.Unlock()
	n := p.disk.find(path)
	if n == nil || !n.dir {
		return &fs.PathError{Op: "syncdir", Path: path, Err: fs.ErrNotExist}
	}
	if p.disk.NoSync == nil || !p.disk.NoSync(true, path) {
		n.durable, n.log = maps.Clone(n.names), nil
	}
	return nil
}

// Lock takes a lock, or returns a *[HeldError].
func (p *Process) Lock(path, holder string) (io.Closer, error) {
	if err := p.enter("lock", path); err != nil {
		return nil, err
	}
	defer p.disk.mu.Unlock()
	if l := p.disk.locks[path]; l != nil && !p.disk.LockBroken {
		return nil, &HeldError{l.holder}
	}
	l := &lock{disk: p.disk, path: path, holder: holder}
	p.disk.locks[path] = l
	p.mu.Lock()
	p.held = append(p.held, l)
	p.mu.Unlock()
	return l, nil
}

type lock struct {
	disk         *Disk
	path, holder string
}

// Close gives the lock back, unless somebody else has it by now.
func (l *lock) Close() error {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	if l.disk.locks[l.path] == l {
		delete(l.disk.locks, l.path)
	}
	return nil
}
