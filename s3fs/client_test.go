package s3fs_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

// record is an HTTP client that answers every request with 200 and keeps its URL and headers.
type record struct {
	last *http.Request
}

func (r *record) RoundTrip(q *http.Request) (*http.Response, error) {
	r.last = q
	if q.Body != nil {
		_, _ = io.Copy(io.Discard, q.Body)
		_ = q.Body.Close()
	}
	return &http.Response{
		StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Etag": {`"e"`}}, Body: http.NoBody, Request: q,
	}, nil
}

// request returns what a HEAD of my.bucket/k looks like with the settings.
func request(t *testing.T, bucket string, set func(*s3fs.Settings)) *http.Request {
	t.Helper()
	s := s3fs.DefaultSettings()
	s.AccessKey, s.SecretKey = accessKey, secretKey
	set(&s)
	r := &record{}
	f, err := s3fs.OpenSettings(t.Context(), s, s3fs.WithHTTPClient(&http.Client{Transport: r}))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close(t.Context())) }()
	_, err = f.Stat(t.Context(), s3fs.Path{Bucket: bucket, Key: "k"})
	require.NoError(t, err)
	return r.last
}

func TestOption_PathStylePutsTheBucketIntoThePath(t *testing.T) {
	cleanAWS(t)
	endpoint := func(s *s3fs.Settings) { s.Endpoint = "http://store.test:9000" }
	r := request(t, "bucket", endpoint)
	assert.Equal(t, "http://bucket.store.test:9000/k", r.URL.String())
	r = request(t, "bucket", func(s *s3fs.Settings) { endpoint(s); s.PathStyle = true })
	assert.Equal(t, "http://store.test:9000/bucket/k", r.URL.String())
}

// O-48: a dotted name in front of the host breaks the certificate's wildcard.
func TestOption_O48_DottedBucketOverTLSUsesThePath(t *testing.T) {
	cleanAWS(t)
	r := request(t, "my.bucket", func(s *s3fs.Settings) { s.Region = "eu-west-1" })
	assert.Equal(t, "https://s3.eu-west-1.amazonaws.com/my.bucket/k", r.URL.String())
	r = request(t, "bucket", func(s *s3fs.Settings) { s.Region = "eu-west-1" })
	assert.Equal(t, "https://bucket.s3.eu-west-1.amazonaws.com/k", r.URL.String())
}

func TestOption_RegionIsSignedFor(t *testing.T) {
	cleanAWS(t)
	signed := func(set func(*s3fs.Settings)) string { return request(t, "b", set).Header.Get("Authorization") }
	endpoint := "http://store.test"
	assert.Contains(t, signed(func(s *s3fs.Settings) { s.Endpoint, s.Region = endpoint, "eu-west-1" }), "/eu-west-1/s3/")
	assert.Contains(t, signed(func(s *s3fs.Settings) { s.Endpoint = endpoint }), "/us-east-1/s3/", "an endpoint without a region")
	t.Setenv("AWS_REGION", "ap-south-1")
	assert.Contains(t, signed(func(s *s3fs.Settings) { s.Endpoint = endpoint }), "/ap-south-1/s3/", "the AWS chain")
}

func TestOpen_WithoutARegionSaysWhatToSet(t *testing.T) {
	cleanAWS(t)
	_, err := s3fs.OpenSettings(t.Context(), s3fs.DefaultSettings())
	require.ErrorIs(t, err, s3fs.ErrNoRegion)
	assert.Contains(t, err.Error(), "s3.region")
}

func TestOption_SessionTokenIsSent(t *testing.T) {
	cleanAWS(t)
	r := request(t, "b", func(s *s3fs.Settings) { s.Region, s.SessionToken = "r", "the-token" })
	assert.Equal(t, "the-token", r.Header.Get("X-Amz-Security-Token"))
	r = request(t, "b", func(s *s3fs.Settings) { s.Region = "r" })
	assert.Empty(t, r.Header.Get("X-Amz-Security-Token"))
}

