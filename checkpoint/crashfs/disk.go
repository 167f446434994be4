package crashfs

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Disk is the file system of one machine. It is the worst that a file system may be, or, with a random source in Crash, something
// between that and the best.
type Disk struct {
	// LockBroken lets everybody have the lock: a zombie and its successor side by side.
	LockBroken bool
	// NoLinks is a file system without hard links.
	NoLinks bool
	// NoSync makes those syncs do nothing for which it returns true: the mutation that crash tests must notice.
	NoSync func(dir bool, path string) bool

	mu    sync.Mutex
	root  *node
	locks map[string]*lock
}

// node is a file or a directory.
type node struct {
	dir     bool
	names   map[string]*node // what processes see
	durable map[string]*node // what a crash leaves
	log     []change         // changes of names since the last sync, in order

	data, synced []byte
}

// change is one atomic change of a directory: from disappears, to becomes node.
type change struct {
	from, to string
	node     *node
}

// New returns a disk with the given directories in its root.
func New(dirs ...string) *Disk {
	d := &Disk{root: newDir(), locks: make(map[string]*lock)}
	for _, dir := range dirs {
		n := newDir()
		d.root.names[dir], d.root.durable[dir] = n, n
	}
	return d
}

func newDir() *node {
	return &node{dir: true, names: make(map[string]*node), durable: make(map[string]*node)}
}

func (n *node) apply(c change) {
	n.log = append(n.log, c)
	c.apply(n.names)
}

func (c change) apply(names map[string]*node) {
	if c.from != "" {
		delete(names, c.from)
	}
	if c.to != "" {
		names[c.to] = c.node
	}
}

// Crash is the end of the machine: what was not synced is lost, and so are all locks. With a random source, a prefix of the
// unsynced changes of each directory survives, and unsynced content survives, or is zeroed, or is lost.
func (d *Disk) Crash(r *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.root.crash(r)
	clear(d.locks)
}

func (n *node) crash(r *rand.Rand) {
	if n.dir {
		if r != nil && len(n.log) > 0 {
			for _, c := range n.log[:r.IntN(len(n.log)+1)] {
				c.apply(n.durable)
			}
		}
		n.names, n.log = maps.Clone(n.durable), nil
		for _, name := range slices.Sorted(maps.Keys(n.names)) {
			n.names[name].crash(r)
		}
		return
	}
	if r != nil {
		switch r.IntN(3) {
		case 0:
			n.synced = n.data
		case 1:
			n.synced = append(slices.Clone(n.synced), make([]byte, max(0, len(n.data)-len(n.synced)))...)
		}
	}
	n.data, n.synced = slices.Clone(n.synced), slices.Clone(n.synced)
}

// find returns the node of a path, nil if there is none.
func (d *Disk) find(path string) *node { return d.walk(path, false) }

func (d *Disk) walk(path string, durable bool) *node {
	n := d.root
	for name := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if n == nil || !n.dir {
			return nil
		}
		switch {
		case name == ".":
		case durable:
			n = n.durable[name]
		default:
			n = n.names[name]
		}
	}
	return n
}

func (d *Disk) parent(path string) (*node, string) {
	n := d.find(filepath.Dir(path))
	if n == nil || !n.dir {
		return nil, ""
	}
	return n, filepath.Base(path)
}

// Paths lists all files that processes see, sorted.
func (d *Disk) Paths() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.root.files("", func(n *node) map[string]*node { return n.names })
}

// Durable lists all files that the worst crash would leave, sorted.
func (d *Disk) Durable() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.root.files("", func(n *node) map[string]*node { return n.durable })
}

func (n *node) files(prefix string, names func(*node) map[string]*node) (all []string) {
	of := names(n)
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if child := of[name]; child.dir {
			all = append(all, child.files(prefix+name+"/", names)...)
		} else {
			all = append(all, prefix+name)
		}
	}
	return all
}

// ReadDurable returns the bytes of a file as the worst crash would leave them. The error is fs.ErrNotExist when the crash would
// leave no such file.
func (d *Disk) ReadDurable(path string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.walk(path, true)
	if n == nil || n.dir {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fs.ErrNotExist}
	}
	return slices.Clone(n.synced), nil
}

// Edit changes a file in place and durably, as bit rot does.
func (d *Disk) Edit(path string, f func(data []byte) []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.find(path)
	if n == nil || n.dir {
		return fmt.Errorf("edit %s: %w", path, fs.ErrNotExist)
	}
	n.data = f(slices.Clone(n.data))
	n.synced = n.data
	return nil
}

// LoseLocks gives all locks away, as a lock server that restarts does: their holders do not notice, and others can have them.
func (d *Disk) LoseLocks() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.locks)
}
