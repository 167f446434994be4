package sink_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

// sweepOptions sweep everything that is proven to be left behind, however young.
func (w *world) sweepOptions(o sink.Options) sink.SweepOptions {
	return sink.SweepOptions{Path: o.Path, Job: o.Job, Checkpoints: w.openDir(o.Job)}
}

func (w *world) sweep(o sink.SweepOptions) sink.SweepReport {
	w.t.Helper()
	r, err := sink.Sweep(w.t.Context(), w.openFS(), o)
	require.NoError(w.t, err)
	return r
}

// uploads returns the keys of the uploads in progress.
func (w *world) uploads() []string {
	var keys []string
	for _, u := range w.store.Uploads("data") {
		keys = append(keys, u.Key)
	}
	return keys
}

// requireExactly is requireRows for a store that a sweep has worked on.
func (w *world) requireExactly(n int) {
	w.t.Helper()
	want := make([]int, n)
	for i := range want {
		want[i] = i
	}
	require.ElementsMatch(w.t, want, w.published())
}

// leave is a run that dies with one upload that no checkpoint names.
func (w *world) leave(o sink.Options) {
	o.Writers = 1
	r := w.start(o)
	r.rows(0, 100, 1023) // more than one part of 64 KiB
	synctest.Wait()
	r.crash()
}

func TestSweep_O22_ADryRunShowsWhatASweepRemovesAndALiveRunsUploadStays(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.leave(options())
		dead := w.uploads()
		require.Len(t, dead, 1)
		time.Sleep(2 * time.Hour)
		live := w.start(options())
		live.rows(0, 300, 1023)
		synctest.Wait()
		running := w.uploads()[1:]
		require.Len(t, running, 2)

		o := w.sweepOptions(options())
		o.OlderThan, o.DryRun = sink.DefaultSweepAge, true
		r := w.sweep(o)
		require.Equal(t, sink.SweepTotals{Uploads: 1, Parts: 1, Bytes: 64 << 10}, r.Aborted)
		require.Equal(t, 2, r.Kept.Uploads)
		require.Equal(t, sink.OutcomePlanned, r.Uploads[0].Outcome)
		require.Equal(t, dead[0], r.Uploads[0].Key)
		require.InDelta(t, 7200, r.Uploads[0].Age, 2)
		require.Len(t, w.uploads(), 3, "a dry run aborts nothing")
		require.NotContains(t, w.store.Trace(), "AbortMultipartUpload")

		o.DryRun = false
		r = w.sweep(o)
		require.Equal(t, sink.SweepTotals{Uploads: 1, Parts: 1, Bytes: 64 << 10}, r.Aborted)
		require.Equal(t, running, w.uploads())
		require.Contains(t, r.Run, "live: pid ")

		time.Sleep(2 * time.Hour)
		require.Equal(t, sink.LiveEpoch, w.sweep(o).Uploads[0].Reason, "age alone is no reason")
		live.rows(300, 800, 1023)
		live.finish()
		w.requireExactly(800)
		require.Empty(t, w.sweep(o).Uploads)
	})
}

func TestSweep_TheNewestEpochsUploadsGoWhenItsRunIsDead(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.leave(options())
		o := w.sweepOptions(options())
		o.OlderThan = time.Hour
		require.Equal(t, sink.Young, w.sweep(o).Uploads[0].Reason)
		time.Sleep(2 * time.Hour)
		r := w.sweep(o)
		require.Equal(t, 1, r.Aborted.Uploads)
		require.Equal(t, "none is live", r.Run)
		require.Empty(t, w.uploads())
	})
}

// After a failure the writer is closed; the checkpoint names its uploads, and the next run needs them.
func TestSweep_O02_WhatACheckpointNamesSurvivesTheDeathOfItsRun(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(options())
		r.rows(0, 400, 1023)
		synctest.Wait()
		r.checkpoint()
		named := w.uploads()
		require.NotEmpty(t, named)
		w.store.Control(s3test.Match{Op: s3test.UploadPart, First: 1}, s3test.Always(s3test.Status(403, "AccessDenied")))
		err := r.coord.Step(t.Context(), func() error {
			for n := 400; ; n++ {
				if err := r.sink.Writer(0).Write(t.Context(), row(n, 1023)); err != nil {
					return err
				}
				synctest.Wait()
			}
		})
		require.ErrorIs(t, err, s3fs.ErrAccessDenied)
		r.crash()
		report := w.sweep(w.sweepOptions(options()))
		require.Equal(t, len(named), report.Kept.Uploads)
		require.Equal(t, sink.Named, report.Uploads[0].Reason)
		require.Contains(t, report.Uploads[0].Why, "checkpoint 1 names it")
		require.Subset(t, w.uploads(), named)
		r = w.start(options())
		r.rows(400, 1000, 1023)
		r.finish()
		w.requireExactly(1000)
	})
}

