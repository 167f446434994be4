package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/sluice-go/sluice/e2e/readback"
	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/sink"
)

// judge decides whether the error of a life is one that its faults explain.
func (w *world) judge(l *life) {
	err := l.err
	killed := errors.Is(context.Cause(l.dead), errKilled) && errors.Is(err, errKilled)
	undisturbed := l.plan.end.how == byItself
	switch {
	case err == nil && undisturbed && !l.finished:
		w.fail("the last life has ended without an error, but is not finished")
	case err == nil || killed:
	case w.explained(err):
	case undisturbed:
		w.fail("the last life, which nobody disturbed, has failed: %v", err)
	default:
		w.suspect(l, err)
	}
}

// explained notes the ways in which a run may end without all rows: all are told.
func (w *world) explained(err error) bool {
	gone := errors.Is(err, multipart.ErrNoSuchUpload)
	_, mismatch := errors.AsType[*multipart.PartMismatchError](err)
	switch {
	case w.plan.rewrite:
		return w.explainedByRewrite(err)
	case w.uploads.expired && gone:
		w.outcome = expired
	case len(w.uploads.stolen) > 0 && errors.Is(err, multipart.ErrForeign):
		w.outcome = stolen
	case w.uploads.contested() && (mismatch || strings.Contains(err.Error(), "InvalidPart")):
		w.outcome = poisoned
	default:
		return false
	}
	return true
}

// suspect fails the run for errors that no fault of ours brings about.
func (w *world) suspect(l *life, err error) {
	_, damaged := errors.AsType[*checkpoint.DamagedError](err)
	_, mismatch := errors.AsType[*multipart.PartMismatchError](err)
	_, piece := errors.AsType[*multipart.PieceError](err)
	if _, call := errors.AsType[*s3fs.OpError](err); call || errors.Is(err, errDisk) {
		piece = false // it could not be read
	}
	for _, never := range []error{
		sink.ErrNewerRecord, sink.ErrState, sink.ErrRecord, datagen.ErrPosition, multipart.ErrHandle, multipart.ErrForeign,
		multipart.ErrSealed, multipart.ErrNotSealed, multipart.ErrTooManyParts, checkpoint.ErrUnclaimed,
	} {
		damaged = damaged || errors.Is(err, never)
	}
	if damaged || mismatch || piece {
		w.fail("life %d has failed in a way that none of its faults explains: %v", l.number, err)
	}
}

// verify reads everything back: by the verifier, and by a walk over the store's objects that shares no code with it.
func (w *world) verify() {
	w.walk()
	if w.outcome != proven {
		w.stats.add(fmt.Sprintf("runs in which the job told what is lost (%s)", w.outcome))
		return
	}
	w.checkLeftovers()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p := w.plan.lives[len(w.plan.lives)-1]
	fs, err := w.openFS(ctx, direct{w.store}, p)
	if err != nil {
		w.fail("verify: %v", err)
		return
	}
	report, err := readback.Verify(ctx, fs, readback.Target{Path: path, Job: jobName, Source: w.source}, readback.Options{Workers: 1})
	if err = errors.Join(err, fs.Close(ctx)); err != nil {
		w.fail("verify: %v", err)
		return
	}
	if !report.Proven {
		w.countFindings(report)
		w.fail("%s", report.Verdict())
	}
}

func (w *world) countFindings(r *readback.Report) {
	w.stats.addN("rows lost", int(r.Missing.Total))
	w.stats.addN("rows doubled", int(r.Duplicates.Total))
	w.stats.addN("rows corrupt", int(r.Corrupt.Total))
}

// walk checks every object below the path: it is a record, or a record lists it and its lines are rows, each row once.
func (w *world) walk() {
	g, err := w.source.Generator()
	if err != nil {
		w.fail("%v", err)
		return
	}
	number := map[string]int64{}
	for row := range w.plan.rows {
		number[string(g.Append(nil, row))] = row
	}
	times := make([]int, w.plan.rows)
	for _, o := range w.store.Objects(bucket) {
		if strings.HasPrefix(o.Key, sink.RecordPrefix(path.Key, "")) {
			continue
		}
		if _, listed := w.uploads.listed[o.Key]; !listed {
			if w.outcome == proven {
				w.fail("%s is visible, but in no record", o.Key)
			}
			continue
		}
		for line := range bytes.Lines(o.Data) {
			row, ok := number[strings.TrimSuffix(string(line), "\n")]
			if !ok || !bytes.HasSuffix(line, []byte("\n")) {
				w.fail("%s has a line that is no row: %q", o.Key, line)
				return
			}
			times[row]++
		}
	}
	missing := int64(0)
	for row, n := range times {
		if n == 0 {
			missing++
		}
		if n > 1 || n == 0 && w.outcome == proven {
			w.fail("row %d is there %d times", row, n)
		}
	}
	// A foreign object at a key stops the job for good, whatever else was given up before.
	if w.outcome != stolen && w.uploads.skipped > 0 && missing != w.uploads.skipped {
		w.fail("%d rows are missing, but the records say that %d were given up", missing, w.uploads.skipped)
	}
}

// checkLeftovers checks that the checkpoint directory holds nothing but what the retained checkpoints need.
func (w *world) checkLeftovers() {
	named := map[string]bool{}
	manifests := 0
	paths := w.disk.Paths()
	if w.plan.bucket {
		paths = w.kept()
	}
	for _, path := range paths {
		if !strings.HasPrefix(path, chkDir+"/chk-") {
			continue
		}
		manifests++
		text, err := w.readKept(path)
		if err != nil {
			w.fail("%s: %v", path, err)
			return
		}
		m, err := checkpoint.DecodeManifest(text)
		if err != nil {
			w.fail("%s: %v", path, err)
			return
		}
		for _, s := range m.States {
			for _, ref := range s.Refs {
				name, _, _ := strings.Cut(ref, ":")
				named[chkDir+"/blobs/"+name] = true
			}
		}
	}
	if retain := w.plan.lives[len(w.plan.lives)-1].retain; manifests > retain {
		w.fail("%d checkpoints are left, %d are retained", manifests, retain)
	}
	for _, path := range paths {
		if strings.Contains(path, "/.tmp-") || strings.Contains(path, "/blobs/") && !named[path] {
			w.fail("%s is left in the checkpoint directory, but no checkpoint needs it", path)
		}
	}
	w.stats.addN("open uploads left for a sweep", len(w.store.Uploads(bucket)))
}

// expireUpload takes away an upload that the newest checkpoint counts on: one in all, or a few from a job that writes the rows again.
func (w *world) expireUpload() {
	most := 1
	if w.plan.rewrite {
		most = 3
	}
	if w.newest == nil || w.uploads.taken == most || w.uploads.contested() {
		return
	}
	for _, f := range w.newest.files {
		if len(f.handle.Parts) > 0 && w.store.DropUpload(f.handle.UploadID) {
			w.logf("upload of %s has expired", f.handle.Target.Key)
			w.stats.add("uploads that expired")
			w.uploads.expired = true
			w.uploads.taken++
			return
		}
	}
}
