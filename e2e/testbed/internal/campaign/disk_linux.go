package campaign

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// diskSize is the room for the checkpoints of one job: enough for all it ever holds, little enough to be filled at once.
const diskSize = "96m"

// ballast is the file that fills a disk.
const ballast = "ballast"

// disk is a small file system of its own, in memory.
type disk struct{ dir string }

// mountDisk makes one. It needs the right to mount.
func mountDisk(dir string) (*disk, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+diskSize); err != nil {
		return nil, fmt.Errorf("mount tmpfs on %s: %w", dir, err)
	}
	return &disk{dir: dir}, nil
}

func (d *disk) unmount() error {
	if err := unix.Unmount(d.dir, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount %s: %w", d.dir, err)
	}
	return nil
}

// fill takes all the room, and all that is given back, until makeRoom is called.
func (d *disk) fill() (makeRoom func() error, err error) {
	name := filepath.Join(d.dir, ballast)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	pour(f, 1<<20)
	pour(f, 4096)
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				pour(f, 4096)
			case <-quit:
				return
			}
		}
	}()
	return func() error {
		close(quit)
		<-ended
		return errors.Join(f.Close(), os.Remove(name))
	}, nil
}

// pour writes until nothing more fits.
func pour(f *os.File, piece int) {
	for buf := make([]byte, piece); ; {
		if _, err := f.Write(buf); err != nil {
			return
		}
	}
}

// readOnly refuses every change from now on, to processes that run as well, until undo is called. Files that are open for
// writing stay so.
func (d *disk) readOnly() (undo func() error, err error) {
	if err := unix.Mount(d.dir, d.dir, "", unix.MS_BIND, ""); err != nil {
		return nil, fmt.Errorf("bind %s: %w", d.dir, err)
	}
	undo = func() error { return unix.Unmount(d.dir, unix.MNT_DETACH) }
	if err := unix.Mount("", d.dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		return nil, errors.Join(fmt.Errorf("remount %s: %w", d.dir, err), undo())
	}
	return undo, nil
}

// canMount finds out whether disks can be made here.
func canMount(dir string) error {
	d, err := mountDisk(filepath.Join(dir, "try"))
	if err != nil {
		return err
	}
	err = d.unmount()
	if rerr := os.Remove(d.dir); err == nil && !errors.Is(rerr, fs.ErrNotExist) {
		err = rerr
	}
	return err
}