// However a writer ends before its first checkpoint, what it has begun is found: its last part was refused (O-03), it was cancelled with
// its first part on the way (O-19), or one of its parts was refused (O-20).
func TestSweep_O03_O19_O20_AnUploadThatNoCheckpointKnowsIsFoundAndRemoved(t *testing.T) {
	refuse := s3test.Status(403, "AccessDenied")
	for name, c := range map[string]struct {
		match s3test.Match
		reply *s3test.Reply
		rows  int
	}{
		"O-03 the last part is refused":   {s3test.Match{Op: s3test.UploadPart, Part: 4}, refuse, 200},
		"O-19 cancelled with part 1":      {s3test.Match{Op: s3test.UploadPart, Part: 1}, s3test.Delay(time.Hour), 100},
		"O-20 part 2 of several":          {s3test.Match{Op: s3test.UploadPart, Part: 2}, refuse, 200},
		"the answer to Create was lost":   {s3test.Match{Op: s3test.CreateMultipartUpload, Nth: 1}, s3test.ResetAfter(), 100},
		"nothing went wrong but the time": {s3test.Match{Nth: 1 << 30}, refuse, 100},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				o := options()
				o.Writers = 1
				r := w.start(o)
				remove := w.store.Control(c.match, s3test.Always(c.reply))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_ = r.coord.Step(t.Context(), func() error {
					var err error
					for n := 0; n < c.rows && err == nil; n++ {
						err = r.sink.Writer(0).Write(ctx, row(n, 1023))
					}
					return errors.Join(err, r.sink.Seal())
				})
				time.Sleep(10 * time.Second)
				r.crash()
				remove()
				require.NotEmpty(t, w.uploads())
				report := w.sweep(w.sweepOptions(o))
				require.Equal(t, len(report.Uploads), report.Aborted.Uploads)
				require.Empty(t, w.uploads())
			})
		})
	}
}

func TestSweep_O21_AJobWithoutRowsLeavesNothingToSweep(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(options())
		r.checkpoint()
		r.finish()
		require.Empty(t, w.sweep(w.sweepOptions(options())).Uploads)
		require.NotContains(t, w.store.Trace(), "CreateMultipartUpload")
	})
}

func TestSweep_O17_JobsWhoseNamesBeginAlikeNeverTouchEachOther(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		one, ten := options(), options()
		one.Job, ten.Job = "job-1", "job-10"
		w.leave(one)
		w.leave(ten)
		r := w.start(ten)
		r.rows(0, 300, 1023)
		r.checkpoint()
		r.rows(300, 400, 1023)
		synctest.Wait()
		before := w.uploads()

		report := w.sweep(w.sweepOptions(one))
		require.Equal(t, 1, report.Aborted.Uploads)
		require.Len(t, report.Uploads, 1)
		require.Equal(t, before[1:], w.uploads())

		r.rows(400, 1000, 1023)
		r.finish()
		w.requireExactly(1000)
		report = w.sweep(w.sweepOptions(ten))
		require.Equal(t, 1, report.Aborted.Uploads, "its own leftover")
		require.Empty(t, w.uploads())
	})
}

// A file that was too small for an upload at the checkpoint gets one from the run that restored it, under a name of the dead epoch. The
// checkpoint names the file and no upload.
func TestSweep_AnUploadThatALiveRunBeganForARestoredFileIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(options())
		r.rows(0, 10, 1023)
		r.checkpoint()
		r.crash()
		require.Empty(t, w.uploads())
		r = w.start(options())
		r.rows(10, 300, 1023)
		synctest.Wait()
		require.Contains(t, w.uploads()[0], "_e1_")

		report := w.sweep(w.sweepOptions(options()))
		require.Zero(t, report.Aborted.Uploads)
		require.Equal(t, sink.FileNamed, report.Uploads[0].Reason)
		r.crash() // before a checkpoint names the upload: it is of no use to anybody now
		require.Equal(t, 2, w.sweep(w.sweepOptions(options())).Aborted.Uploads)
		r = w.start(options())
		r.rows(10, 500, 1023)
		r.finish()
		w.requireExactly(500)
	})
}

