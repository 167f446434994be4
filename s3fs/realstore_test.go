package s3fs_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/s3fs"
)

// realStore opens a real store, or skips. What a test writes stays below one prefix and is removed again.
func realStore(t *testing.T, change func(*s3fs.Settings)) (*s3fs.FS, s3fs.Path) {
	t.Helper()
	env := func(name string) string { return os.Getenv("SLUICE_TEST_" + name) }
	if env("ENDPOINT") == "" {
		t.Skip("needs a store: start one (the testbed has a store command) and set SLUICE_TEST_ENDPOINT, _ACCESS_KEY, _SECRET_KEY and _BUCKET")
	}
	s := s3fs.DefaultSettings()
	s.Endpoint, s.PathStyle = env("ENDPOINT"), true
	s.AccessKey, s.SecretKey = config.Secret(env("ACCESS_KEY")), config.Secret(env("SECRET_KEY"))
	if change != nil {
		change(&s)
	}
	f, err := s3fs.OpenSettings(t.Context(), s)
	require.NoError(t, err)
	base := s3fs.Path{Bucket: env("BUCKET"), Key: fmt.Sprintf("s3fs-test-%d/", time.Now().UnixNano())}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if s.SecretKey != config.Secret(env("SECRET_KEY")) {
			assert.NoError(t, f.Close(ctx)) // it could not write anything
			return
		}
		for i, err := range f.List(ctx, base) {
			if assert.NoError(t, err) {
				assert.NoError(t, f.Delete(ctx, i.Path))
			}
		}
		assert.NoError(t, f.Close(ctx))
	})
	return f, base
}

func TestRealStore_UploadIsProvenAndReadBack(t *testing.T) {
	for _, checksums := range []bool{true, false} {
		t.Run(fmt.Sprintf("checksums=%v", checksums), func(t *testing.T) {
			f, base := realStore(t, func(s *s3fs.Settings) { s.Checksums = checksums })
			p := base.Join("dt=2026-01-01/a+b c.raw")
			to := multipart.Target{Bucket: p.Bucket, Key: p.Key}
			u, err := multipart.Start(f.API(), to, "token", multipart.Options{PartSize: s3fs.MinPartSize, Budget: multipart.NewBudget(64 << 20)})
			require.NoError(t, err)
			body := text(12 << 20)
			_, err = u.Write(t.Context(), body)
			require.NoError(t, err)
			require.NoError(t, u.Seal())
			o, err := u.Commit(t.Context())
			require.NoError(t, err)
			assert.Equal(t, int64(len(body)), o.Size)

			r, err := f.Open(t.Context(), p)
			assert.Equal(t, body, readAll(t, r, err))
			var b buffer
			_, err = f.ReadParallel(t.Context(), p, &b, 1<<20, 8)
			require.NoError(t, err)
			assert.Equal(t, body, b.b)
			r, err = f.ReadRange(t.Context(), p, 5<<20, 100)
			assert.Equal(t, body[5<<20:5<<20+100], readAll(t, r, err))
			assert.Equal(t, f.Stats().Total.Calls, f.Stats().Total.Attempts, "nothing had to be retried")
		})
	}
}

func TestRealStore_ObjectsAndNames(t *testing.T) {
	f, base := realStore(t, nil)
	require.NoError(t, f.CheckBucket(t.Context(), base.Bucket))
	require.ErrorIs(t, f.CheckBucket(t.Context(), base.Bucket+"-missing"), s3fs.ErrNoBucket)
	want := []string{"a b", "a%2Fb", "a+b", "a=b", "dir/x", "x!\"#$&'()*,:;<>?@[]^_`{|}~y", "ü"}
	for _, name := range want {
		require.NoError(t, f.PutIfAbsent(t.Context(), base.Join(name), []byte(name)), name)
		require.ErrorIs(t, f.PutIfAbsent(t.Context(), base.Join(name), nil), s3fs.ErrExists, name)
		r, err := f.Open(t.Context(), base.Join(name))
		assert.Equal(t, name, string(readAll(t, r, err)))
	}
	var got []string
	for i, err := range f.List(t.Context(), base) {
		require.NoError(t, err)
		got = append(got, i.Path.Key[len(base.Key):])
	}
	slices.Sort(got)
	assert.Equal(t, want, got)
	_, err := f.Stat(t.Context(), base.Join("nothing"))
	require.ErrorIs(t, err, s3fs.ErrNotFound)
	require.NoError(t, f.Put(t.Context(), base.Join("a b"), bytes.NewReader([]byte("new"))))
}

func TestRealStore_WrongCredentialsAreNamed(t *testing.T) {
	f, base := realStore(t, func(s *s3fs.Settings) { s.SecretKey = "wrong-secret-key" })
	require.ErrorIs(t, f.CheckBucket(t.Context(), base.Bucket), s3fs.ErrCredentials)
}
