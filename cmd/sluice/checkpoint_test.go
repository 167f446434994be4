package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stop runs the job for a while.
func (w *world) stop(after time.Duration) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), after)
	defer cancel()
	require.Equal(w.t, exitStopped, w.sluice(ctx, "run", "JOB").code)
}

func TestCheckpoint_LsShowAndVerifyAJobThatWasStopped(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.keys["checkpoint.num-retained"] = "2"
		w.stop(12 * time.Second) // checkpoints after 5, 10 and 12 seconds

		r := w.sluice(t.Context(), "checkpoint", "ls", "JOB")
		require.Equal(t, 0, r.code, r.stderr)
		lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
		require.Len(t, lines, 3)
		assert.Equal(t, strings.Fields("ID EPOCH TIME AGE BYTES OPEN PENDING ROWS STAGED"), strings.Fields(lines[0]))
		assert.Equal(t, strings.Fields("2 1 2000-01-01T00:00:10Z 2s"), strings.Fields(lines[1])[:4])
		assert.Equal(t, "3", strings.Fields(lines[2])[0])

		r = w.sluice(t.Context(), "checkpoint", "show", "JOB")
		require.Equal(t, 0, r.code, r.stderr)
		assert.Contains(t, r.stdout, "checkpoint 3 of job job, shard 0-of-1, epoch 1, taken 2000-01-01T00:00:12Z (0s ago)\npath s3://data/out\nrows: 12")
		assert.NotContains(t, r.stdout, testSecret)
		assert.Contains(t, w.sluice(t.Context(), "checkpoint", "show", "JOB", "2").stdout, "checkpoint 2 of job job")

		report := filepath.Join(w.dir, "verify.json")
		r = w.sluice(t.Context(), "checkpoint", "verify", "JOB", "--report", report)
		require.Equal(t, 0, r.code, r.stderr+r.stdout)
		assert.Equal(t, "GOOD: checkpoint 3 can be restored, nothing is lost", lastLine(r.stdout))
		text, err := os.ReadFile(report)
		require.NoError(t, err)
		var v struct {
			Checkpoint int
			Good       bool
		}
		require.NoError(t, json.Unmarshal(text, &v))
		assert.Equal(t, 3, v.Checkpoint)
		assert.True(t, v.Good)
	})
}

func TestCheckpoint_VerifyIsExitCode3WhenSomethingIsWrong(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.stop(6 * time.Second)
		blobs, err := filepath.Glob(filepath.Join(w.keys["checkpoint.dir"], "job", "0-of-1", "blobs", "*.blob"))
		require.NoError(t, err)
		for _, b := range blobs {
			require.NoError(t, os.Truncate(b, 10))
		}
		r := w.sluice(t.Context(), "checkpoint", "verify", "JOB")
		assert.Equal(t, exitNotProven, r.code)
		assert.Contains(t, lastLine(r.stdout), "NOT GOOD: checkpoint 2 has lost up to ")
		assert.Equal(t, []string{"sluice: the checkpoint is not good"}, r.complaints())
		assert.Equal(t, 0, w.sluice(t.Context(), "checkpoint", "ls", "JOB").code, "the manifest is readable")

		manifests, err := filepath.Glob(filepath.Join(w.keys["checkpoint.dir"], "job", "0-of-1", "chk-*.json"))
		require.NoError(t, err)
		require.NoError(t, os.Truncate(manifests[0], 10))
		r = w.sluice(t.Context(), "checkpoint", "verify", "JOB")
		assert.Equal(t, exitNotProven, r.code)
		first, rest, _ := strings.Cut(r.stdout, "\n")
		assert.Equal(t, "checkpoint 2, the newest, unreadable", first)
		assert.True(t, strings.HasPrefix(rest, "problem: "), "nothing is said of what was not seen: %s", rest)
		r = w.sluice(t.Context(), "checkpoint", "ls", "JOB")
		assert.Equal(t, exitFailed, r.code)
		assert.Contains(t, r.stdout, "unreadable")
		assert.Equal(t, exitFailed, w.sluice(t.Context(), "checkpoint", "show", "JOB").code)
	})
}

func TestCheckpoint_WorksBesideALiveRunAndWithoutAClaim(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		done := make(chan result)
		go func() { done <- w.sluice(t.Context(), "run", "JOB") }()
		time.Sleep(11 * time.Second)
		for _, command := range []string{"ls", "show", "verify"} {
			r := w.sluice(t.Context(), "checkpoint", command, "JOB")
			assert.Equal(t, 0, r.code, r.stderr+r.stdout)
		}
		require.Equal(t, 0, w.sluice(t.Context(), "sweep", "JOB", "--older-than", "0").code)
		require.Equal(t, 0, (<-done).code)
		require.Equal(t, 0, w.sluice(t.Context(), "verify", "JOB").code)
	})
}

func TestCheckpoint_WrongUseIsExitCode2(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for _, args := range [][]string{
			{"checkpoint"}, {"checkpoint", "list", "JOB"}, {"checkpoint", "ls"}, {"checkpoint", "ls", "JOB", "1"}, {"checkpoint", "show", "JOB", "x"},
			{"checkpoint", "show", "JOB", "0"}, {"checkpoint", "verify", "JOB", "1", "2"}, {"checkpoint", "verify", filepath.Join(w.dir, "no.yaml")},
		} {
			r := w.sluice(t.Context(), args...)
			assert.Equal(t, exitUsage, r.code, strings.Join(args, " "))
			assert.NotEmpty(t, r.complaints())
		}
		r := w.sluice(t.Context(), "checkpoint", "show", "JOB")
		assert.Equal(t, exitFailed, r.code)
		assert.Contains(t, r.complaints()[0], "no checkpoint")
		assert.Empty(t, w.store.Trace())
	})
}