func TestSweep_AFailedAbortIsReportedAndTheRestGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for range 4 {
			w.leave(options())
		}
		keys := w.uploads()
		remove := w.store.Control(s3test.Match{Op: s3test.AbortMultipartUpload, KeyPrefix: keys[1]}, s3test.Always(s3test.Status(403, "AccessDenied")))
		w.store.Control(s3test.Match{Op: s3test.ListParts, KeyPrefix: keys[2]}, s3test.Always(s3test.Status(403, "AccessDenied")))
		o := w.sweepOptions(options())
		report, err := sink.Sweep(t.Context(), w.openFS(), o)
		require.ErrorIs(t, err, s3fs.ErrAccessDenied)
		require.NotErrorIs(t, err, sink.ErrSweepRefused)
		require.ErrorContains(t, err, keys[1])
		require.Equal(t, []string{keys[1]}, w.uploads())
		require.Equal(t, sink.SweepTotals{Uploads: 3, Parts: 2, Bytes: 128 << 10, Unmeasured: 1}, report.Aborted)
		require.Equal(t, sink.SweepTotals{Uploads: 1, Parts: 1, Bytes: 64 << 10}, report.Failed)
		require.Equal(t, sink.OutcomeFailed, report.Uploads[1].Outcome)
		require.Contains(t, report.Uploads[1].Error, "s3:AbortMultipartUpload")
		remove()
		require.Equal(t, 1, w.sweep(o).Aborted.Uploads)
		require.Empty(t, w.uploads())
	})
}

func TestSweep_ToldToStopItFinishesTheAbortItHasBegunAndBeginsNoOther(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for range 3 {
			w.leave(options())
		}
		w.store.Control(s3test.Match{Op: s3test.AbortMultipartUpload}, s3test.Always(s3test.Delay(10*time.Second)))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		o := w.sweepOptions(options())
		o.Parallelism = 1
		report, err := sink.Sweep(ctx, w.openFS(), o)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, []int{1, 2}, []int{report.Aborted.Uploads, report.Failed.Uploads})
		require.Len(t, w.uploads(), 2)
		require.Equal(t, 1, strings.Count(w.store.Trace(), "AbortMultipartUpload"))
	})
}

func TestSweep_AnAbortThatHangsEndsByItself(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.leave(options())
		w.store.Control(s3test.Match{Op: s3test.AbortMultipartUpload}, s3test.Always(s3test.Delay(time.Hour)))
		o := w.sweepOptions(options())
		o.AbortTimeout = 5 * time.Second
		start := time.Now()
		_, err := sink.Sweep(t.Context(), w.openFS(), o)
		require.ErrorContains(t, err, "the abort took too long")
		require.Equal(t, 5*time.Second, time.Since(start).Truncate(time.Second))
	})
}

func TestSweep_WithoutCheckpointsGoesByAgeAndRefusesBesideALiveRun(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.onDisk()
		r := w.start(options())
		r.rows(0, 300, 1023)
		r.checkpoint()
		time.Sleep(time.Hour)
		r.rows(300, 301, 300<<10)
		synctest.Wait()
		o := w.sweepOptions(options())
		o.WithoutCheckpoints, o.OlderThan = true, time.Hour
		_, err := sink.Sweep(t.Context(), w.openFS(), o)
		require.ErrorIs(t, err, sink.ErrSweepRefused)
		require.ErrorContains(t, err, "a run is live (pid ")
		require.Len(t, w.uploads(), 3)
		r.crash()
		require.NoError(t, os.RemoveAll(w.dir))
		report := w.sweep(o)
		require.Equal(t, 2, report.Aborted.Uploads)
		require.Equal(t, sink.Unchecked, report.Uploads[0].Reason)
		require.Len(t, w.uploads(), 1, "the young one")
	})
}

func TestSweepReport_TellsEachUploadAndTheTotals(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.leave(options())
		r := w.start(options())
		r.rows(0, 300, 1023)
		synctest.Wait()
		r.checkpoint()
		r.crash()
		id := w.store.Uploads("data")[0].ID
		report := w.sweep(w.sweepOptions(options()))
		var b strings.Builder
		require.NoError(t, report.WriteText(&b))
		lines := strings.Split(b.String(), "\n")
		require.Equal(t, "sweep of s3://data/out, job main, shard 0/1", lines[0])
		require.Equal(t, "newest epoch 2; run: none is live; 1 retained checkpoints and 0 savepoint manifests read", lines[1])
		require.Equal(t, []string{"aborted", "out/part_main_0-of-1_e1_w0_0.raw", id, "0s", "1", "65536", "epoch", "1", "is", "finished", "and", "no", "checkpoint", "names", "it"},
			strings.Fields(lines[3]))
		require.True(t, slices.Contains(lines, "aborted: 1 uploads, 1 parts, 65536 bytes"), b.String())
		require.True(t, slices.Contains(lines, "kept: 2 uploads, 4 parts, 262144 bytes"), b.String())
	})
}
