package store_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/e2e/testbed/internal/accesslog"
	"github.com/sluice-go/sluice/e2e/testbed/internal/store"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == store.Subcommand {
		os.Exit(store.Main())
	}
	goleak.VerifyTestMain(m,
		// Idle connections of HTTP clients.
		goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"),
		goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

const bucket = "room"

// start gives a running store with one bucket, and a client that never retries,
// so that one call is one request.
func start(t *testing.T, cfg store.Config) (*store.Store, *s3.Client) {
	t.Helper()
	if cfg.Root == "" {
		cfg.Root = filepath.Join(t.TempDir(), "root")
	}
	s, err := store.Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Stop(context.Background())) })
	client := newClient(s, s.SecretKey())
	_, err = client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucket)})
	require.NoError(t, err)
	return s, client
}

func newClient(s *store.Store, secret string) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(s.Endpoint()),
		Region:       store.Region,
		UsePathStyle: true,
		Credentials:  credentials.NewStaticCredentialsProvider(s.AccessKey(), secret, ""),
		Retryer:      aws.NopRetryer{},
	})
}

func put(t *testing.T, c *s3.Client, key string, body []byte) {
	t.Helper()
	_, err := c.PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: aws.String(bucket), Key: aws.String(key), Body: bytes.NewReader(body),
	})
	require.NoError(t, err)
}

func get(t *testing.T, c *s3.Client, key string) []byte {
	t.Helper()
	out, err := c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String(key)})
	require.NoError(t, err)
	defer out.Body.Close()
	body, err := io.ReadAll(out.Body)
	require.NoError(t, err)
	return body
}

func part(t *testing.T, c *s3.Client, key string, id *string, n int32, body []byte) types.CompletedPart {
	t.Helper()
	out, err := c.UploadPart(t.Context(), &s3.UploadPartInput{
		Bucket: aws.String(bucket), Key: aws.String(key), UploadId: id,
		PartNumber: aws.Int32(n), Body: bytes.NewReader(body),
	})
	require.NoError(t, err)
	return types.CompletedPart{PartNumber: aws.Int32(n), ETag: out.ETag}
}

// slowPut sends a body of the given size as it arrives. A presigned URL carries
// no hash of the body, so the request can start before its body is known.
func slowPut(ctx context.Context, c *s3.Client, key string, body io.Reader, size int64) error {
	signed, err := s3.NewPresignClient(c).PresignPutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String(key)})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, signed.Method, signed.URL, body)
	if err != nil {
		return err
	}
	req.ContentLength = size
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

func TestStart_PutAndGet_RoundTripAndTheObjectIsAPlainFile(t *testing.T) {
	before, err := os.Getwd()
	require.NoError(t, err)
	s, client := start(t, store.Config{})
	body := []byte("one row\nanother row\n")
	put(t, client, "a/b", body)

	assert.Equal(t, body, get(t, client, "a/b"))
	file, err := os.ReadFile(filepath.Join(s.Root(), bucket, "a", "b"))
	require.NoError(t, err)
	assert.Equal(t, body, file)
	after, err := os.Getwd()
	require.NoError(t, err)
	assert.Equal(t, before, after, "the working directory of the parent stays")
}

func TestKillAndRestart_UploadInProgressContinuesAtTheSameAddress(t *testing.T) {
	s, client := start(t, store.Config{})
	endpoint := s.Endpoint()
	up, err := client.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{
		Bucket: aws.String(bucket), Key: aws.String("big"),
	})
	require.NoError(t, err)
	first := bytes.Repeat([]byte("x"), 5<<20)
	one := part(t, client, "big", up.UploadId, 1, first)

	require.NoError(t, s.Kill())
	select {
	case <-s.Done():
	default:
		t.Fatal("the process is gone when Kill returns")
	}
	require.NoError(t, s.Restart(t.Context()))
	assert.Equal(t, endpoint, s.Endpoint())

	listed, err := client.ListParts(t.Context(), &s3.ListPartsInput{
		Bucket: aws.String(bucket), Key: aws.String("big"), UploadId: up.UploadId,
	})
	require.NoError(t, err)
	require.Len(t, listed.Parts, 1)
	assert.Equal(t, *one.ETag, *listed.Parts[0].ETag)

	two := part(t, client, "big", up.UploadId, 2, []byte("end"))
	_, err = client.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{
		Bucket: aws.String(bucket), Key: aws.String("big"), UploadId: up.UploadId,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{one, two}},
	})
	require.NoError(t, err)
	assert.Equal(t, append(first, "end"...), get(t, client, "big"))
}

