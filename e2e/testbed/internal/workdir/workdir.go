// Package workdir makes the directory that a run of the testbed works in.
package workdir

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-go/sluice/config"
)

// Make makes a new directory whose name begins with prefix in parent, "" for the
// system's place for temporary files, and returns its absolute path:
// checkpoint.dir must not depend on where a process stands. Parent is made too
// when it is missing. The directory is the run's own, so that removing it never
// removes anything else.
//
// A place that has no room for need bytes is refused, on a system that tells.
func Make(parent, prefix string, need config.MemorySize) (string, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	if free, ok := freeSpace(parent); ok && free < uint64(need) {
		return "", fmt.Errorf("%s has %d MiB free, the run needs about %d MiB: choose another place with --dir", parent, free>>20, int64(need)>>20)
	}
	dir, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}
