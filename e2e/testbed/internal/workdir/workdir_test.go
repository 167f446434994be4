package workdir_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/e2e/testbed/internal/workdir"
)

func TestMake_EachRunHasADirectoryOfItsOwnAndAbsolute(t *testing.T) {
	t.Chdir(t.TempDir())
	first, err := workdir.Make("a/b", "run-", 1)
	require.NoError(t, err)
	second, err := workdir.Make("a/b", "run-", 1)
	require.NoError(t, err)
	assert.NotEqual(t, first, second)
	for _, dir := range []string{first, second} {
		assert.True(t, filepath.IsAbs(dir), dir)
		assert.Equal(t, filepath.Join("a", "b"), filepath.Join(filepath.Base(filepath.Dir(filepath.Dir(dir))), filepath.Base(filepath.Dir(dir))))
		assert.DirExists(t, dir)
	}
}

func TestMake_WithoutAPlaceIsInTheSystemsOne(t *testing.T) {
	place := t.TempDir()
	t.Setenv("TMPDIR", place)
	t.Setenv("TMP", place)
	dir, err := workdir.Make("", "run-", 1)
	require.NoError(t, err)
	assert.Equal(t, place, filepath.Dir(dir))
}

func TestMake_APlaceWithoutRoomIsRefusedAndLeftAsItWas(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("this system does not tell how much is free")
	}
	place := t.TempDir()
	_, err := workdir.Make(place, "run-", 1<<61)
	require.ErrorContains(t, err, "MiB free, the run needs about 2199023255552 MiB: choose another place with --dir")
	left, err := os.ReadDir(place)
	require.NoError(t, err)
	assert.Empty(t, left)
}
