package main

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs/s3test"
)

// callsPerSecond reads the first column of a mode's row.
func callsPerSecond(t *testing.T, out, mode string) float64 {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + mode + ` +([0-9.]+) `).FindStringSubmatch(out)
	require.NotNil(t, m, "no row %s in\n%s", mode, out)
	v, err := strconv.ParseFloat(m[1], 64)
	require.NoError(t, err)
	return v
}

// At a wall of 400/s with 96 threads the modes deliver what was measured with real clients elsewhere: 391 and 106 calls per second.
func TestRehearse_ShowsWhatWasMeasured(t *testing.T) {
	var w world
	r := w.sluice(t.Context(), "rehearse", "--threads", "96", "--limit", "400")
	require.Equal(t, 0, r.code, r.stderr)
	assert.InDelta(t, 391, callsPerSecond(t, r.stdout, "standard"), 6)
	assert.InDelta(t, 106, callsPerSecond(t, r.stdout, "adaptive, limiter sdk"), 6)
	assert.GreaterOrEqual(t, callsPerSecond(t, r.stdout, "adaptive"), 0.985*400)
	assert.Contains(t, r.stdout, "you are here: steady")
}

func TestRehearse_TakesThreadsAndRetriesFromTheJob(t *testing.T) {
	w := newWorld(t, s3test.Options{})
	w.keys["sink.writers"] = "3"
	w.keys["s3.upload.max.concurrent.uploads"] = "2"
	w.keys["s3.retry.max-num-retries"] = "7"
	r := w.sluice(t.Context(), "rehearse", "JOB", "--call-time", "50ms")
	require.Equal(t, 0, r.code, r.stderr)
	assert.InDelta(t, 6/0.05, callsPerSecond(t, r.stdout, "standard"), 1)
	assert.Contains(t, r.stdout, "7 retries")
}

func TestRehearse_BadInputIsExitCode2(t *testing.T) {
	var w world
	for _, args := range [][]string{{"--threads", "0"}, {"--share", "2"}, {"-D", "a=b"}, {"missing.yaml"}, {"--limit", "x"}} {
		r := w.sluice(t.Context(), append([]string{"rehearse"}, args...)...)
		assert.Equal(t, exitUsage, r.code, args)
		assert.NotEmpty(t, r.stderr, args)
	}
}
