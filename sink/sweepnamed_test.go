package sink_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

func TestSweep_RefusesWhenItCannotKnowWhatCheckpointsName(t *testing.T) {
	chk := func(w *world) string {
		files, err := filepath.Glob(filepath.Join(w.dir, "main", "0-of-1", "chk-*.json"))
		require.NoError(w.t, err)
		require.Len(w.t, files, 1)
		return files[0]
	}
	for name, c := range map[string]struct {
		change func(w *world, o *sink.SweepOptions)
		want   string
	}{
		"empty directory":   {func(w *world, _ *sink.SweepOptions) { require.NoError(w.t, os.RemoveAll(filepath.Join(w.dir, "main"))) }, "no run has ever claimed"},
		"damaged manifest":  {func(w *world, _ *sink.SweepOptions) { require.NoError(w.t, os.Truncate(chk(w), 300)) }, "is damaged"},
		"no store":          {func(w *world, o *sink.SweepOptions) { o.Checkpoints = nil }, "no checkpoint store"},
		"missing savepoint": {func(w *world, o *sink.SweepOptions) { o.Savepoints = []string{filepath.Join(w.dir, "nothing")} }, "no such file"},
		"empty savepoint":   {func(w *world, o *sink.SweepOptions) { o.Savepoints = []string{w.t.TempDir()} }, "there is no checkpoint in it"},
		"damaged savepoint": {func(w *world, o *sink.SweepOptions) {
			dir := w.t.TempDir()
			require.NoError(w.t, os.WriteFile(filepath.Join(dir, filepath.Base(chk(w))), []byte("x"), 0o600))
			o.Savepoints = []string{dir}
		}, "not a checkpoint manifest"},
		"bad options": {func(_ *world, o *sink.SweepOptions) { o.Job, o.OlderThan = "a_b", -1 }, "not a job name"},
		"listing refused": {func(w *world, _ *sink.SweepOptions) {
			w.store.Control(s3test.Match{Op: s3test.ListMultipartUploads}, s3test.Always(s3test.Status(403, "AccessDenied")))
		}, "s3:ListBucketMultipartUploads"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.onDisk()
				r := w.start(options())
				r.rows(0, 300, 1023)
				r.checkpoint()
				r.crash()
				synctest.Wait() // for uploads that were on their way
				before := w.uploads()
				o := w.sweepOptions(options())
				c.change(w, &o)
				_, err := sink.Sweep(t.Context(), w.openFS(), o)
				require.ErrorIs(t, err, sink.ErrSweepRefused)
				require.ErrorContains(t, err, c.want)
				require.Equal(t, before, w.uploads())
			})
		})
	}
}

// The run was started from nothing again; only a copy names the uploads.
func TestSweep_WhatASavepointNamesIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.onDisk()
		r := w.start(options())
		r.rows(0, 300, 1023)
		r.checkpoint()
		r.crash()
		saved := filepath.Join(t.TempDir(), "saved", "friday")
		require.NoError(t, os.CopyFS(saved, os.DirFS(w.dir)))
		files, err := filepath.Glob(filepath.Join(w.dir, "main", "0-of-1", "chk-*.json"))
		require.NoError(t, err)
		require.NoError(t, os.Remove(files[0]))

		o := w.sweepOptions(options())
		o.Savepoints = []string{filepath.Dir(saved)}
		report := w.sweep(o)
		require.Zero(t, report.Aborted.Uploads)
		require.Equal(t, 1, report.Savepoints)
		require.Contains(t, report.Uploads[0].Why, "savepoint ")
		require.Contains(t, report.Uploads[0].Why, "friday")

		w.dir = saved // go on from there
		r = w.start(options())
		r.rows(300, 500, 1023)
		r.finish()
		w.requireExactly(500)
	})
}

func TestSweep_ALinkedDirectoryInASavepointIsRefusedAndALinkedRootIsFollowed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.onDisk()
		r := w.start(options())
		r.checkpoint()
		r.crash()
		holder := t.TempDir()
		link := filepath.Join(holder, "link")
		if err := os.Symlink(w.dir, link); err != nil {
			t.Skip("no symbolic links here:", err)
		}
		o := w.sweepOptions(options())
		o.Savepoints = []string{link}
		require.Equal(t, 1, w.sweep(o).Savepoints)
		o.Savepoints = []string{holder}
		_, err := sink.Sweep(t.Context(), w.openFS(), o)
		require.ErrorContains(t, err, "is a link to a directory")
	})
}
