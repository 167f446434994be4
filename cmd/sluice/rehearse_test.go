package main

import (
	"context"
	"regexp"
	"strconv"
	"testing"
	"time"

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
	assert.Contains(t, r.stdout, "calls/s by 6 threads, 50 ms a call")
}

// Calls that come in on time pile up behind a limiter that lets fewer through; the row says how far it got.
func TestRehearse_SaysWhereCallsPileUp(t *testing.T) {
	var w world
	r := w.sluice(t.Context(), "rehearse", "--rate", "80", "--every", "3s", "--for", "30m")
	require.Equal(t, 0, r.code, r.stderr)
	assert.Contains(t, r.stdout, "you are here: drip")
	assert.Contains(t, r.stdout, "\nadaptive, limiter sdk: only the first ")
	assert.NotContains(t, r.stdout, "\nadaptive: ")
}

// In bursts most of the time is rest, so calls per second hide what a burst is held up by. The blog's burst takes 3.3 s, and up to 10.8 s with the SDK's limiter.
func TestRehearse_SaysWhatABurstTakes(t *testing.T) {
	var w world
	r := w.sluice(t.Context(), "rehearse", "--burst", "1000", "--every", "1s", "--for", "10m")
	require.Equal(t, 0, r.code, r.stderr)
	m := regexp.MustCompile(`a burst takes ([0-9.]+) s undisturbed; .* adaptive: ([0-9.]+) s, .* limiter sdk: [0-9.]+ s, ([0-9.]+) s at worst`).FindStringSubmatch(r.stdout)
	require.NotNil(t, m, r.stdout)
	for i, want := range []float64{1000.0 / 32 / 10, 1000.0 / 32 / 10, 10.8} {
		seconds, err := strconv.ParseFloat(m[1+i], 64)
		require.NoError(t, err)
		assert.InEpsilon(t, want, seconds, 0.1)
	}
}

func TestRehearse_EndsWithASignal(t *testing.T) {
	var w world
	ctx, stop := context.WithCancel(t.Context())
	stop()
	r := w.sluice(ctx, "rehearse")
	assert.Equal(t, exitFailed, r.code)
	assert.Empty(t, r.stdout)
}

func TestShortDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1234 * time.Microsecond: "1.23 ms", 123456 * time.Microsecond: "123 ms", 12345 * time.Millisecond: "12.3 s", 1234567 * time.Millisecond: "1235 s",
	} {
		assert.Equal(t, want, short(d))
	}
}

func TestRehearse_BadInputIsExitCode2(t *testing.T) {
	var w world
	for _, args := range [][]string{{"--threads", "0"}, {"--share", "2"}, {"-D", "a=b"}, {"missing.yaml"}, {"--limit", "x"}, {"a.yaml", "b.yaml"}} {
		r := w.sluice(t.Context(), append([]string{"rehearse"}, args...)...)
		assert.Equal(t, exitUsage, r.code, args)
		assert.NotEmpty(t, r.stderr, args)
	}
}
