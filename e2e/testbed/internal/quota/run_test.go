package quota

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/e2e/testbed/internal/nginx"
	"github.com/sluice-go/sluice/e2e/testbed/internal/store"
)

// The test binary is the store; the job is the real command, built once.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == store.Subcommand {
		os.Exit(store.Main())
	}
	goleak.VerifyTestMain(m,
		// Idle connections of the SDK's own HTTP client.
		goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"),
		goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

// command builds the sluice command from this repository.
func command(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sluice")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./cmd/sluice")
	build.Dir = filepath.Join("..", "..", "..", "..")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return path
}

// text is a strings.Builder for several goroutines.
type text struct {
	mu sync.Mutex
	b  strings.Builder
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

// small is an experiment whose jobs take a few seconds: some 40 calls at 20 a second. A call takes longer than the quota needs to have
// room for one more, so that one caller alone is never refused twice in a row.
func small(t *testing.T, o Options) (*experiment, func(Lane, string, int) Job) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	o.Size, o.Rate, o.Burst, o.CallTime, o.Timeout = 100*partSize, 20, 2, 60*time.Millisecond, time.Minute
	o.StoreCommand = []string{self, store.Subcommand}
	o.Log = &text{}
	e := &experiment{o: o, dir: t.TempDir()}
	return e, func(lane Lane, mode string, retries int) Job {
		return Job{Lane: lane, Mode: mode, Writers: 8, Retries: retries, Size: 12 * partSize, File: 2 * partSize, Interval: time.Minute, Detail: true}
	}
}

// checkProven checks what holds for any job that was refused and came to its end.
func checkProven(t *testing.T, r Result) {
	t.Helper()
	require.Zero(t, r.ExitCode, r.LastError)
	assert.True(t, r.Proven, r.Why)
	assert.EqualValues(t, 61440, r.Rows) // 12 parts of 5 MiB in rows of 1 KiB
	assert.EqualValues(t, 60<<20, r.Write.Bytes)
	require.NotNil(t, r.Read)
	assert.EqualValues(t, 60<<20, r.Read.Bytes)
	assert.Positive(t, r.Write.Quota.Refused, "8 writers at once are more than 3")
	assert.Zero(t, r.Write.Quota.Failed)
}

func TestExperiment_OnTheRealCommandAndStore(t *testing.T) {
	sluice := command(t)
	t.Run("closed connections: adaptive is proven and standard dies", func(t *testing.T) {
		e, job := small(t, Options{Sluice: sluice, Parallel: 2})
		results, err := e.all(t.Context(), []Job{job(Close, Adaptive, 10), job(Close, Standard, 0)})
		require.NoError(t, err)
		require.Len(t, results, 2)
		checkProven(t, results[0])
		assert.Equal(t, 1, results[1].ExitCode)
		assert.Contains(t, results[1].LastError, "upload")
		assert.False(t, results[1].Proven)
		assert.Nil(t, results[1].Read)
		require.NotNil(t, results[1].Write.Client, "a job that dies reports what it has asked for")
		assert.Positive(t, results[1].Write.Quota.Refused)
		assert.Empty(t, judge(results))
		assert.Contains(t, Report(e.o, results), "| 8 writers, 10 retries")
		left, err := filepath.Glob(filepath.Join(e.dir, "*", storeDir))
		require.NoError(t, err)
		assert.Empty(t, left, "the objects are removed")
	})
	t.Run("503 from nginx: adaptive is proven and both sides count the same", func(t *testing.T) {
		if _, err := nginx.Find(); err != nil {
			t.Skipf("the lane of nginx is not tested: %v", err)
		}
		e, job := small(t, Options{Sluice: sluice, Parallel: 1})
		results, err := e.all(t.Context(), []Job{job(SlowDown, Adaptive, 10)})
		require.NoError(t, err)
		require.Len(t, results, 1)
		checkProven(t, results[0])
		assert.Contains(t, results[0].agreement(), "write: client and quota agree")
		assert.Contains(t, results[0].agreement(), "read-back: client and quota agree")
	})
}

func TestRun_NothingThatCanRun_EndsWithTheReason(t *testing.T) {
	var out bytes.Buffer
	err := Run(t.Context(), Options{Out: &out, Log: &out, Sluice: "/no/such/sluice", Size: 2 << 30, Rate: 8, Parallel: 1, Timeout: time.Minute})
	require.ErrorIs(t, err, ErrLost)
	assert.True(t, strings.HasPrefix(out.String(), "quota: FAILED: --sluice: "), out.String())
	assert.Equal(t, 1, strings.Count(out.String(), "\n"))
}

func TestRun_StoreThatDoesNotStart_EndsAllJobs(t *testing.T) {
	var out bytes.Buffer
	o := valid()
	o.Out, o.Log, o.Only, o.Dir, o.StoreCommand = &out, &text{}, "^close/", t.TempDir(), []string{"/bin/false"}
	require.ErrorIs(t, Run(t.Context(), o), ErrLost)
	assert.Contains(t, out.String(), "store did not start")
	left, err := os.ReadDir(o.Dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestRun_Interrupted_SaysSoAndLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	var out bytes.Buffer
	o := valid()
	o.Out, o.Log, o.Only, o.Dir = &out, &text{}, "^close/", t.TempDir()
	require.ErrorIs(t, Run(ctx, o), ErrLost)
	assert.Contains(t, out.String(), "interrupted")
	left, err := os.ReadDir(o.Dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}