func TestOption_KeysComeFromTheAWSChainWhenUnset(t *testing.T) {
	cleanAWS(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "FROMENV")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	r := request(t, "b", func(s *s3fs.Settings) { s.Region, s.AccessKey, s.SecretKey = "r", "", "" })
	assert.Contains(t, r.Header.Get("Authorization"), "Credential=FROMENV/")
}

func TestOption_ConnectionMaxBoundsThePoolAndTheRequestsInFlight(t *testing.T) {
	set := func(s *s3fs.Settings) { s.MaxConnections = 6 }
	bubble(t, options{settings: set}, func(t *testing.T, s store) {
		var now, peak atomic.Int64
		defer s.srv.Control(s3test.Match{Op: s3test.PutObject}, func(r s3test.Request) *s3test.Reply {
			peak.Store(max(peak.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			return nil
		})()
		start := time.Now()
		done := make(chan error)
		for range 50 {
			go func() { done <- s.Put(s.ctx, path("x"), bytes.NewReader([]byte("x"))) }()
		}
		for range 50 {
			require.NoError(t, <-done)
		}
		assert.Equal(t, int64(5), peak.Load(), "one of six is kept for calls that publish")
		assert.Equal(t, 10*time.Second, time.Since(start))
	})
}

// A reader holds its connection for as long as its caller takes to read.
func TestOption_ConnectionMaxHoldsForReadersTooAndLeavesAQuarterToOthers(t *testing.T) {
	dials := 0
	bubbleDial(t, func(s *s3fs.Settings) { s.MaxConnections = 4 }, &dials, func(t *testing.T, s store) {
		s.srv.PutObject("b", "x", text(1<<20), nil)
		var readers []io.ReadCloser
		for range 3 {
			r, err := s.Open(s.ctx, path("x"))
			require.NoError(t, err)
			readers = append(readers, r)
		}
		fourth := make(chan io.ReadCloser)
		go func() {
			r, err := s.Open(s.ctx, path("x"))
			assert.NoError(t, err)
			fourth <- r
		}()
		put := make(chan error)
		for range 10 {
			go func() { put <- s.Put(s.ctx, path("y"), bytes.NewReader([]byte("y"))) }()
		}
		for range 10 {
			require.NoError(t, <-put)
		}
		synctest.Wait()
		assert.Equal(t, 4, dials)
		select {
		case <-fourth:
			assert.Fail(t, "a fourth reader may not take the last connection")
		default:
		}
		require.NoError(t, readers[0].Close())
		for _, r := range append(readers[1:], <-fourth) {
			require.NoError(t, r.Close())
		}
	})
}

func TestOption_ConnectionsAreReusedAndClosedWhenIdleTooLong(t *testing.T) {
	cleanAWS(t)
	dials := 0
	bubbleDial(t, func(s *s3fs.Settings) { s.MaxIdleTime = 10 * time.Second }, &dials, func(t *testing.T, s store) {
		for range 20 {
			require.NoError(t, s.Put(s.ctx, path("x"), bytes.NewReader([]byte("x"))))
			time.Sleep(9 * time.Second)
		}
		assert.Equal(t, 1, dials)
		time.Sleep(11 * time.Second)
		require.NoError(t, s.Put(s.ctx, path("x"), bytes.NewReader([]byte("x"))))
		assert.Equal(t, 2, dials)
	})
}

// A busy client must not close and open connections all the time.
func TestOption_ABurstLeavesAllItsConnectionsInThePool(t *testing.T) {
	cleanAWS(t)
	dials := 0
	bubbleDial(t, func(s *s3fs.Settings) { s.MaxConnections = 40 }, &dials, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{}, s3test.Always(s3test.Delay(time.Second)))()
		for range 3 {
			done := make(chan error)
			for range 30 {
				go func() { done <- s.Put(s.ctx, path("x"), bytes.NewReader([]byte("x"))) }()
			}
			for range 30 {
				require.NoError(t, <-done)
			}
		}
		assert.Equal(t, 30, dials)
	})
}

