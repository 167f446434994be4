package mainjob

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
	}
	return dir
}

func TestCountFiles_ExactRows_NoProblems(t *testing.T) {
	dir := tree(t, map[string]string{
		"p=1/part-0":                 "aaa\nbbb\n",
		"part-1":                     "ccc\n",
		"_sluice/main/0-of-1/r.json": "{\n}\n",
	})
	got, err := countFiles(t.Context(), dir, 4, 3)
	require.NoError(t, err)
	assert.Equal(t, tally{files: 2, rows: 3, bytes: 12}, got)
	assert.Empty(t, got.problems(3, 4))
}

func TestCountFiles_FindsWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  tally
		say   string
	}{
		{"nothing there", nil, tally{}, "hold 0 rows instead of 3"},
		{"a row is missing", map[string]string{"a": "aaa\nbbb\n"}, tally{files: 1, rows: 2, bytes: 8}, "hold 2 rows instead of 3"},
		{"a row is there twice, across files", map[string]string{"a": "aaa\nbbb\n", "b": "aaa\n"}, tally{files: 2, rows: 3, bytes: 12, repeated: 1}, "1 rows in the files are there more than once"},
		{"a row is cut", map[string]string{"a": "aaa\nbb\nccc\n"}, tally{files: 1, rows: 3, bytes: 11, odd: 1}, "hold 11 bytes instead of 12"},
		{"two wrong lengths that sum up", map[string]string{"a": "aaaa\nbb\nccc\n"}, tally{files: 1, rows: 3, bytes: 12, odd: 2}, "2 rows in the files are not of 4 bytes"},
		{"the last line feed is missing", map[string]string{"a": "aaa\nbbb\nccc"}, tally{files: 1, rows: 2, bytes: 11, odd: 1}, "hold 2 rows instead of 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := countFiles(t.Context(), tree(t, c.files), 4, 3)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
			assert.Contains(t, got.problems(3, 4)[0], c.say)
		})
	}
}

func TestCountFiles_LineLongerThanTheBuffer_IsCountedByItsBytes(t *testing.T) {
	long := make([]byte, 3<<20)
	got, err := countFiles(t.Context(), tree(t, map[string]string{"a": string(long) + "\n"}), 4, 1)
	require.NoError(t, err)
	assert.EqualValues(t, 3<<20+1, got.bytes)
	assert.Positive(t, got.odd)
}

func TestCountFiles_MissingDirectory_IsEmpty(t *testing.T) {
	got, err := countFiles(t.Context(), filepath.Join(t.TempDir(), "none"), 4, 3)
	require.NoError(t, err)
	assert.Equal(t, tally{}, got)
}

func TestCountFiles_EndsWithItsContext(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err := countFiles(ctx, tree(t, map[string]string{"a": "aaa\n"}), 4, 1)
	assert.ErrorIs(t, err, why)
}
