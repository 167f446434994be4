package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs/s3test"
)

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return lines[len(lines)-1]
}

func TestRun_EndsWithAClosingStatementAndVerifyProvesIt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		start := time.Now()
		r := w.sluice(t.Context(), "run", "JOB")
		require.Equal(t, 0, r.code, r.stderr)
		assert.Empty(t, r.complaints())
		assert.InDelta(t, 30, time.Since(start).Seconds(), 0.5)
		// 3,000 rows of 100 bytes; each of two writers fills files of 200 rows.
		assert.Regexp(t, `^finished: 3000 rows in 1[56] files are published \(300000 bytes\); 0 rows are durable in the last checkpoint and not yet published; 0 rows were generated after it`, r.stdout)
		assert.Equal(t, 1, strings.Count(r.stderr, "msg=configuration "))
		assert.InDelta(t, 30, strings.Count(r.stderr, "msg=progress "), 1, "a line a second")

		r = w.sluice(t.Context(), "verify", "JOB")
		require.Equal(t, 0, r.code, r.stderr)
		assert.Equal(t, "PROVEN: 3000 of 3000 rows, each exactly once", lastLine(r.stdout))
		assert.Empty(t, r.complaints())
	})
}

func TestRun_ASecondRunOfAFinishedJobChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		require.Equal(t, 0, w.sluice(t.Context(), "run", "JOB").code)
		w.store.ResetTrace()
		r := w.sluice(t.Context(), "run", "JOB")
		require.Equal(t, 0, r.code, r.stderr)
		assert.Contains(t, r.stdout, "finished: 3000 rows")
		requireNoWrites(t, w.store)
	})
}

func TestRun_AStopIsExitCode4AndTheNextRunGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		defer cancel()
		r := w.sluice(ctx, "run", "JOB")
		assert.Equal(t, 4, r.code)
		assert.Equal(t, []string{"sluice: stopped before the source ended"}, r.complaints())
		assert.Regexp(t, `^stopped: \d+ rows in \d+ files are published \(\d+ bytes\); \d+ rows are durable in the last checkpoint and not yet published; 0 rows were generated after it`, r.stdout)
		assert.Contains(t, r.stderr, "told to stop, taking a final checkpoint")

		v := w.sluice(t.Context(), "verify", "JOB")
		assert.Equal(t, 3, v.code)
		assert.Contains(t, lastLine(v.stdout), "it is not finished")

		require.Equal(t, 0, w.sluice(t.Context(), "run", "JOB").code)
		assert.Equal(t, 0, w.sluice(t.Context(), "verify", "JOB").code)
	})
}

func TestVerify_IsExitCode3WhenARowIsNotProven(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		require.Equal(t, 0, w.sluice(t.Context(), "run", "JOB").code)
		var file string
		for _, key := range w.store.Keys("data") {
			if strings.HasPrefix(key, "out/part_") {
				file = key
			}
		}
		require.True(t, w.store.DeleteObject("data", file))
		report := filepath.Join(w.dir, "verify.json")
		r := w.sluice(t.Context(), "verify", "JOB", "--report", report)
		assert.Equal(t, 3, r.code)
		assert.Contains(t, r.stdout, "missing files: 1\n  "+file+"\n")
		assert.Contains(t, lastLine(r.stdout), "NOT PROVEN: 1 file missing; ")
		assert.Equal(t, []string{"sluice: not proven"}, r.complaints())

		var got struct {
			Proven bool
			Why    string
		}
		readJSON(t, report, &got)
		assert.False(t, got.Proven)
		assert.Contains(t, got.Why, "1 file missing")
	})
}

func TestRun_AFailureIsExitCode1AndSaidOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.store.Control(s3test.Match{Op: s3test.PutObject, KeyPrefix: "out/part_"}, s3test.Always(s3test.Status(403, "AccessDenied")))
		report := filepath.Join(w.dir, "run.json")
		r := w.sluice(t.Context(), "run", "JOB", "--report", report)
		assert.Equal(t, 1, r.code)
		assert.Regexp(t, `^failed: 0 rows in 0 files are published`, r.stdout)
		require.NotEmpty(t, r.complaints())
		for _, line := range r.complaints() {
			assert.Regexp(t, `^sluice: .*s3://data/out/part_job_0-of-1_e1_w[01]_0\.raw.*AccessDenied`, line)
			assert.Equal(t, 1, strings.Count(strings.Join(r.complaints(), "\n"), line), "said once")
		}
		assert.NotContains(t, r.stderr+r.stdout, "Usage:")
		assert.FileExists(t, report, "also of a run that failed")
	})
}

