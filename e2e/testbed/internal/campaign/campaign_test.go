package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/e2e/testbed/internal/store"
)

// sluicePath is the command under test, as TestMain has built it.
const sluicePath = "CAMPAIGN_TEST_BINARY"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == store.Subcommand {
		os.Exit(store.Main())
	}
	os.Exit(test(m))
}

func test(m *testing.M) int {
	dir, err := os.MkdirTemp("", "campaign-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "sluice")
	build := exec.Command("go", "build", "-o", path, "./cmd/sluice")
	build.Dir = filepath.Join("..", "..", "..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build sluice: %v\n%s", err, out)
		return 1
	}
	if err := os.Setenv(sluicePath, path); err != nil {
		panic(err)
	}
	code := m.Run()
	if code != 0 {
		return code
	}
	if err := goleak.Find(
		// Idle connections of the SDK's own HTTP client.
		goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"),
		goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
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

func options(t *testing.T) Options {
	self, err := os.Executable()
	require.NoError(t, err)
	return Options{
		Kills: 1, Seed: 1, Sluice: os.Getenv(sluicePath), Dir: t.TempDir(), Timeout: 2 * time.Minute,
		Out: &text{}, StoreCommand: []string{self, store.Subcommand},
	}
}

// jobsOf runs jobs of a test's own on a campaign's store.
func jobsOf(t *testing.T, o Options, plans ...jobPlan) (tally Tally, out string) {
	t.Helper()
	tally = newTally()
	c := &campaign{o: o, leftovers: map[string]bool{}, lengths: firstLengths}
	require.NoError(t, c.open(t.Context()))
	defer func() { require.NoError(t, c.close(t.Context())) }()
	for _, p := range plans {
		require.NoError(t, c.job(t.Context(), p, &tally))
	}
	return tally, o.Out.(*text).String()
}

// quick is a job of a second or two.
func quick(lives ...lifePlan) jobPlan {
	return jobPlan{
		seed: 1, number: 1, writers: 2, file: 64 << 10, onCheckpoint: true, interval: 200 * time.Millisecond,
		row: 200, rows: 20_000, pace: 10_000, mode: "standard", retained: 1, retries: 3, lives: lives,
	}
}

// A share of what `make crash` does: each way to die, and the server with it.
func TestJob_WhateverDies_EveryRowIsThereOnce(t *testing.T) {
	p := quick(
		lifePlan{end: storing, fraction: 0.5, sweep: true},
		lifePlan{end: completing},
		lifePlan{end: committing, fraction: 0.3, trouble: serverComplete, down: 100 * time.Millisecond},
		lifePlan{mishap: flipManifest, end: storing, term: true, fraction: 0.5},
		lifePlan{mishap: serverRestart, end: stopping, fraction: 0.5},
		lifePlan{mishap: cutBlob, end: finishing, fraction: 0.5},
	)
	p.file, p.row, p.rows, p.pace, p.interval, p.retries, p.again = 8<<20, 1<<10, 80<<10, 24<<10, 500*time.Millisecond, 8, true
	tally, out := jobsOf(t, options(t), p)
	assert.True(t, tally.Clean(), out)
	assert.EqualValues(t, 80<<10, tally.Rows)
	assert.GreaterOrEqual(t, tally.KillCount(), 4, out)
	assert.Equal(t, 2, tally.ServerKills+tally.ServerKillsInComplete)
	assert.Equal(t, 1, tally.Mishaps[flipManifest])
	assert.GreaterOrEqual(t, tally.Failures, 1, "the damaged manifest was refused")
}

func TestJob_DiskOfTheCheckpointsFullAndReadOnly_IsSaidAndNothingIsLost(t *testing.T) {
	if err := canMount(t.TempDir()); err != nil {
		t.Skip("no disk can be mounted: ", err)
	}
	p := quick(
		lifePlan{trouble: diskFull, end: between},
		lifePlan{mishap: startFull, end: committing, fraction: 0.5},
		lifePlan{trouble: diskReadOnly, end: between},
		lifePlan{mishap: startReadOnly, end: committing, fraction: 0.5},
	)
	p.disk, p.rows = true, 40_000
	tally, out := jobsOf(t, options(t), p)
	assert.True(t, tally.Clean(), out)
	assert.EqualValues(t, 40_000, tally.Rows)
	assert.Equal(t, map[mishap]int{startFull: 1, startReadOnly: 1}, tally.Mishaps)
	assert.Equal(t, map[trouble]int{diskFull: 1, diskReadOnly: 1}, tally.Troubles)
	assert.GreaterOrEqual(t, tally.Failures, 4)
}

// wrap makes a command that does something before the real one, as a product with a bug would.
func wrap(t *testing.T, script string) string {
	path := filepath.Join(t.TempDir(), "sluice")
	text := fmt.Sprintf("#!/bin/sh\nset -e\n%s\nexec %s \"$@\"\n", script, os.Getenv(sluicePath))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	return path
}

func TestJob_ABrokenProduct_IsFoundKeptAndCanBeRepeated(t *testing.T) {
	for _, c := range []struct {
		name, script string
		check        func(t *testing.T, tally Tally)
		say          string
	}{
		{"rows are lost, doubled and corrupt", `
if [ "$1" = verify ]; then (
	cd "$(dirname "$2")/../../store/sluice/job-1"
	set -- part_*
	rm "$1"; cp "$2" "$2.again"; echo junk >> "$3"
) fi`, func(t *testing.T, tally Tally) {
			assert.Positive(t, tally.Lost)
			assert.Positive(t, tally.Doubled)
			assert.Positive(t, tally.Corrupt)
			assert.Zero(t, tally.Rows)
		}, "read-back: 1 file missing"},
		{"a temporary file is left", `
if [ "$1" = verify ]; then touch "$(dirname "$2")/checkpoints/job-1/0-of-1/.tmp-1-1"; fi`, func(t *testing.T, tally Tally) {
			assert.EqualValues(t, 1, tally.Leaked)
			assert.Zero(t, tally.Lost)
		}, "left behind: "},
		{"a durable checkpoint is forgotten", `
if [ "$1" = run ]; then (
	cd "$(dirname "$2")/checkpoints"
	rm -rf job-1 ../../../store/sluice/job-1
) fi`, func(t *testing.T, tally Tally) { assert.Zero(t, tally.Rows) }, "checkpoint 0 was restored, but "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := exec.LookPath("/bin/sh"); err != nil {
				t.Skip("no shell")
			}
			o := options(t)
			o.Sluice = wrap(t, c.script)
			tally, out := jobsOf(t, o, quick(lifePlan{end: between, after: 1, fraction: 0.1}))
			assert.Equal(t, 1, tally.Failed, out)
			assert.False(t, tally.Clean())
			assert.Contains(t, out, c.say)
			assert.Contains(t, out, "again: make crash SEED=1 CRASHFLAGS=\"--job 1\"")
			c.check(t, tally)
			kept, err := filepath.Glob(filepath.Join(o.Dir, "sluice-crash-*", jobsDir, "job-1", "process-1.log"))
			require.NoError(t, err)
			assert.Len(t, kept, 1)
		})
	}
}

func TestRun_Interrupted_EndsAndSaysWhy(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	o := options(t)
	o.Kills = 1000
	why := errors.New("enough")
	time.AfterFunc(2*time.Second, func() { cancel(why) })
	_, err := Run(ctx, o)
	assert.ErrorIs(t, err, why)
}
