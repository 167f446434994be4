package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// errSharingViolation is ERROR_SHARING_VIOLATION, which package syscall does not name.
const errSharingViolation = syscall.Errno(32)

// lockFile opens path for writing and lets others only read it, so that they can see who has it: their own open for
// writing, and a removal of the file, fail until the handle is closed, which the system does when the process dies.
func lockFile(path, holder string) (io.Closer, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, syscall.FILE_SHARE_READ, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, errSharingViolation) {
		who := "an unknown process"
		if f, err := os.Open(path); err == nil {
			who = holderText(f)
			f.Close()
		}
		return nil, &heldError{who}
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	f := os.NewFile(uintptr(h), path)
	if err := f.Truncate(0); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := f.WriteAt([]byte(holder+"\r\n"), 0); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
