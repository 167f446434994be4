//go:build linux || darwin

package workdir

import "golang.org/x/sys/unix"

// freeSpace returns the bytes that an ordinary user can still write to the file
// system of a directory. ok is false when the system does not say.
func freeSpace(dir string) (bytes uint64, ok bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
