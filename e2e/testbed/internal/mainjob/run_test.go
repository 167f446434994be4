package mainjob

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"
	"github.com/sluice-go/sluice/e2e/testbed/internal/store"
)

// drive runs the driver on the fake job and returns all that it printed.
func drive(t *testing.T, ctx context.Context, breaks string, change func(*Options)) (out, log string, err error) {
	t.Helper()
	t.Setenv(fault, breaks)
	o := defaults(t)
	o.Size, o.Row, o.Interval, o.Timeout = 64<<10, 64, 40*time.Millisecond, time.Minute
	o.Dir = t.TempDir()
	o.StoreCommand = []string{o.Sluice, store.Subcommand}
	var outText, logText text
	o.Out, o.Log = &outText, &logText
	if change != nil {
		change(&o)
	}
	err = Run(ctx, o)
	left, globErr := filepath.Glob(filepath.Join(o.Dir, "*"))
	require.NoError(t, globErr)
	assert.Equal(t, o.Keep, len(left) > 0, "the work directory is removed unless it is to be kept: %v", left)
	return outText.String(), logText.String(), err
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

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

func lastLine(out string) string {
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	return lines[len(lines)-1]
}

func TestRun_EveryRowThere_IsProvenInTheLastLine(t *testing.T) {
	out, log, err := drive(t, t.Context(), faultNone, nil)
	require.NoError(t, err, out)
	assert.Equal(t, "PROVEN: 1024 of 1024 rows, each exactly once", lastLine(out))
	assert.Contains(t, out, "plain files, read without S3: 3 files, 1,024 rows, 65,536 bytes")
	assert.Contains(t, out, "write: client and server agree: 3 HTTP attempts, 0 of them throttled")
	assert.Contains(t, out, "read-back: client and server agree: 4 HTTP attempts, 0 of them throttled")
	assert.Contains(t, log, `msg="checkpoint committed" id=3`, "the job's own lines are passed on")
}

func TestRun_Kills_ProvenAllTheSame(t *testing.T) {
	out, log, err := drive(t, t.Context(), faultNone, func(o *Options) { o.Crash, o.Seed = 3, 11 })
	require.NoError(t, err, out+log)
	assert.Equal(t, "PROVEN: 1024 of 1024 rows, each exactly once", lastLine(out))
	assert.Contains(t, out, "killed 3 times: inside checkpoint ")
	assert.Contains(t, out, ", after checkpoint ")
	assert.Equal(t, 3, strings.Count(log, "starting it again"))
	assert.Contains(t, out, "killed processes report nothing")
}

func TestRun_NotProven_SaysWhy(t *testing.T) {
	for _, c := range []struct {
		name, breaks string
		change       func(*Options)
		why          string
	}{
		{"a row is missing", faultLose, nil, "read-back: 1 rows are missing; the files hold 1023 rows instead of 1024; the files hold 65472 bytes instead of 65536"},
		{"the reader is wrong", faultLie, nil, "the files hold 1023 rows instead of 1024; the files hold 65472 bytes instead of 65536"},
		{"a row stands in for another", faultRepeat, nil, "1 rows in the files are there more than once"},
		{"the job fails", faultExit, nil, "sluice run: exit status 1"},
		{"the store dies", faultStore, nil, "store: process ended: exit status 7"},
		{"no checkpoints to be killed in", faultRush, func(o *Options) { o.Crash, o.Seed = 40, 1 }, "too few checkpoints: 3 of at least 6"},
		{"nothing to run", faultNone, func(o *Options) { o.Size = 0; o.Dir = os.DevNull + "/none" }, "SIZE: must be more than 0"},
		{"no room", faultNone, func(o *Options) { o.Size = 1 << 61 }, "MiB free, the run needs about "},
		{"no store", faultNone, func(o *Options) { o.StoreCommand = []string{"/bin/sh", "-c", "exit 3"} }, "store did not start"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, log, err := drive(t, t.Context(), c.breaks, c.change)
			require.ErrorIs(t, err, ErrNotProven)
			assert.Regexp(t, "^NOT PROVEN: ", lastLine(out))
			assert.Contains(t, lastLine(out), c.why, log)
		})
	}
}

func TestRun_Keep_LeavesTheObjectsAndReports(t *testing.T) {
	var dir string
	_, log, err := drive(t, t.Context(), faultNone, func(o *Options) { o.Keep = true; dir = o.Dir })
	require.NoError(t, err)
	kept, err := filepath.Glob(filepath.Join(dir, "sluice-run-*"))
	require.NoError(t, err)
	require.Len(t, kept, 1)
	assert.Contains(t, log, "kept: "+kept[0])
	for _, name := range []string{jobFile, "run-1.json", verifyFile, accessLogFile, "store/sluice/out/part-1"} {
		assert.FileExists(t, filepath.Join(kept[0], name))
	}
}

func TestRun_Interrupted_StopsTheJobAndSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var log text
	stop := writerFunc(func(p []byte) (int, error) {
		if strings.Contains(string(p), "hanging") {
			cancel(errors.New("interrupted"))
		}
		return log.Write(p)
	})
	out, _, err := drive(t, ctx, faultHang, func(o *Options) { o.Log = stop })
	require.ErrorIs(t, err, ErrNotProven)
	assert.Equal(t, "NOT PROVEN: interrupted", lastLine(out))
}

func TestRun_Timeout_IsNamed(t *testing.T) {
	out, _, err := drive(t, t.Context(), faultHang, func(o *Options) { o.Timeout = time.Second })
	require.ErrorIs(t, err, ErrNotProven)
	assert.Equal(t, "NOT PROVEN: not done within 1s", lastLine(out))
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestJudge_MemoryAboveTheLimit_FailsTheRun(t *testing.T) {
	r := &run{o: defaults(t)}
	ok := sluicecmd.VerifyReport{Proven: true, Rows: r.o.Rows()}
	assert.Empty(t, r.judge(written{peak: 316 << 20}, ok))
	assert.Equal(t, []string{"peak RSS of the writing process: 317 MiB is more than 316 MiB"}, r.judge(written{peak: 317 << 20}, ok))
}
