package s3test_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithy "github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/minio/crc64nvme"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs/s3test"
)

const (
	accessKey = "AKIDEXAMPLE"
	secretKey = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
)

// credentials with the given secret.
func credentials(key, secret string) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: key, SecretAccessKey: secret}, nil
	})
}

// newClient makes an SDK client that never retries, so that a test sees every answer.
func newClient(srv *s3test.Server, change ...func(*s3.Options)) *s3.Client {
	o := s3.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String(srv.URL()),
		UsePathStyle: true,
		HTTPClient:   srv.Client(),
		Credentials:  credentials(accessKey, secretKey),
		Retryer:      aws.NopRetryer{},
	}
	for _, f := range change {
		f(&o)
	}
	return s3.New(o)
}

// bubble runs a test in virtual time with a server that has the bucket "b". synctest fails the test when a goroutine is
// left after Close.
func bubble(t *testing.T, o s3test.Options, f func(t *testing.T, srv *s3test.Server, client *s3.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.Buckets = append(o.Buckets, "b")
		srv := s3test.New(o)
		defer srv.Close()
		f(t, srv, newClient(srv))
	})
}

func put(t *testing.T, client *s3.Client, key, body string, change ...func(*s3.PutObjectInput)) (*s3.PutObjectOutput, error) {
	t.Helper()
	in := &s3.PutObjectInput{Bucket: aws.String("b"), Key: aws.String(key), Body: strings.NewReader(body)}
	for _, f := range change {
		f(in)
	}
	return client.PutObject(t.Context(), in)
}

func get(t *testing.T, client *s3.Client, key string, change ...func(*s3.GetObjectInput)) (*s3.GetObjectOutput, string, error) {
	t.Helper()
	in := &s3.GetObjectInput{Bucket: aws.String("b"), Key: aws.String(key)}
	for _, f := range change {
		f(in)
	}
	out, err := client.GetObject(t.Context(), in)
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(out.Body)
	return out, string(body), errors.Join(err, out.Body.Close())
}

func head(t *testing.T, client *s3.Client, key string) (*s3.HeadObjectOutput, error) {
	t.Helper()
	return client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String("b"), Key: aws.String(key), ChecksumMode: types.ChecksumModeEnabled})
}

// codeOf is the S3 error code a client sees.
func codeOf(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

func statusOf(err error) int {
	var re *smithyhttp.ResponseError
	if errors.As(err, &re) {
		return re.HTTPStatusCode()
	}
	return 0
}

func requireCode(t *testing.T, err error, status int, code string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, code, codeOf(err), err.Error())
	require.Equal(t, status, statusOf(err), err.Error())
}

// crc is CRC-64/NVME by another implementation than the server's.
func crc(data string) string {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], crc64nvme.Checksum([]byte(data)))
	return base64.StdEncoding.EncodeToString(raw[:])
}

// pattern is n bytes that differ from place to place.
func pattern(n int, seed byte) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i) ^ seed
	}
	return string(b)
}

// do sends a request that the SDK would not send.
func do(t *testing.T, srv *s3test.Server, method, path, body string, header map[string]string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, srv.URL()+path, bytes.NewReader([]byte(body)))
	require.NoError(t, err)
	for k, v := range header {
		req.Header.Set(k, v)
	}
	client := srv.Client()
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	require.NoError(t, err)
	data, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	res.Body = io.NopCloser(bytes.NewReader(data))
	return res
}

func bodyOf(t *testing.T, res *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(data)
}
