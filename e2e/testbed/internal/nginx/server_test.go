package nginx

import (
	"context"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/e2e/testbed/internal/loopback"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFind_NoNginx_SaysHowToGetIt(t *testing.T) {
	_, err := find([]string{"no-such-nginx", filepath.Join(t.TempDir(), "nginx")})
	require.ErrorIs(t, err, ErrMissing)
	assert.ErrorContains(t, err, "apt-get install nginx")
}

func TestStart_WhatIsNoNginx_SaysWhatItSaid(t *testing.T) {
	_, err := Start(t.Context(), Config{Rate: 8, Upstream: "127.0.0.1:1", Dir: t.TempDir(), Path: "/bin/false"})
	require.ErrorIs(t, err, ErrStart)
	assert.ErrorContains(t, err, "exit code 1")
}

func TestStart_BadConfig_IsNamed(t *testing.T) {
	_, err := Start(t.Context(), Config{Rate: -1, Upstream: "127.0.0.1:1", Dir: t.TempDir(), Path: "/bin/false"})
	require.ErrorIs(t, err, ErrStart)
	assert.ErrorContains(t, err, "rate: -1")
}

// needed skips a test where there is no nginx.
func needed(t *testing.T) {
	t.Helper()
	if _, err := Find(); err != nil {
		t.Skipf("not tested: %v", err)
	}
}

func TestServer_LimitsRequestsAndAnswersSlowDown(t *testing.T) {
	needed(t)
	var seen atomic.Int64
	var host atomic.Value
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		host.Store(r.Host)
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	t.Cleanup(upstream.Close)
	// One request a minute: the burst and one more pass, and nothing else while the test runs.
	s, err := Start(t.Context(), Config{Rate: 1.0 / 60, Burst: 2, Upstream: strings.TrimPrefix(upstream.URL, "http://"), Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Stop()) })

	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	statuses := map[int]int{}
	var body []byte
	for range 6 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.Endpoint()+"/room/key", strings.NewReader(strings.Repeat("x", 1<<20)))
		require.NoError(t, err)
		req.Host = "signed.example:1"
		req.Header.Set("Expect", "100-continue")
		resp, err := client.Do(req)
		require.NoError(t, err)
		statuses[resp.StatusCode]++
		body, err = io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	assert.Equal(t, map[int]int{200: 3, 503: 3}, statuses)
	assert.EqualValues(t, 3, seen.Load())
	assert.Equal(t, "signed.example:1", host.Load())
	var e struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
	}
	require.NoError(t, xml.Unmarshal(body, &e), string(body))
	assert.Equal(t, "SlowDown", e.Code)

	c, err := s.Counts(t.Context())
	require.NoError(t, err)
	assert.Equal(t, Counts{Requests: 6, Refused: 3}, c, "the health checks are not counted")
	c, err = s.Counts(t.Context())
	require.NoError(t, err)
	assert.Zero(t, c, "since the last call")
}

func TestServer_StopsWithItsProcess(t *testing.T) {
	needed(t)
	s, err := Start(t.Context(), Config{Rate: 8, Upstream: "127.0.0.1:1", Dir: t.TempDir()})
	require.NoError(t, err)
	require.NoError(t, s.Stop())
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	assert.False(t, loopback.Answers(ctx, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, s.Endpoint(), http.StatusNoContent))
}

func TestServer_ThatEndsByItself_IsSaidAtStop(t *testing.T) {
	needed(t)
	s, err := Start(t.Context(), Config{Rate: 8, Upstream: "127.0.0.1:1", Dir: t.TempDir()})
	require.NoError(t, err)
	s.proc.Kill()
	<-s.Done()
	assert.ErrorContains(t, s.Stop(), "nginx has ended")
}
