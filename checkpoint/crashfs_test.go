package checkpoint

import (
	"testing"

	"github.com/sluice-go/sluice/checkpoint/crashfs"
)

var _ FileSystem = (*crashfs.Process)(nil)

// edit changes a file in place, as bit rot does.
func edit(t testing.TB, d *crashfs.Disk, path string, f func(data []byte) []byte) {
	t.Helper()
	if err := d.Edit(path, f); err != nil {
		t.Fatal(err)
	}
}
