package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs/s3test"
)

// leaveUploads is a run that fails and leaves one upload behind.
func (w *world) leaveUploads() {
	w.t.Helper()
	w.keys["datagen.fields.f.length"], w.keys["sink.writers"] = "65535", "1"
	w.keys["sink.rolling-policy.file-size"], w.keys["datagen.number-of-rows"] = "1 gb", "300"
	defer w.store.Control(s3test.Match{Op: s3test.UploadPart, Nth: 1}, s3test.Always(s3test.Status(403, "AccessDenied")))()
	require.Equal(w.t, exitFailed, w.sluice(w.t.Context(), "run", "JOB").code)
	require.Len(w.t, w.store.Uploads("data"), 1)
}

func TestSweep_O22_ADryRunShowsOneAndASweepRemovesOne(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.leaveUploads()
		report := filepath.Join(w.dir, "sweep.json")
		r := w.sluice(t.Context(), "sweep", "JOB", "--report", report)
		require.Equal(t, 0, r.code, r.stderr)
		assert.Contains(t, r.stdout, "kept: 1 uploads, 0 parts, 0 bytes\n", "younger than an hour")

		time.Sleep(61 * time.Minute)
		r = w.sluice(t.Context(), "sweep", "JOB", "--dry-run", "--report", report)
		require.Equal(t, 0, r.code, r.stderr)
		assert.Contains(t, r.stdout, "would abort: 1 uploads, 0 parts, 0 bytes\nkept: 0 uploads")
		assert.Contains(t, r.stdout, "out/part_job_0-of-1_e1_w0_0.raw")
		require.Len(t, w.store.Uploads("data"), 1)

		r = w.sluice(t.Context(), "sweep", "JOB", "--report", report)
		require.Equal(t, 0, r.code, r.stderr)
		assert.Contains(t, r.stdout, "aborted: 1 uploads, 0 parts, 0 bytes\n")
		require.Empty(t, w.store.Uploads("data"))
		assert.Empty(t, r.complaints())

		text, err := os.ReadFile(report)
		require.NoError(t, err)
		var v struct {
			DryRun  bool `json:"dry_run"`
			Uploads []struct {
				UploadID string `json:"upload_id"`
				Outcome  string
				Reason   string
			}
			Aborted struct{ Uploads int }
		}
		require.NoError(t, json.Unmarshal(text, &v))
		require.Len(t, v.Uploads, 1)
		assert.Equal(t, []string{"aborted", "abandoned"}, []string{v.Uploads[0].Outcome, v.Uploads[0].Reason})
		assert.NotEmpty(t, v.Uploads[0].UploadID)
		assert.Equal(t, 1, v.Aborted.Uploads)

		require.Equal(t, 0, w.sluice(t.Context(), "run", "JOB").code)
		require.Equal(t, 0, w.sluice(t.Context(), "verify", "JOB").code)
	})
}

func TestSweep_AFailedAbortIsExitCode1AndTheReportIsWritten(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.leaveUploads()
		w.store.Control(s3test.Match{Op: s3test.AbortMultipartUpload}, s3test.Always(s3test.Status(403, "AccessDenied")))
		report := filepath.Join(w.dir, "sweep.json")
		r := w.sluice(t.Context(), "sweep", "JOB", "--older-than", "0", "--report", report)
		assert.Equal(t, exitFailed, r.code)
		assert.Contains(t, r.stdout, "not aborted: 1 uploads")
		require.Len(t, r.complaints(), 1)
		assert.Contains(t, r.complaints()[0], "s3:AbortMultipartUpload")
		text, err := os.ReadFile(report)
		require.NoError(t, err)
		assert.Contains(t, string(text), `"outcome": "failed"`)
	})
}

func TestSweep_RefusesWithoutCheckpointsUnlessToldSo(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.leaveUploads()
		require.NoError(t, os.RemoveAll(w.keys["checkpoint.dir"]))
		r := w.sluice(t.Context(), "sweep", "JOB", "--older-than", "0")
		assert.Equal(t, exitFailed, r.code)
		assert.Empty(t, r.stdout)
		assert.Contains(t, r.complaints()[0], "nothing was swept: no run has ever claimed an epoch")
		assert.Contains(t, r.complaints()[0], "--without-checkpoints")
		require.Len(t, w.store.Uploads("data"), 1)

		r = w.sluice(t.Context(), "sweep", "JOB", "--older-than", "0", "--without-checkpoints")
		require.Equal(t, 0, r.code, r.stderr)
		require.Empty(t, w.store.Uploads("data"))
	})
}

func TestSweep_WrongUseIsExitCode2AndNothingIsAsked(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for _, args := range [][]string{
			{"sweep"}, {"sweep", "JOB", "JOB"}, {"sweep", "JOB", "--older-than", "1 fortnight"}, {"sweep", "JOB", "--older-than", "-1h"},
			{"sweep", "JOB", "--dryrun"}, {"sweep", filepath.Join(w.dir, "no.yaml")}, {"sweep", "JOB", "--report", w.dir},
		} {
			r := w.sluice(t.Context(), args...)
			assert.Equal(t, exitUsage, r.code, strings.Join(args, " "))
			assert.NotEmpty(t, r.complaints())
		}
		assert.Empty(t, w.store.Trace())
		assert.Contains(t, w.sluice(t.Context(), "sweep", "--help").stdout, `(default "1 h")`)
	})
}
