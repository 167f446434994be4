package s3fs_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

func TestCheckBucket_PassesOnAnExistingBucket(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		require.NoError(t, s.CheckBucket(s.ctx, "b"))
		assert.Equal(t, []string{"HeadBucket b -> 200"}, lines(s.srv.Trace()))
	})
}

func TestCheckBucket_MissingBucket(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		err := s.CheckBucket(s.ctx, "missing")
		require.ErrorIs(t, err, s3fs.ErrNoBucket)
		require.ErrorIs(t, err, fs.ErrNotExist)
		assert.Contains(t, err.Error(), "check bucket s3://missing/: NoSuchBucket: ")
		assert.Contains(t, err.Error(), "create the bucket, or correct its name or s3.endpoint")
		require.Error(t, s.CheckBucket(s.ctx, ""))
	})
}

func TestCheckBucket_WrongCredentials(t *testing.T) {
	for name, server := range map[string]s3test.Options{
		"unknown key":  {AccessKey: "SOMEBODYELSE"},
		"wrong secret": {AccessKey: accessKey, SecretKey: "another"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, options{server: server}, func(t *testing.T, s store) {
				err := s.CheckBucket(s.ctx, "b")
				require.ErrorIs(t, err, s3fs.ErrCredentials)
				require.ErrorIs(t, err, fs.ErrPermission)
				assert.Contains(t, err.Error(), "s3.secret-key")
			})
		})
	}
}

// versitygw 1.8.0 answers so, and the body of a HEAD is not there to say why.
func TestCheckBucket_AnAccessKeyRefusedWith404IsNoMissingBucket(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{}, s3test.Always(s3test.Status(404, "XAdminUserNotFound")))()
		err := s.CheckBucket(s.ctx, "b")
		require.ErrorIs(t, err, s3fs.ErrCredentials)
		require.NotErrorIs(t, err, s3fs.ErrNoBucket)
		assert.Contains(t, err.Error(), "s3.access-key")
	})
}

func TestCheckBucket_NoCredentialsAtAll(t *testing.T) {
	none := func(s *s3fs.Settings) { s.AccessKey, s.SecretKey = "", "" }
	bubble(t, options{settings: none}, func(t *testing.T, s store) {
		err := s.CheckBucket(s.ctx, "b")
		require.ErrorIs(t, err, s3fs.ErrCredentials)
		assert.Contains(t, err.Error(), "s3.access-key")
		assert.Zero(t, s.srv.Counts().Total())
	})
}

func TestCheckBucket_MissingPermissionIsNotWrongCredentials(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{}, s3test.Always(s3test.Status(403, "AccessDenied")))()
		err := s.CheckBucket(s.ctx, "b")
		require.ErrorIs(t, err, s3fs.ErrAccessDenied)
		require.NotErrorIs(t, err, s3fs.ErrCredentials)
		assert.Contains(t, err.Error(), "s3:ListBucket")
	})
}

func TestCheckBucket_O49_WrongRegionNamesTheRightOne(t *testing.T) {
	header := func(r *s3test.Reply) *s3test.Reply { return r.WithHeader("X-Amz-Bucket-Region", "eu-central-1") }
	for name, reply := range map[string]*s3test.Reply{
		"redirect": header(s3test.Status(301, "PermanentRedirect")),
		"refusal":  header(s3test.Status(400, "")),
		"refusal that says so in words only": s3test.Raw(400, "application/xml", `<Error><Code>AuthorizationHeaderMalformed</Code>`+
			`<Message>the region 'us-east-1' is wrong; expecting 'eu-central-1'</Message><Region>eu-central-1</Region></Error>`),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, options{}, func(t *testing.T, s store) {
				defer s.srv.Control(s3test.Match{}, s3test.Always(reply))()
				err := s.CheckBucket(s.ctx, "b")
				require.ErrorIs(t, err, s3fs.ErrRegion)
				assert.Contains(t, err.Error(), "eu-central-1")
				assert.Contains(t, err.Error(), "s3.region")
				assert.LessOrEqual(t, s.srv.Counts().Total(), 2)
			})
		})
	}
}

func TestCheckBucket_UnreachableEndpointIsKnownWithinSeconds(t *testing.T) {
	black := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done() // a firewall that drops packets
		return nil, ctx.Err()
	}
	fail := func(err error) func(context.Context, string, string) (net.Conn, error) {
		return func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
		}
	}
	for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){
		"refused":      fail(syscall.ECONNREFUSED),
		"no such host": fail(&net.DNSError{Err: "no such host", Name: "s3.tset", IsNotFound: true}),
		"no answer":    black,
	} {
		t.Run(name, func(t *testing.T) {
			cleanAWS(t)
			synctest.Test(t, func(t *testing.T) {
				s := s3fs.DefaultSettings()
				s.Endpoint, s.AccessKey, s.SecretKey = "http://s3.tset", "a", "b"
				f, err := s3fs.OpenSettings(t.Context(), s, s3fs.WithDialContext(dial))
				require.NoError(t, err)
				start := time.Now()
				err = f.CheckBucket(t.Context(), "b")
				require.ErrorIs(t, err, s3fs.ErrUnreachable)
				assert.Contains(t, err.Error(), "s3.endpoint")
				assert.LessOrEqual(t, time.Since(start), 11*time.Second)
				require.NoError(t, f.Close(t.Context()))
			})
		})
	}
}

func TestCheckBucket_StoreThatIsOnlyBusyIsAskedAgain(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{First: 3}, s3test.Always(s3test.SlowDown()))()
		require.NoError(t, s.CheckBucket(s.ctx, "b"))
	})
	bubble(t, options{}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{}, s3test.Always(s3test.Status(500, "InternalError")))()
		err := s.CheckBucket(s.ctx, "b")
		require.Error(t, err)
		require.NotErrorIs(t, err, s3fs.ErrUnreachable)
	})
}

func TestCheckBucket_CancelEndsIt(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(s.ctx)
		time.AfterFunc(time.Second, func() { cancel(why) })
		defer s.srv.Control(s3test.Match{}, s3test.Always(s3test.Delay(50*time.Second)))()
		start := time.Now()
		require.ErrorIs(t, s.CheckBucket(ctx, "b"), why)
		assert.Equal(t, time.Second, time.Since(start))
	})
}

func TestCheckBucket_OverARealSocketNobodyListensOn(t *testing.T) {
	cleanAWS(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	s := s3fs.DefaultSettings()
	s.Endpoint, s.AccessKey, s.SecretKey = "http://"+addr, "a", "b"
	f, err := s3fs.OpenSettings(t.Context(), s)
	require.NoError(t, err)
	require.ErrorIs(t, f.CheckBucket(t.Context(), "b"), s3fs.ErrUnreachable)
	require.NoError(t, f.Close(t.Context()))
}