func readJSON(t *testing.T, file string, v any) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, v))
}

// What the reports say of the traffic is what the store has counted.
func TestReport_CountsWhatTheStoreCounts(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.store.Control(s3test.Match{Op: s3test.PutObject, Every: 5}, s3test.Always(s3test.SlowDown()))
		w.keys["s3.retry.mode"] = "standard"
		report := filepath.Join(w.dir, "report.json")
		require.Equal(t, 0, w.sluice(t.Context(), "run", "JOB", "--report", report).code)
		type traffic struct{ Calls, Attempts, Throttles, Retries int }
		var run struct {
			Rows, Bytes, Files int64
			Checkpoints        int
			Started            bool
			Seconds            float64 `json:"duration_seconds"`
			Totals             traffic
		}
		readJSON(t, report, &run)
		counts := w.store.Counts()
		assert.Equal(t, []int64{3000, 300_000}, []int64{run.Rows, run.Bytes})
		assert.True(t, run.Started)
		assert.InDelta(t, 30, run.Seconds, 3)
		assert.GreaterOrEqual(t, run.Checkpoints, 6)
		assert.Equal(t, counts.Total(), run.Totals.Attempts)
		assert.Equal(t, counts.Status(503), run.Totals.Throttles)
		assert.Positive(t, run.Totals.Throttles)
		assert.Equal(t, run.Totals.Attempts-run.Totals.Calls, run.Totals.Retries)

		require.Equal(t, 0, w.sluice(t.Context(), "verify", "JOB", "--report", report).code)
		var verify struct {
			Proven   bool
			Rows     int64
			Expected int64 `json:"expected_rows"`
			Totals   traffic
		}
		readJSON(t, report, &verify)
		assert.True(t, verify.Proven)
		assert.Equal(t, []int64{3000, 3000}, []int64{verify.Rows, verify.Expected})
		assert.Equal(t, w.store.Counts().Total()-counts.Total(), verify.Totals.Attempts)
	})
}

func TestOptions_ListsEveryOptionAsATable(t *testing.T) {
	var w world
	r := w.sluice(t.Context(), "options")
	require.Equal(t, 0, r.code)
	assert.True(t, strings.HasPrefix(r.stdout, "| Key | Type | Default | Meaning |\n|---|---|---|---|\n| `checkpoint.dir` | string | (none) | "), r.stdout)
	for key, value := range map[string]string{
		"s3.retry.mode": "adaptive", "s3.retry.max-num-retries": "3", "s3.retry.base-delay": "100 ms",
		"s3.retry.throttle.base-delay": "1 s", "s3.retry.max-backoff": "20 s", "s3.retry.circuit-breaker.enabled": "false",
		"sink.memory.budget": "256 mb", "s3.connection.max": "50", "checkpoint.interval": "10 s",
	} {
		assert.Regexp(t, "(?m)^\\| `"+key+"` \\| [^|]+(\\\\\\|[^|]+)* \\| `"+value+"` \\|", r.stdout)
	}
}

func TestOptions_TheCommandLineIsOverTheEnvironmentOverTheFile(t *testing.T) {
	w := newWorld(t, s3test.Options{})
	w.env = []string{"SLUICE_SINK_WRITERS=5", "SLUICE_CHECKPOINT_INTERVAL=7 s", "HOME=/nowhere"}
	r := w.sluice(t.Context(), "options", "JOB", "-D", "checkpoint.interval=9 s", "--define", "s3.retry.mode=STANDARD")
	require.Equal(t, 0, r.code, r.stderr)
	job := filepath.Join(w.dir, "job.yaml")
	for _, line := range []string{
		"checkpoint.interval: 9 s  # -D",
		"sink.writers: 5  # environment SLUICE_SINK_WRITERS",
		"datagen.number-of-rows: 3000  # " + job + ":4",
		"s3.retry.mode: standard  # -D",
		"s3.connection.max: 50  # default",
		"s3.secret-key: ******  # " + job + ":10",
	} {
		assert.Contains(t, strings.Split(r.stdout, "\n"), line)
	}
}

