package quotafront

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// upstream is a server that remembers what reached it.
type upstream struct {
	*httptest.Server
	seen                   atomic.Int64
	method, uri, host, got atomic.Value
}

func newUpstream(t *testing.T, status int) *upstream {
	t.Helper()
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		u.seen.Add(1)
		u.method.Store(r.Method)
		u.uri.Store(r.RequestURI)
		u.host.Store(r.Host)
		u.got.Store(string(body))
		w.Header().Set("ETag", `"e"`)
		w.WriteHeader(status)
		_, err = io.WriteString(w, "answer")
		assert.NoError(t, err)
	}))
	t.Cleanup(u.Close)
	return u
}

func start(t *testing.T, cfg Config) *Front {
	t.Helper()
	f, err := Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, f.Stop(context.Background())) })
	return f
}

func client(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func put(t *testing.T, c *http.Client, f *Front, body string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, f.Endpoint()+"/room/p%3D1/x%20y?partNumber=1", strings.NewReader(body))
	require.NoError(t, err)
	req.Host = "signed.example:1"
	resp, err := c.Do(req)
	if err == nil {
		t.Cleanup(func() { _ = resp.Body.Close() })
	}
	return resp, err
}

func TestFront_WhatPasses_ReachesTheServerAsItWasSigned(t *testing.T) {
	u := newUpstream(t, http.StatusOK)
	f := start(t, Config{Upstream: u.URL})
	resp, err := put(t, client(t), f, "rows")
	require.NoError(t, err)
	answer, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, "answer", string(answer))
	assert.Equal(t, `"e"`, resp.Header.Get("ETag"))
	assert.Equal(t, http.MethodPut, u.method.Load())
	assert.Equal(t, "/room/p%3D1/x%20y?partNumber=1", u.uri.Load())
	assert.Equal(t, "signed.example:1", u.host.Load())
	assert.Equal(t, "rows", u.got.Load())
	assert.Equal(t, Counts{Requests: 1}, f.Counts())
}

func TestFront_AboveTheQuota_TheConnectionIsClosedWithoutAnAnswer(t *testing.T) {
	u := newUpstream(t, http.StatusOK)
	var clock atomic.Int64
	f := start(t, Config{Upstream: u.URL, Rate: 8, Burst: 1, Now: func() time.Time { return at(int(clock.Load())) }})
	c := client(t)
	for range 2 {
		_, err := put(t, c, f, "rows")
		require.NoError(t, err)
	}
	for _, body := range []string{"", strings.Repeat("x", 5<<20)} {
		_, err := put(t, c, f, body)
		require.Error(t, err)
		_, isNet := errors.AsType[*net.OpError](err)
		assert.True(t, isNet || errors.Is(err, io.EOF), "%v", err)
	}
	assert.EqualValues(t, 2, u.seen.Load())
	assert.Equal(t, Counts{Requests: 4, Closed: 2}, f.Counts())

	clock.Store(125)
	_, err := put(t, c, f, "rows")
	require.NoError(t, err, "a new connection is welcome as soon as the quota has room")
	assert.Equal(t, Counts{Requests: 5, Closed: 2}, f.Counts())
}

func TestFront_CallTime_IsTheLeastThatACallTakes(t *testing.T) {
	f := start(t, Config{Upstream: newUpstream(t, http.StatusOK).URL, CallTime: 30 * time.Millisecond})
	began := time.Now()
	_, err := put(t, client(t), f, "rows")
	require.NoError(t, err)
	assert.GreaterOrEqual(t, time.Since(began), 30*time.Millisecond)
}

func TestFront_FailuresOfTheServer_AreCountedApart(t *testing.T) {
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusInternalServerError} {
		f := start(t, Config{Upstream: newUpstream(t, status).URL})
		resp, err := put(t, client(t), f, "rows")
		require.NoError(t, err)
		assert.Equal(t, status, resp.StatusCode)
		assert.Equal(t, Counts{Requests: 1, Failed: 1}, f.Counts())
	}
	f := start(t, Config{Upstream: newUpstream(t, http.StatusNotFound).URL})
	_, err := put(t, client(t), f, "rows")
	require.NoError(t, err)
	assert.Equal(t, Counts{Requests: 1}, f.Counts(), "a 404 is an answer")
}

func TestFront_ServerThatIsGone_GivesNoAnswerEither(t *testing.T) {
	u := newUpstream(t, http.StatusOK)
	u.Close()
	f := start(t, Config{Upstream: u.URL})
	_, err := put(t, client(t), f, "rows")
	require.Error(t, err)
	assert.Equal(t, Counts{Requests: 1, Failed: 1}, f.Counts())
}

func TestFront_BadUpstream_IsRefused(t *testing.T) {
	_, err := Start(t.Context(), Config{Upstream: "http://a b"})
	require.Error(t, err)
}
