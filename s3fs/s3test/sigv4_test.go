package s3test_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs/s3test"
)

func TestAccess_TheKeyIDIsChecked(t *testing.T) {
	bubble(t, s3test.Options{AccessKey: accessKey}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		_, err := put(t, client, "k", "x")
		require.NoError(t, err)
		wrong := newClient(srv, func(o *s3.Options) { o.Credentials = credentials("AKIDOTHER", secretKey) })
		_, err = put(t, wrong, "k", "y")
		requireCode(t, err, 403, "InvalidAccessKeyId")
		_, err = head(t, wrong, "k")
		require.Equal(t, 403, statusOf(err))
		anonymous := newClient(srv, func(o *s3.Options) { o.Credentials = aws.AnonymousCredentials{} })
		_, _, err = get(t, anonymous, "k")
		requireCode(t, err, 403, "AccessDenied")
		res := do(t, srv, "GET", "/b/k", "", map[string]string{"Authorization": "Basic dTpw"})
		require.Contains(t, bodyOf(t, res), "<Code>AuthorizationHeaderMalformed</Code>")
		o, _ := srv.Object("b", "k")
		require.Equal(t, "x", string(o.Data))
	})
}

func TestAccess_SignaturesAreChecked(t *testing.T) {
	bubble(t, s3test.Options{AccessKey: accessKey, SecretKey: secretKey}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		_, err := put(t, client, "k v", "x", func(in *s3.PutObjectInput) { in.Metadata = map[string]string{"m": "a  b"} })
		require.NoError(t, err)
		_, err = client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("b"), Prefix: aws.String("k v"), Delimiter: aws.String("/+&=")})
		require.NoError(t, err)
		id, parts := upload(t, client, "m", []string{"x"}, withCRC)
		_, err = complete(t, client, "m", id, parts)
		require.NoError(t, err)

		wrong := newClient(srv, func(o *s3.Options) { o.Credentials = credentials(accessKey, "other") })
		_, err = put(t, wrong, "k", "y")
		requireCode(t, err, 403, "SignatureDoesNotMatch")

		_, err = client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("unsigned")},
			s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware))
		require.NoError(t, err)
		require.Equal(t, []string{"k v", "m", "unsigned"}, srv.Keys("b"))
	})
}

func TestAccess_AClockFarOffIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := s3test.New(s3test.Options{Buckets: []string{"b"}, AccessKey: accessKey, SecretKey: secretKey})
		defer srv.Close()
		// The request is signed before, and arrives after, a wait of 16 minutes.
		srv.Control(s3test.Match{Nth: 1}, func(s3test.Request) *s3test.Reply {
			time.Sleep(16 * time.Minute)
			return nil
		})
		_, err := put(t, newClient(srv), "k", "x")
		requireCode(t, err, 403, "RequestTimeTooSkewed")
		_, err = put(t, newClient(srv), "k", "x")
		require.NoError(t, err)
	})
}
