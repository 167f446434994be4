package mainjob

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-go/sluice/config"
)

// makeWorkDir makes a new directory of the run's own in the place that the user
// gave, so that removing it at the end never removes anything else. It refuses a
// place that has not enough room.
func makeWorkDir(o Options) (string, error) {
	parent := o.Dir
	if parent == "" {
		parent = os.TempDir()
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	if free, ok := freeSpace(parent); ok && free < uint64(o.space()) {
		return "", fmt.Errorf("%s has %s free, the run needs about %s: choose another place with --dir",
			parent, mebibytes(config.MemorySize(free)), mebibytes(o.space()))
	}
	dir, err := os.MkdirTemp(parent, "sluice-run-")
	if err != nil {
		return "", err
	}
	return filepath.Abs(dir) // checkpoint.dir must not depend on where a process stands
}

// space returns the bytes of disk that the run needs: the rows, and once more
// the open files, which the store copies when an upload is completed; each kill
// can leave such uploads behind.
func (o Options) space() config.MemorySize {
	open := min(o.Size, config.MemorySize(o.Writers)*o.File)
	return o.Size + open*config.MemorySize(1+o.Crash)
}