func TestRestart_WhileRunning_IsRefused(t *testing.T) {
	s, _ := start(t, store.Config{})
	require.ErrorIs(t, s.Restart(t.Context()), store.ErrRunning)
}

func TestStop_Twice_IsFine(t *testing.T) {
	s, _ := start(t, store.Config{})
	require.NoError(t, s.Stop(t.Context()))
	require.NoError(t, s.Stop(t.Context()))
	require.NoError(t, s.Kill())
}

func TestStart_ChildThatCannotServe_SaysWhy(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	_, err := store.Start(t.Context(), store.Config{Root: root, Command: []string{"/bin/sh", "-c", "echo no disk left; exit 3"}})
	require.ErrorIs(t, err, store.ErrStart)
	assert.ErrorContains(t, err, "no disk left")
	assert.ErrorContains(t, err, "exit status 3")
}

func TestStart_ChildThatNeverAnswers_EndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := store.Start(ctx, store.Config{Root: filepath.Join(t.TempDir(), "root"), Command: []string{"/bin/sh", "-c", "exec cat >/dev/null"}})
	require.ErrorIs(t, err, store.ErrStart)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestAccessLog_CountsTheCallsThatWereMade(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "access.log")
	s, client := start(t, store.Config{Root: filepath.Join(dir, "root"), AccessLog: log})
	mark, err := accesslog.End(log)
	require.NoError(t, err)

	for _, key := range []string{"p=1/x y", "p=1/b", "c"} {
		put(t, client, key, []byte("row\n"))
		get(t, client, key)
	}
	_, err = client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String("absent")})
	require.Error(t, err)
	_, err = client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String(bucket), Key: aws.String("c")})
	require.NoError(t, err)
	up, err := client.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: aws.String(bucket), Key: aws.String("m")})
	require.NoError(t, err)
	part(t, client, "m", up.UploadId, 1, []byte("row\n"))
	_, err = client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(bucket)})
	require.NoError(t, err)
	_, err = newClient(s, "wrong").GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String("c")})
	assert.Error(t, err)

	c, err := accesslog.Read(log, mark, accesslog.ToEnd)
	require.NoError(t, err)
	assert.Equal(t, map[string]int64{
		"PutObject": 3, "GetObject": 5, "HeadObject": 1,
		"CreateMultipartUpload": 1, "UploadPart": 1, "ListObjectsV2": 1,
	}, c.Operations())
	assert.Equal(t, map[int]int64{200: 10, 403: 1, 404: 1}, c.Statuses())
	assert.EqualValues(t, 12, c.Requests())
	assert.Zero(t, c.Throttled())
}

func TestAccessLog_OverloadIsCountedAsThrottled(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "access.log")
	_, client := start(t, store.Config{Root: filepath.Join(dir, "root"), AccessLog: log, MaxRequests: 1})
	put(t, client, "k", []byte("row\n"))
	mark, err := accesslog.End(log)
	require.NoError(t, err)

	// The one slot is held by an upload whose body does not end; every other
	// request in that time is refused. More than the sockets' buffers hold has gone
	// when the server reads the body, which it does in the slot: a request that
	// came before could have it, and the upload would be the one to be refused.
	const buffers, rest = 64 << 20, 64 << 10
	body, w := io.Pipe()
	held := make(chan error, 1)
	go func() { held <- slowPut(t.Context(), client, "slow", body, buffers+rest) }()
	_, err = w.Write(make([]byte, buffers))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String(bucket), Key: aws.String("k")})
		return err != nil
	}, 10*time.Second, time.Millisecond)
	_, err = w.Write(make([]byte, rest))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, <-held)

	c, err := accesslog.Read(log, mark, accesslog.ToEnd)
	require.NoError(t, err)
	assert.EqualValues(t, 1, c.Throttled())
	assert.EqualValues(t, 1, c.Statuses()[503])
}