func TestOption_CallTimeoutEndsACallWithItsRetries(t *testing.T) {
	bubble(t, options{settings: func(s *s3fs.Settings) { s.CallTimeout = 3 * time.Second }}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{}, s3test.Always(s3test.Delay(50*time.Second)))()
		start := time.Now()
		_, err := s.Stat(s.ctx, path("x"))
		e, ok := errors.AsType[*s3fs.CallTimeoutError](err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, 3*time.Second, e.After)
		assert.Equal(t, 3*time.Second, time.Since(start))
		oe, _ := errors.AsType[*s3fs.OpError](err)
		assert.Equal(t, retrymode.Transient, oe.Class)
		assert.Equal(t, "stat s3://b/x: no result within the call timeout of 3s", err.Error())

		err = s.Put(s.ctx, path("x"), bytes.NewReader([]byte("x")))
		oe, _ = errors.AsType[*s3fs.OpError](err)
		assert.Equal(t, retrymode.Ambiguous, oe.Class, "the write may have happened")
	})
}

func TestCallTimeout_IsDerivedFromRetriesBackoffAndSize(t *testing.T) {
	cleanAWS(t)
	s := s3fs.DefaultSettings()
	s.Region = "r"
	s.Retry.MaxRetries, s.Retry.MaxBackoff = 3, 20*time.Second
	f, err := s3fs.OpenSettings(t.Context(), s)
	require.NoError(t, err)
	assert.Equal(t, 160*time.Second, f.CallTimeout(0))
	assert.Equal(t, 160*time.Second+4*80*time.Second, f.CallTimeout(5<<20), "5 MiB at 64 KiB/s are 80 s, four times")
	require.NoError(t, f.Close(t.Context()))
}

// Beyond the settings, nothing in the environment changes the number of attempts.
func TestClient_EnvironmentDoesNotChangeTheAttempts(t *testing.T) {
	for _, env := range []map[string]string{
		{"AWS_MAX_ATTEMPTS": "7"}, {"AWS_MAX_ATTEMPTS": "-1"}, {"AWS_RETRY_MODE": "adaptive"}, {"AWS_RETRY_MODE": "standard", "AWS_MAX_ATTEMPTS": "2"},
	} {
		bubbleEnv(t, env, options{}, func(t *testing.T, s store) {
			defer s.srv.Control(s3test.Match{}, s3test.Always(s3test.SlowDown()))()
			_, err := s.Stat(s.ctx, path("x"))
			require.Error(t, err)
			assert.Equal(t, 4, s.srv.Counts().Total(), "%v", env)
			assert.Equal(t, int64(4), s.Stats().Total.Attempts)
			assert.Equal(t, int64(4), s.Stats().Total.Throttles)
		})
	}
}

func TestClient_StoreBehindACertificateFromTheCABundle(t *testing.T) {
	cleanAWS(t)
	srv := s3test.New(s3test.Options{Buckets: []string{"b"}})
	defer srv.Close()
	https := httptest.NewUnstartedServer(srv)
	https.Config.ErrorLog = log.New(io.Discard, "", 0)
	https.StartTLS()
	defer https.Close()
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	s := settings(srv)
	s.Endpoint, s.Retry.MaxRetries = https.URL, 0

	f, err := s3fs.OpenSettings(t.Context(), s)
	require.NoError(t, err)
	_, err = f.Stat(t.Context(), path("x"))
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	assert.True(t, unknown, "%v", err)
	require.NoError(t, f.Close(t.Context()))

	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: https.Certificate().Raw})
	require.NoError(t, os.WriteFile(bundle, block, 0o600))
	t.Setenv("AWS_CA_BUNDLE", bundle)
	f, err = s3fs.OpenSettings(t.Context(), s)
	require.NoError(t, err)
	body := text(3 << 20)
	require.NoError(t, f.Put(t.Context(), path("x"), bytes.NewReader(body)))
	r, err := f.Open(t.Context(), path("x"))
	assert.Equal(t, body, readAll(t, r, err))
	require.NoError(t, f.Close(t.Context()))
}

