package s3fs_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

const (
	accessKey = "AKIATESTACCESS"
	secretKey = "test-secret-value"
)

// cleanAWS hides the AWS configuration of whoever runs the tests.
func cleanAWS(t testing.TB) {
	t.Helper()
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": empty, "AWS_SHARED_CREDENTIALS_FILE": empty, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "",
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SESSION_TOKEN": "", "AWS_MAX_ATTEMPTS": "", "AWS_RETRY_MODE": "",
		"AWS_CA_BUNDLE": "", "HTTP_PROXY": "", "HTTPS_PROXY": "",
	} {
		t.Setenv(name, value)
	}
}

// settings are those of a job on the in-memory store.
func settings(srv *s3test.Server) s3fs.Settings {
	s := s3fs.DefaultSettings()
	s.Endpoint, s.PathStyle = srv.URL(), true
	s.AccessKey, s.SecretKey = accessKey, secretKey
	s.Retry.Mode = retrymode.Standard
	return s
}

// store is an in-memory S3 with the bucket b and a file system on it.
type store struct {
	*s3fs.FS
	srv *s3test.Server
	ctx context.Context
}

// options change what bubble sets up.
type options struct {
	server   s3test.Options
	settings func(*s3fs.Settings)
	env      map[string]string
	dials    *int // counts connections
}

// bubble runs a test in virtual time and closes the file system. Whatever is still running at its end fails it.
func bubble(t *testing.T, o options, test func(t *testing.T, s store)) {
	t.Helper()
	bubbleOpen(t, o, func(t *testing.T, s store) {
		test(t, s)
		require.NoError(t, s.Close(t.Context()))
	})
}

// bubbleEnv is bubble under environment variables.
func bubbleEnv(t *testing.T, env map[string]string, o options, test func(t *testing.T, s store)) {
	t.Helper()
	o.env = env
	bubble(t, o, test)
}

// bubbleDial is bubble that counts the connections made.
func bubbleDial(t *testing.T, set func(*s3fs.Settings), dials *int, test func(t *testing.T, s store)) {
	t.Helper()
	bubble(t, options{settings: set, dials: dials}, test)
}

// bubbleOpen is bubble for a test that closes the file system itself.
func bubbleOpen(t *testing.T, o options, test func(t *testing.T, s store)) {
	t.Helper()
	cleanAWS(t)
	for name, value := range o.env {
		t.Setenv(name, value)
	}
	synctest.Test(t, func(t *testing.T) {
		if o.server.Buckets == nil {
			o.server.Buckets = []string{"b"}
		}
		if o.server.AccessKey == "" {
			o.server.AccessKey, o.server.SecretKey = accessKey, secretKey // every signature is checked
		}
		srv := s3test.New(o.server)
		defer srv.Close()
		set := settings(srv)
		if o.settings != nil {
			o.settings(&set)
		}
		var mu sync.Mutex
		dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
			if o.dials != nil {
				mu.Lock()
				defer mu.Unlock()
				*o.dials++
			}
			return srv.DialContext(ctx, network, addr)
		}
		f, err := s3fs.OpenSettings(t.Context(), set, s3fs.WithDialContext(dial))
		require.NoError(t, err)
		test(t, store{f, srv, t.Context()})
	})
}

func path(key string) s3fs.Path { return s3fs.Path{Bucket: "b", Key: key} }

// text is n bytes that do not repeat soon.
func text(n int) []byte {
	b := make([]byte, n)
	x := uint32(n)*2654435761 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
	return b
}

func readAll(t *testing.T, r io.ReadCloser, err error) []byte {
	t.Helper()
	require.NoError(t, err)
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	return b
}

// lines of a transcript.
func lines(trace string) []string { return strings.Split(strings.TrimSpace(trace), "\n") }

// load reads the keys of a test the way a program does.
func load(t testing.TB, keys map[string]string) *config.Config {
	t.Helper()
	r, err := config.NewRegistry(s3fs.Keys(), retrymode.Keys())
	require.NoError(t, err)
	c, err := config.Load(r, config.Map("test", keys))
	require.NoError(t, err)
	return c
}
