package s3fs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/s3fs"
)

func TestFromConfig_WithoutKeysGivesTheDefaults(t *testing.T) {
	s, err := s3fs.FromConfig(load(t, nil))
	require.NoError(t, err)
	want := s3fs.DefaultSettings()
	assert.Equal(t, want, s)
	require.NoError(t, want.Validate())
	assert.Equal(t, 50, s.MaxConnections)
	for _, d := range []time.Duration{s.ConnectTimeout, s.SocketTimeout, s.MaxIdleTime, s.CloseTimeout} {
		assert.Equal(t, time.Minute, d)
	}
	assert.True(t, s.Checksums)
	assert.False(t, s.PathStyle)
	assert.Zero(t, s.CallTimeout)
}

func TestFromConfig_ReadsEveryKeyAndTheOldSpellings(t *testing.T) {
	s, err := s3fs.FromConfig(load(t, map[string]string{
		"s3.endpoint": "http://127.0.0.1:7070", "s3.region": "eu-west-1", "s3.path.style.access": "true",
		"s3.access.key": "a", "s3.secret.key": "b", "s3.session-token": "c",
		"s3.connection.max": "8", "s3.connection.timeout": "9 s", "s3.socket.timeout": "10 s", "s3.connection.max-idle-time": "11 s",
		"s3.call.timeout": "12 s", "s3.checksum-validation.enabled": "false", "s3.close.timeout": "13 s",
		"s3.retry.max-num-retries": "5",
	}))
	require.NoError(t, err)
	retry := retrymode.DefaultOptions()
	retry.MaxRetries = 5
	assert.Equal(t, s3fs.Settings{
		Endpoint: "http://127.0.0.1:7070", Region: "eu-west-1", PathStyle: true, AccessKey: "a", SecretKey: "b", SessionToken: "c",
		MaxConnections: 8, ConnectTimeout: 9 * time.Second, SocketTimeout: 10 * time.Second,
		MaxIdleTime: 11 * time.Second, CallTimeout: 12 * time.Second, CloseTimeout: 13 * time.Second, Retry: retry,
	}, s)
}

func TestOptions_ListsEveryKey(t *testing.T) {
	var names []string
	for _, i := range s3fs.Keys() {
		names = append(names, i.Name)
		assert.NotEmpty(t, i.Doc)
	}
	assert.ElementsMatch(t, strings.Fields(`s3.endpoint s3.region s3.path-style-access s3.access-key s3.secret-key s3.session-token
		s3.connection.max s3.connection.timeout s3.socket.timeout
		s3.connection.max-idle-time s3.call.timeout s3.checksum-validation.enabled s3.close.timeout`), names)
}

func TestLoad_RefusesValuesOutOfBounds(t *testing.T) {
	r, err := config.NewRegistry(s3fs.Keys(), retrymode.Keys())
	require.NoError(t, err)
	for key, values := range map[string][]string{
		"s3.endpoint":                 {"127.0.0.1:7070", "ftp://x", "http://", "http://a:b@host", "http://host/path", "http://host?x=1", "http://h\x00st"},
		"s3.region":                   {""},
		"s3.access-key":               {""},
		"s3.connection.max":           {"1", "0", "100000"},
		"s3.connection.timeout":       {"0", "-1 s"},
		"s3.socket.timeout":           {"0 ms"},
		"s3.connection.max-idle-time": {"0"},
	} {
		for _, v := range values {
			_, err := config.Load(r, config.Map("test", map[string]string{key: v}))
			require.Error(t, err, "%s=%q", key, v)
			assert.Contains(t, err.Error(), key)
		}
	}
	for _, v := range []string{"http://127.0.0.1:7070", "https://s3.example.com", "https://s3.example.com/", "http://[::1]:80"} {
		_, err := config.Load(r, config.Map("test", map[string]string{"s3.endpoint": v}))
		require.NoError(t, err, v)
	}
}

func TestFromConfig_HalfAKeyPairIsAnError(t *testing.T) {
	for missing, keys := range map[string]map[string]string{
		"s3.secret-key":    {"s3.access-key": "the-key"},
		"s3.access-key":    {"s3.secret-key": "the-secret"},
		"s3.session-token": {"s3.session-token": "the-token"},
	} {
		_, err := s3fs.FromConfig(load(t, keys))
		require.ErrorContains(t, err, missing+": ")
		for _, v := range keys {
			assert.NotContains(t, err.Error(), v)
		}
	}
}

func TestValidate_ReportsAllProblemsTogether(t *testing.T) {
	err := s3fs.Settings{Endpoint: "nonsense", AccessKey: "a", CallTimeout: -1}.Validate()
	for _, key := range []string{
		"s3.endpoint", "s3.secret-key", "s3.connection.max",
		"s3.connection.timeout", "s3.socket.timeout", "s3.connection.max-idle-time", "s3.call.timeout", "s3.retry.mode", "s3.retry.max-backoff",
	} {
		assert.ErrorContains(t, err, key)
	}
}

func TestSettings_DoNotPrintSecrets(t *testing.T) {
	s := s3fs.DefaultSettings()
	s.AccessKey, s.SecretKey, s.SessionToken = "hidden-1", "hidden-2", "hidden-3"
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		assert.NotContains(t, fmt.Sprintf(verb, s), "hidden")
	}
}