func TestClient_RedirectsAreNotFollowed(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{}, s3test.Always(
			s3test.Status(307, "TemporaryRedirect").WithHeader("Location", "http://elsewhere.test/x").WithHeader("X-Amz-Bucket-Region", "eu-west-1")))()
		err := s.Put(s.ctx, path("x"), bytes.NewReader([]byte("x")))
		require.ErrorIs(t, err, s3fs.ErrRegion)
		assert.Contains(t, err.Error(), "eu-west-1")
		assert.Equal(t, 1, s.srv.Counts().Total())
	})
}

func TestClient_LogsWithoutSecretsToTheLoggerGiven(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		var logged bytes.Buffer
		set := settings(s.srv)
		set.SessionToken = "the-session-token"
		f, err := s3fs.OpenSettings(s.ctx, set, s3fs.WithDialContext(s.srv.DialContext),
			s3fs.WithLogger(slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))))
		require.NoError(t, err)
		defer s.srv.Control(s3test.Match{Op: s3test.PutObject}, func(r s3test.Request) *s3test.Reply {
			if r.Header.Get("If-None-Match") != "" {
				return s3test.Status(501, "NotImplemented")
			}
			return nil
		})()
		require.NoError(t, f.PutIfAbsent(s.ctx, path("x"), []byte("x")))
		require.NoError(t, f.Close(s.ctx))
		assert.Contains(t, logged.String(), "conditional writes")
		for _, secret := range []string{secretKey, "the-session-token", "Signature"} {
			assert.NotContains(t, logged.String(), secret)
		}
	})
}

func TestErrors_HoldNoSecretWhateverTheStoreEchoes(t *testing.T) {
	bubble(t, options{server: s3test.Options{AccessKey: "SOMEBODYELSE"}}, func(t *testing.T, s store) {
		_, err := s.Stat(s.ctx, path("x"))
		require.Error(t, err)
		err2 := s.Put(s.ctx, path("x"), bytes.NewReader(nil))
		require.ErrorIs(t, err2, s3fs.ErrCredentials)
		for _, text := range []string{err.Error(), err2.Error()} {
			for _, secret := range []string{secretKey, "Signature=", "X-Amz-Signature"} {
				assert.NotContains(t, text, secret)
			}
		}
	})
}

// The SDK closes a body while net/http may still hold it; over loopback that used to cost a healthy connection now and then.
func TestClient_ManyCallsOverRealSocketsNeedOneAttemptEach(t *testing.T) {
	cleanAWS(t)
	srv := s3test.New(s3test.Options{Buckets: []string{"b"}, MinPartSize: 1})
	defer srv.Close()
	_, err := srv.ListenTCP()
	require.NoError(t, err)
	f, err := s3fs.OpenSettings(t.Context(), settings(srv))
	require.NoError(t, err)
	api := f.API()
	crc := multipart.Checksum([]byte("x"))
	for i := range 100 {
		to := multipart.Target{Bucket: "b", Key: strings.Repeat("k", i+1)}
		id, err := api.Create(t.Context(), to, "t")
		require.NoError(t, err)
		etag, err := api.UploadPart(t.Context(), to, id, 1, bytes.NewReader([]byte("x")), 1, crc)
		require.NoError(t, err)
		_, err = api.Complete(t.Context(), to, id, []multipart.Part{{Number: 1, Size: 1, ETag: etag, CRC: crc}}, 1, crc)
		require.NoError(t, err)
	}
	assert.Equal(t, int64(300), f.Stats().Total.Attempts)
	require.NoError(t, f.Close(context.WithoutCancel(t.Context())))
}
