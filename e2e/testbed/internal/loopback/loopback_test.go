package loopback_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/e2e/testbed/internal/loopback"
)

func TestFreeAddr_CanBeListenedAt(t *testing.T) {
	addr, err := loopback.FreeAddr(t.Context())
	require.NoError(t, err)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", addr)
	require.NoError(t, err)
	host, _, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1", host)
	require.NoError(t, l.Close())
}

func TestAnswers_IsAboutTheStatus(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	assert.True(t, loopback.Answers(t.Context(), s.Client(), s.URL, http.StatusNoContent))
	assert.False(t, loopback.Answers(t.Context(), s.Client(), s.URL, http.StatusOK))
	s.Close()
	assert.False(t, loopback.Answers(t.Context(), s.Client(), s.URL, http.StatusNoContent), "nobody is there")
	assert.False(t, loopback.Answers(t.Context(), s.Client(), "://", http.StatusNoContent))
}
