package s3fs_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"syscall"
	"testing"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

const throttled = `<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`

func TestOpError_NamesOperationPathReasonAndAttemptsOnce(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{}, s3test.Always(s3test.Raw(503, "application/xml", throttled)))()
		err := s.Put(s.ctx, path("a/b"), bytes.NewReader(nil))
		assert.Regexp(t, `^put s3://b/a/b: SlowDown after 4 attempts: Please reduce your request rate\. \[status 503, request \w+\]$`, err.Error())
		api, ok := errors.AsType[smithy.APIError](err)
		require.True(t, ok, "the SDK's own error stays inside")
		assert.Equal(t, "SlowDown", api.ErrorCode())

		_, err = s.API().UploadPart(s.ctx, target, "u", 7, bytes.NewReader(nil), 0, 0)
		oe, _ := errors.AsType[*s3fs.OpError](err)
		assert.Regexp(t, `^upload part 7 of s3://b/k: SlowDown after 4 attempts: Please reduce your request rate\. \[status 503, request \w+\]$`, oe.Error())
		assert.Regexp(t, `^upload part 7 of s3://b/k \(upload u\) after 4 attempts: SlowDown: Please reduce your request rate\. \[status 503, request \w+\]$`,
			err.Error())
	})
}

func TestOpError_WithoutAnAnswerGivesTheCauseOfTheTransport(t *testing.T) {
	cleanAWS(t)
	s := s3fs.DefaultSettings()
	s.Endpoint, s.AccessKey, s.SecretKey, s.Retry.MaxRetries = "http://store.test", "a", "b", 0
	f, err := s3fs.OpenSettings(t.Context(), s, s3fs.WithDialContext(func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}))
	require.NoError(t, err)
	_, err = f.Stat(t.Context(), path("k"))
	require.ErrorIs(t, err, s3fs.ErrUnreachable)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	assert.Equal(t, "stat s3://b/k: the endpoint cannot be reached: dial tcp: "+syscall.ECONNREFUSED.Error()+
		" (check s3.endpoint, the network and whether the store is up)", err.Error())
	require.NoError(t, f.Close(t.Context()))
}

func TestOpError_HintsOnWhatPagesPeople(t *testing.T) {
	for _, c := range []struct {
		status     int
		code, hint string
		is         error
	}{
		{403, "AccessDenied", "s3:PutObject", s3fs.ErrAccessDenied},
		{403, "AccessDenied", "", fs.ErrPermission},
		{403, "RequestTimeTooSkewed", "clock", nil},
		{403, "InvalidAccessKeyId", "s3.access-key", s3fs.ErrCredentials},
		{403, "SignatureDoesNotMatch", "s3.secret-key", s3fs.ErrCredentials},
		{400, "ExpiredToken", "cannot renew itself", s3fs.ErrCredentials},
		{404, "NoSuchBucket", "create the bucket", s3fs.ErrNoBucket},
		{400, "AuthorizationHeaderMalformed", "s3.region", s3fs.ErrRegion},
		{400, "BadDigest", "damaged", nil},
		{412, "PreconditionFailed", "", s3fs.ErrExists},
	} {
		bubble(t, options{}, func(t *testing.T, s store) {
			defer s.srv.Control(s3test.Match{}, s3test.Always(s3test.Status(c.status, c.code)))()
			err := s.Put(s.ctx, path("k"), bytes.NewReader(nil))
			e, ok := errors.AsType[*s3fs.OpError](err)
			require.True(t, ok, c.code)
			assert.Contains(t, e.Hint, c.hint, c.code)
			assert.Contains(t, err.Error(), c.code)
			if c.is != nil {
				assert.ErrorIs(t, err, c.is, c.code)
			}
		})
	}
}

func TestOpError_AnswerThatIsNotS3StaysReadable(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{}, s3test.Always(s3test.Raw(502, "text/html", "<html><body>Bad Gateway</body></html>")))()
		err := s.Put(s.ctx, path("k"), bytes.NewReader(nil))
		require.ErrorContains(t, err, "put s3://b/k: BadGateway after 4 attempts: ")
		e, _ := errors.AsType[*s3fs.OpError](err)
		assert.Equal(t, retrymode.Transient, e.Class)
	})
}

func TestOpError_PathsNoStoreCanHaveSendNothing(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		for _, p := range []s3fs.Path{{Bucket: "", Key: "k"}, {Bucket: "b/c", Key: "k"}, {Bucket: "b", Key: "\xff"}} {
			_, err := s.Stat(s.ctx, p)
			_, ok := errors.AsType[*s3fs.PathError](err)
			assert.True(t, ok, "%v", err)
		}
		for _, f := range []func() error{
			func() error { return s.Put(s.ctx, path(""), bytes.NewReader(nil)) },
			func() error { return s.PutIfAbsent(s.ctx, path(""), nil) },
			func() error { return second(s.Open(s.ctx, path(""))) },
			func() error { return second(s.Stat(s.ctx, path(""))) },
			func() error { return second(s.API().Create(s.ctx, multipart.Target{Bucket: "b"}, "t")) },
		} {
			require.ErrorIs(t, f(), fs.ErrInvalid)
		}
		assert.Zero(t, s.srv.Counts().Total())
	})
}

// The retryer refuses a wait that cannot end before the deadline: the error says so and keeps the store's own words.
func TestOpError_SaysWhenTheDeadlineLeftNoTimeForAnotherAttempt(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{}, s3test.Always(
			s3test.Raw(503, "application/xml", throttled).WithHeader("Retry-After", "3600")))()
		err := s.Put(s.ctx, path("k"), bytes.NewReader(nil))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "put s3://b/k: SlowDown: Please reduce your request rate.")
		require.ErrorContains(t, err, "the deadline of the call leaves no time for another attempt")
		assert.Equal(t, 1, s.srv.Counts().Total())
	})
}
