package checkpoint

import (
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"
)

// FileSystem is all that a DirStore does to a file system. It is an interface so that tests can lose what was not synced,
// fail any call and crash after any of them; package crashfs does. Errors satisfy errors.Is with fs.ErrExist and
// fs.ErrNotExist. Implementations are safe for concurrent use.
type FileSystem interface {
	Mkdir(path string) error
	// ReadDir returns the names in a directory, in no order.
	ReadDir(path string) ([]string, error)
	// Create makes a new file for reading and writing; it must not exist.
	Create(path string) (File, error)
	Open(path string) (File, error)
	// Link gives a file a second name, which must not exist.
	Link(from, to string) error
	// Rename may replace to.
	Rename(from, to string) error
	Remove(path string) error
	// SyncDir makes the names in a directory durable, additions and removals.
	SyncDir(path string) error
	// Lock takes the lock file for this process without waiting. When somebody has it, the error has a method Holder, which
	// returns what the holder has said about itself. The system gives the lock back when the process dies.
	Lock(path, holder string) (io.Closer, error)
}

// File is an open file of a FileSystem. It is an alias, so that file systems need not import this package.
type File = interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	Sync() error
}

type (
	files = FileSystem
	file  = File
)

// holding is the error of Lock when somebody has the lock.
type holding interface {
	error
	Holder() string
}

// heldError says who has a lock.
type heldError struct{ holder string }

var _ holding = (*heldError)(nil)

func (e *heldError) Error() string  { return "held by " + e.holder }
func (e *heldError) Holder() string { return e.holder }

// Checkpoints hold rows of the job, so others get no access beyond the group.
const (
	dirMode  = 0o750
	fileMode = 0o640
)

// osFiles is the real file system.
type osFiles struct{}

var _ files = osFiles{}

func (osFiles) Mkdir(path string) error          { return os.Mkdir(path, dirMode) }
func (osFiles) Link(from, to string) error       { return os.Link(from, to) }
func (osFiles) Rename(from, to string) error     { return os.Rename(from, to) }
func (osFiles) Remove(path string) error         { return os.Remove(path) }
func (osFiles) Open(path string) (file, error)   { return wrapFile(os.Open(path)) }
func (osFiles) Create(path string) (file, error) { return wrapFile(openNew(path)) }

func openNew(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
}

func (osFiles) ReadDir(path string) ([]string, error) {
	d, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

func (osFiles) SyncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil // a directory handle cannot be flushed there; NTFS keeps names in its journal
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil // this file system has no such operation; there is nothing stronger to ask for
	}
	return err
}

func (osFiles) Lock(path, holder string) (io.Closer, error) {
	l, err := lockFile(path, holder)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// linksUnsupported says whether the error of Link means that this file system has no hard links.
func linksUnsupported(err error) bool {
	// 1 is EPERM on unix, which link gives on FAT, and ERROR_INVALID_FUNCTION on windows, which means the same there.
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.Errno(1))
}

type osFile struct{ *os.File }

func wrapFile(f *os.File, err error) (file, error) {
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// holderText reads what the holder of a lock wrote about itself.
func holderText(f io.ReaderAt) string {
	b := make([]byte, 200)
	n, _ := f.ReadAt(b, 0) // it only decorates an error; the holder may be about to write it
	if n == 0 {
		return "an unknown process"
	}
	for i, c := range b[:n] {
		if c < ' ' || c > '~' {
			n = i
			break
		}
	}
	return string(b[:n])
}
