package plainfiles

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

func TestCount_ExactRows_NoProblems(t *testing.T) {
	dir := tree(t, map[string]string{
		"p=1/part-0":                 "aaa\nbbb\n",
		"part-1":                     "ccc\n",
		"_sluice/main/0-of-1/r.json": "{\n}\n",
	})
	got, err := Count(t.Context(), dir, 4, 3)
	require.NoError(t, err)
	assert.Equal(t, Tally{Files: 2, Rows: 3, Bytes: 12}, got)
	assert.Empty(t, got.Problems(3, 4))
}

func TestCount_FindsWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  Tally
		say   string
	}{
		{"nothing there", nil, Tally{}, "hold 0 rows instead of 3"},
		{"a row is missing", map[string]string{"a": "aaa\nbbb\n"}, Tally{Files: 1, Rows: 2, Bytes: 8}, "hold 2 rows instead of 3"},
		{"a row is there twice, across files", map[string]string{"a": "aaa\nbbb\n", "b": "aaa\n"}, Tally{Files: 2, Rows: 3, Bytes: 12, Repeated: 1}, "1 rows in the files are there more than once"},
		{"a row is cut", map[string]string{"a": "aaa\nbb\nccc\n"}, Tally{Files: 1, Rows: 3, Bytes: 11, Odd: 1}, "hold 11 bytes instead of 12"},
		{"two wrong lengths that sum up", map[string]string{"a": "aaaa\nbb\nccc\n"}, Tally{Files: 1, Rows: 3, Bytes: 12, Odd: 2}, "2 rows in the files are not of 4 bytes"},
		{"the last line feed is missing", map[string]string{"a": "aaa\nbbb\nccc"}, Tally{Files: 1, Rows: 2, Bytes: 11, Odd: 1}, "hold 2 rows instead of 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Count(t.Context(), tree(t, c.files), 4, 3)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
			assert.Contains(t, got.Problems(3, 4)[0], c.say)
		})
	}
}

func TestCount_LineLongerThanTheBuffer_IsCountedByItsBytes(t *testing.T) {
	long := make([]byte, 3<<20)
	got, err := Count(t.Context(), tree(t, map[string]string{"a": string(long) + "\n"}), 4, 1)
	require.NoError(t, err)
	assert.EqualValues(t, 3<<20+1, got.Bytes)
	assert.Positive(t, got.Odd)
}

func TestCount_MissingDirectory_IsEmpty(t *testing.T) {
	got, err := Count(t.Context(), filepath.Join(t.TempDir(), "none"), 4, 3)
	require.NoError(t, err)
	assert.Equal(t, Tally{}, got)
}

func TestCount_EndsWithItsContext(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err := Count(ctx, tree(t, map[string]string{"a": "aaa\n"}), 4, 1)
	assert.ErrorIs(t, err, why)
}
