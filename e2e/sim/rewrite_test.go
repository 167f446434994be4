package sim

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/sink"
)

// TestSimulation_JobsThatWriteLostRowsAgain takes an upload away from every job that has one between two of its lives.
func TestSimulation_JobsThatWriteLostRowsAgain(t *testing.T) {
	s := newStats()
	for i := range uint64(40) {
		simulate(t, rewriteSeeds+i, s)
	}
	if s.get("jobs that went back to an older checkpoint") == 0 {
		t.Error("no job went back")
	}
}

// errNotOldEnough ends a job that is to write lost rows again, but has no checkpoint from which it could.
var errNotOldEnough = errors.New("no retained checkpoint is old enough")

// lost says whether err is about an upload that is gone and whose rows are to be written again.
func (l *life) lost(err error) bool {
	_, gone := errors.AsType[*sink.ExpiredError](err)
	return l.w.plan.rewrite && gone
}

// again goes back to a checkpoint that does not need what is gone, and runs the job from there.
func (l *life) again(ctx context.Context) error {
	err := l.close()
	l.fs, l.store, l.sink, l.coord = nil, nil, nil, nil
	if err != nil {
		return err
	}
	if err := l.openStore(ctx); err != nil {
		return err
	}
	to, err := l.soundCheckpoint(ctx)
	if err != nil {
		return err
	}
	_, err = checkpoint.Rewind(ctx, l.store, l.epoch, to, func(older, newest checkpoint.Manifest) ([]checkpoint.NamedState, error) {
		states := slices.Clone(older.States)
		for i, s := range states {
			for _, n := range newest.States {
				if s.Name != sink.ParticipantName || n.Name != s.Name {
					continue
				}
				if states[i].State, err = sink.Rewound(s.State, n.State, to); err != nil {
					return nil, err
				}
			}
		}
		return states, nil
	})
	if err != nil {
		return err
	}
	l.w.stats.add("jobs that went back to an older checkpoint")
	if err := errors.Join(l.store.Close(), l.fs.Close(ctx)); err != nil {
		return err
	}
	l.fs, l.store = nil, nil
	return l.attempt(ctx)
}

// soundCheckpoint returns the newest but one, or an older one, that names nothing that is gone, as this world knows it, and that was not left behind when the
// job went back before. Now and then it goes further back than it has to, as a job does that was not told about some.
func (l *life) soundCheckpoint(ctx context.Context) (checkpoint.ID, error) {
	ids, err := l.store.List(ctx)
	if err != nil {
		return 0, err
	}
	found, last := checkpoint.ID(0), checkpoint.ID(math.MaxInt64)
	for i, id := range slices.Backward(ids) {
		if id > last {
			continue
		}
		d, err := l.store.Load(ctx, id)
		if err != nil {
			return 0, err
		}
		m := &manifest{}
		for _, s := range d.States {
			if s.Name == sink.ParticipantName {
				if err := m.readSink(s.State); err != nil {
					return 0, err
				}
			}
		}
		if last = id; m.backTo > 0 {
			last = checkpoint.ID(m.backTo)
		}
		if i < len(ids)-1 && l.w.sound(m, int64(id)) {
			if found = id; (l.w.plan.seed+uint64(l.number)+uint64(id))%4 > 0 {
				break
			}
		}
	}
	if found == 0 {
		return 0, errNotOldEnough
	}
	return found, nil
}

// sound says whether everything is there that a checkpoint needs.
func (w *world) sound(m *manifest, id int64) bool {
	alive := map[string]bool{}
	for _, u := range w.store.Uploads(bucket) {
		alive[u.ID] = true
	}
	recorded := map[string]bool{}
	for _, o := range w.store.Objects(bucket) {
		var r recordText
		if strings.HasPrefix(o.Key, sink.RecordPrefix(path.Key, "")) && json.Unmarshal(o.Data, &r) == nil && r.Record.Checkpoint <= id {
			for _, f := range r.Record.Files {
				recorded[f.Key] = true
			}
		}
	}
	for _, f := range m.files {
		h := f.handle
		o, there := w.store.Object(bucket, h.Target.Key)
		switch {
		case len(h.Parts) == 0, recorded[h.Target.Key], alive[h.UploadID]:
		case h.Sealed && there && o.Metadata[s3fs.TokenMetadata] == h.Token:
		default:
			return false
		}
	}
	return true
}

// beforeOverwrite is the check of a record that is put over another one: only a job that goes back does that, and leaves an empty one.
func (w *world) beforeOverwrite(key string, before []byte) (check func()) {
	return func() {
		o, _ := w.store.Object(bucket, key)
		if string(o.Data) == string(before) {
			return
		}
		var r recordText
		if err := json.Unmarshal(o.Data, &r); err != nil || len(r.Record.Files) > 0 || !w.uploads.expired || !w.plan.rewrite {
			w.fail("%s is overwritten", key)
		}
		for file, record := range w.uploads.listed {
			if record != key {
				continue
			}
			delete(w.uploads.listed, file)
			w.stats.add("files taken back")
		}
	}
}

// explainedByRewrite is explained for a job that writes lost rows again: it fails only when it cannot.
func (w *world) explainedByRewrite(err error) bool {
	if !errors.Is(err, errNotOldEnough) {
		return false
	}
	if !w.uploads.expired {
		w.fail("nothing has expired, but: %v", err)
	}
	w.outcome = expired
	return true
}

// checkDelete checks that objects of the data bucket are deleted only by a job that goes back.
func (w *world) checkDelete(e *event) {
	if strings.Contains(e.call.req.URL.Path, "/"+bucket+"/") && !(w.plan.rewrite && w.uploads.expired) {
		w.fail("an object is deleted: %s", e.text)
	}
}
