package s3fs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

func TestListAfter_IsOnePageFromAPlaceOn(t *testing.T) {
	bubble(t, options{server: s3test.Options{PageSize: 3}}, func(t *testing.T, s store) {
		for _, k := range []string{"o", "p/a", "p/b", "p/c", "p/d", "p/e", "p/f", "q"} {
			s.srv.PutObject("b", k, []byte(k), nil)
		}
		for _, c := range []struct {
			after string
			limit int
			want  []string
			more  bool
		}{
			{"p/b", 2, []string{"p/c", "p/d"}, true},
			{"p/b", 5000, []string{"p/c", "p/d", "p/e"}, true},
			{"p/d", 5000, []string{"p/e", "p/f"}, false},
			{"", 0, []string{"p/a"}, true},
			{"p/f", 1, nil, false},
		} {
			before := s.srv.Counts().Total()
			page, more, err := s.ListAfter(s.ctx, path("p/"), c.after, c.limit)
			require.NoError(t, err)
			var keys []string
			for _, info := range page {
				keys = append(keys, info.Path.Key)
				assert.Equal(t, int64(len(info.Path.Key)), info.Size)
				assert.NotContains(t, info.ETag, `"`)
			}
			assert.Equal(t, c.want, keys, "%+v", c)
			assert.Equal(t, c.more, more, "%+v", c)
			assert.Equal(t, 1, s.srv.Counts().Total()-before)
		}
		_, _, err := s.ListAfter(s.ctx, s3fs.Path{Bucket: "missing"}, "", 1)
		require.ErrorIs(t, err, s3fs.ErrNoBucket)
	})
}
