//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// lockFile takes an flock on path. It belongs to the open file, so it ends when the process does, however that ends, and it is
// not handed on to child processes, because Go opens files close-on-exec.
func lockFile(path, holder string) (io.Closer, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
		if err != nil {
			return nil, err
		}
		if err := flock(f); err != nil {
			defer f.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, &heldError{holderText(f)}
			}
			return nil, fmt.Errorf("flock %s: %w", path, err)
		}
		same, err := sameFile(f, path)
		if err == nil && same {
			err = writeHolder(f, holder)
			if err == nil {
				return f, nil
			}
		}
		f.Close()
		if err != nil {
			return nil, err
		}
		// Somebody removed the file after it was opened: the lock is on a file that nobody finds any more.
	}
}

func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EINTR {
			return err
		}
	}
}

func sameFile(f *os.File, path string) (bool, error) {
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return os.SameFile(mine, there), nil
}

func writeHolder(f *os.File, holder string) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(holder+"\n"), 0)
	return err
}
