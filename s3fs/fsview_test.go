package s3fs_test

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs/s3test"
)

func TestView_BehavesAsIoFsDemands(t *testing.T) {
	bubble(t, options{server: s3test.Options{PageSize: 2}}, func(t *testing.T, s store) {
		files := []string{"a.txt", "dir/b.txt", "dir/c.txt", "dir/deep/er/d.txt", "e=1/f"}
		for _, k := range files {
			s.srv.PutObject("b", "base/"+k, []byte("content of "+k), nil)
		}
		s.srv.PutObject("b", "outside", []byte("x"), nil)
		s.srv.PutObject("b", "base/odd//key", []byte("x"), nil)
		view := s.View(s.ctx, path("base"))
		require.NoError(t, fstest.TestFS(view, files...))

		b, err := fs.ReadFile(view, "dir/b.txt")
		require.NoError(t, err)
		assert.Equal(t, "content of dir/b.txt", string(b))
		var walked []string
		require.NoError(t, fs.WalkDir(view, ".", func(name string, d fs.DirEntry, err error) error {
			if !d.IsDir() {
				walked = append(walked, name)
			}
			return err
		}))
		assert.Equal(t, files, walked)
	})
}

func TestView_NothingThereIsNotExist(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		view := s.View(s.ctx, path(""))
		for _, err := range []error{
			second(fs.Stat(view, "x")), second(fs.ReadFile(view, "x")), second(fs.ReadDir(view, "x")), second(view.Open("x")),
		} {
			require.ErrorIs(t, err, fs.ErrNotExist)
		}
		require.ErrorIs(t, second(view.Open("../x")), fs.ErrInvalid)
		entries, err := fs.ReadDir(view, ".")
		require.NoError(t, err)
		assert.Empty(t, entries)
	})
}

func second[T any](_ T, err error) error { return err }