func TestOptions_OldSpellingsAreWarnedOf(t *testing.T) {
	w := newWorld(t, s3test.Options{})
	delete(w.keys, "checkpoint.interval")
	w.keys["execution.checkpointing.interval"] = "8 s"
	r := w.sluice(t.Context(), "options", "JOB")
	require.Equal(t, 0, r.code, r.stderr)
	assert.Contains(t, r.stdout, "checkpoint.interval: 8 s")
	assert.Contains(t, r.stderr, "level=WARN")
	assert.Contains(t, r.stderr, "execution.checkpointing.interval")
}

func TestSecrets_AreInNoOutputReportCheckpointOrObject(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		const token = "session-token-not-to-be-printed"
		w.keys["s3.session-token"] = token
		report := filepath.Join(w.dir, "report.json")
		seen := map[string]string{}
		for _, args := range [][]string{
			{"options", "JOB"}, {"run", "JOB", "--report", report}, {"verify", "JOB"},
			{"run", "JOB", "-D", "s3.secret-key", testSecret},
			{"run", "JOB", "-D", "s3.secret-key" + testSecret},
			{"options", "JOB", "-D", "s3.secret.kay=" + testSecret},
			{"run", "JOB", "-D", "s3.session-token="},
		} {
			r := w.sluice(t.Context(), args...)
			seen[strings.Join(args, " ")] = r.stdout + r.stderr
		}
		require.NoError(t, os.Remove(filepath.Join(w.dir, "job.yaml")))
		require.NoError(t, filepath.WalkDir(w.dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				var text []byte
				text, err = os.ReadFile(path)
				seen[path] = string(text)
			}
			return err
		}))
		require.Contains(t, seen, report)
		for _, o := range w.store.Objects("data") {
			seen[o.Key] = string(o.Data)
		}
		for place, text := range seen {
			for _, secret := range []string{testKey, testSecret, token} {
				assert.NotContains(t, text, secret, place)
			}
		}
	})
}

func TestRun_LimitsItsMemoryUnlessTheUserDoes(t *testing.T) {
	before := debug.SetMemoryLimit(1 << 40)
	defer debug.SetMemoryLimit(before)
	w := newWorld(t, s3test.Options{})
	w.keys["sink.memory.budget"] = "64 mb"
	for env, want := range map[string]int64{"GOMEMLIMIT=1GiB": 1 << 40, "GOMEMLIMIT=": 104 << 20} {
		debug.SetMemoryLimit(1 << 40)
		p := process{environ: []string{env}}
		cfg, err := p.loadConfig(w.jobFile(), nil)
		require.NoError(t, err)
		p.limitMemory(cfg)
		assert.Equal(t, want, debug.SetMemoryLimit(-1), env)
	}
}

func TestHelp_NamesTheCommandsAndTheExitCodes(t *testing.T) {
	var w world
	r := w.sluice(t.Context(), "--help")
	assert.Equal(t, 0, r.code)
	for _, part := range []string{"run ", "verify ", "options ", "Exit codes:", "  3  not proven"} {
		assert.Contains(t, r.stdout, part)
	}
	r = w.sluice(t.Context(), "run", "--help")
	assert.Contains(t, r.stdout, "--report")
	assert.Contains(t, r.stdout, "--define")
}

func TestReport_ARunThatDoesNotBeginLeavesTheFileAsItWas(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.keys["sink.path"] = "s3://no-such-bucket/out"
		report := filepath.Join(w.dir, "report.json")
		require.Equal(t, 2, w.sluice(t.Context(), "run", "JOB", "--report", report).code)
		assert.NoFileExists(t, report)
		w.write("report.json", "of an earlier run")
		require.Equal(t, 2, w.sluice(t.Context(), "run", "JOB", "--report", report).code)
		text, err := os.ReadFile(report)
		require.NoError(t, err)
		assert.Equal(t, "of an earlier run", string(text))
	})
}
