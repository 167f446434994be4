package s3fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

// O-35: credentials that the store revokes before their time. The chain caches them, so the retry must ask the provider anew, or it is signed with the
// same ones. Here they come from a process that hands out others from its second call on.
func TestBugO35_CachedCredentialsAreRenewedInTheMiddleOfAnUpload(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell script")
	}
	cleanAWS(t)
	dir := t.TempDir()
	script := filepath.Join(dir, "credentials.sh")
	require.NoError(t, os.WriteFile(script, []byte(`#!/bin/sh
n=OLD
[ -e "$0.asked" ] && n=NEW
: > "$0.asked"
echo '{"Version": 1, "AccessKeyId": "'$n'", "SecretAccessKey": "secret", "SessionToken": "t", "Expiration": "2999-01-01T00:00:00Z"}'
`), 0o700))
	conf := filepath.Join(dir, "config")
	require.NoError(t, os.WriteFile(conf, fmt.Appendf(nil, "[default]\nregion = us-east-1\ncredential_process = %s\n", script), 0o600))
	t.Setenv("AWS_CONFIG_FILE", conf)

	srv := s3test.New(s3test.Options{Buckets: []string{"b"}, MinPartSize: 1})
	defer srv.Close()
	defer srv.Control(s3test.Match{}, func(r s3test.Request) *s3test.Reply {
		if (r.Part >= 3 || r.Op == s3test.CompleteMultipartUpload) && strings.Contains(r.Header.Get("Authorization"), "Credential=OLD/") {
			return s3test.Status(400, "ExpiredToken")
		}
		return nil
	})()
	set := settings(srv)
	set.AccessKey, set.SecretKey = "", ""
	set.Retry.Mode = retrymode.Adaptive
	f, err := s3fs.OpenSettings(t.Context(), set, s3fs.WithDialContext(srv.DialContext))
	require.NoError(t, err)
	s := store{f, srv, t.Context()}
	u, err := multipart.Start(s.API(), target, "token", multipart.Options{PartSize: 1000, Concurrency: 1, Budget: multipart.NewBudget(10 << 20)})
	require.NoError(t, err)
	_, err = u.Write(s.ctx, text(5000))
	require.NoError(t, err)
	require.NoError(t, u.Seal())
	_, err = u.Commit(s.ctx)
	require.NoError(t, err)
	assert.Len(t, srv.Objects("b"), 1)
	require.NoError(t, f.Close(s.ctx))
}
