package sink_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

// goBack makes an older checkpoint the newest one, as a job does whose rows are to be written again.
func (w *world) goBack(to checkpoint.ID) {
	w.t.Helper()
	store := w.openDir("main")
	epoch, err := store.NewestEpoch(w.t.Context())
	require.NoError(w.t, err)
	_, err = checkpoint.Rewind(w.t.Context(), store, epoch, to, func(older, newest checkpoint.Manifest) ([]checkpoint.NamedState, error) {
		states := slices.Clone(older.States)
		states[0].State, err = sink.Rewound(states[0].State, newest.States[0].State, to)
		return states, err
	})
	require.NoError(w.t, errors.Join(err, store.Close()))
}

// retaining is bubble with checkpoints that can be gone back to.
func retaining(t *testing.T, f func(t *testing.T, w *world)) {
	bubble(t, func(t *testing.T, w *world) {
		w.retain = 20
		f(t, w)
	})
}

// one is a writer whose files end when the test says so.
func one() sink.Options {
	o := options()
	o.Writers, o.Rolling.FileSize = 1, 8<<20
	return o
}

// publish ends the open file and takes a checkpoint.
func (r *run) publish() {
	r.w.t.Helper()
	require.NoError(r.w.t, r.coord.Step(r.w.t.Context(), r.sink.Seal))
	r.checkpoint()
}

// deny makes Complete fail until the returned function is called.
func (w *world) deny() (allow func()) {
	return w.store.Control(s3test.Match{Op: s3test.CompleteMultipartUpload}, s3test.Always(s3test.Status(403, "AccessDenied")))
}

// A DELETE may reach the store late, after its answer was given up: at a key that gets a file again it would lose that file. And what the run before
// has sent to the key may arrive late as well.
func TestGoBack_AKeyThatIsTakenBackIsNotUsedAgain(t *testing.T) {
	for name, size := range map[string]int{"bytes in the checkpoint": 1023, "parts in the store": 40 << 10} {
		t.Run(name, func(t *testing.T) {
			retaining(t, func(t *testing.T, w *world) {
				r := w.start(one())
				r.rows(0, 4, size)
				synctest.Wait()
				r.checkpoint() // 1: the file is open
				if size == 1023 {
					r.rows(4, 8, size)
					r.publish() // 2: and published
				} else {
					allow := w.deny()
					r.rows(4, 8, size)
					require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
					_, err := r.coord.Trigger(t.Context()) // 2: finished, and not published
					require.Error(t, err)
					allow()
				}
				r.crash()
				w.goBack(1)
				r = w.start(one())
				r.rows(4, 12, size)
				r.finish()
				w.requireRows(12)
				for _, key := range w.dataKeys() {
					require.NotContains(t, w.store.Trace(), "DeleteObject data/"+key)
				}
			})
		})
	}
}

// The same when commit records are rolled back.
func TestRollback_AKeyThatIsTakenBackIsNotUsedAgain(t *testing.T) {
	retaining(t, func(t *testing.T, w *world) {
		w.onDisk()
		r := w.start(one())
		r.rows(0, 4, 1023)
		r.checkpoint()
		saved := filepath.Join(t.TempDir(), "saved")
		require.NoError(t, os.CopyFS(saved, os.DirFS(w.dir)))
		r.rows(4, 8, 1023)
		r.publish()
		r.crash()
		w.dir = saved
		o := one()
		o.Rollback = true
		r = w.start(o)
		r.rows(4, 12, 1023)
		r.finish()
		w.requireRows(12)
		require.Contains(t, w.store.Trace(), "DeleteObject data/out/part_")
		for _, key := range w.dataKeys() {
			require.NotContains(t, w.store.Trace(), "DeleteObject data/"+key)
		}
	})
}

// What the checkpoint that is gone back to has published is settled, also when it had gone back itself: a consumer may have moved it.
func TestGoBack_WhatWasPublishedSinceTheFirstTimeIsSettled(t *testing.T) {
	retaining(t, func(t *testing.T, w *world) {
		allow := w.deny()
		r := w.start(one())
		r.rows(0, 4, 40<<10)
		require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
		synctest.Wait()                        // the parts arrive
		_, err := r.coord.Trigger(t.Context()) // 1: the first file is pending
		require.Error(t, err)
		r.rows(4, 8, 40<<10)
		require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
		_, err = r.coord.Trigger(t.Context()) // 2: and the second one
		require.Error(t, err)
		r.crash()
		allow()

		w.goBack(1)           // 3
		r = w.start(one())    // which publishes the first file
		r.rows(4, 8, 40<<10)  // another second one
		r.publish()           // 4
		r.rows(8, 12, 40<<10) // and a third
		r.publish()           // 5
		r.crash()
		require.Len(t, w.dataKeys(), 3)
		first := w.dataKeys()[0]
		moved, _ := w.store.Object("data", first)
		w.store.DeleteObject("data", first)

		w.goBack(3) // 6
		r, err = w.tryStart(one())
		require.NoError(t, err)
		r.rows(4, 12, 40<<10)
		r.finish()
		w.store.PutObject("data", first, moved.Data, nil)
		w.requireRows(12)
	})
}

// The record of the checkpoint that had gone back was not written yet, and neither was what it had to take back: now it is.
func TestGoBack_ToACheckpointThatHadNotTakenBackAnything(t *testing.T) {
	retaining(t, func(t *testing.T, w *world) {
		r := w.start(one())
		r.rows(0, 4, 1023)
		r.publish() // 1
		r.rows(4, 8, 1023)
		r.publish() // 2
		r.crash()
		w.goBack(1) // 3
		// Nothing of 3 is taken back before there is a checkpoint 4.
		remove := w.store.Control(s3test.Match{Op: s3test.DeleteObject}, s3test.Always(s3test.Status(403, "AccessDenied")))
		_, err := w.tryStart(one())
		require.Error(t, err)
		remove()
		w.copyNewest() // 4
		w.goBack(3)    // 5
		r = w.start(one())
		r.rows(4, 12, 1023)
		r.finish()
		w.requireRows(12)
	})
}

// copyNewest saves the newest checkpoint once more, under the next number.
func (w *world) copyNewest() {
	store := w.openDir("main")
	epoch, err := store.Claim(w.t.Context())
	require.NoError(w.t, err)
	m, err := store.Latest(w.t.Context())
	require.NoError(w.t, err)
	m.ID, m.Epoch = m.ID+1, epoch
	require.NoError(w.t, errors.Join(store.Save(w.t.Context(), m), store.Close()))
}

// A record of the run before that arrives late must not list what was taken back.
func TestGoBack_TheNumbersInBetweenStayTaken(t *testing.T) {
	retaining(t, func(t *testing.T, w *world) {
		r := w.start(one())
		for i := range 3 {
			r.rows(4*i, 4*i+4, 1023)
			r.publish()
		}
		r.crash()
		late := w.store.Keys("data")
		w.goBack(1)
		r = w.start(one())
		for _, key := range late {
			if strings.Contains(key, "/record-") {
				err := r.fs.PutIfAbsent(t.Context(), s3fs.Path{Bucket: "data", Key: key}, []byte("late"))
				require.ErrorIs(t, err, s3fs.ErrExists)
			}
		}
		var files []int
		for _, r := range w.records() {
			files = append(files, len(r.Files))
		}
		require.Equal(t, []int{1, 0, 0}, files)
		r.rows(4, 8, 1023)
		r.finish()
		w.requireRows(8)
	})
}

// Files that the records before it had listed are taken back: a checkpoint on the line that was left counts rows as published that are not there.
func TestGoBack_ToACheckpointThatWasLeftBehindIsRefused(t *testing.T) {
	retaining(t, func(t *testing.T, w *world) {
		r := w.start(one())
		for i := range 3 {
			r.rows(4*i, 4*i+4, 1023)
			r.publish()
		}
		r.crash()
		w.goBack(1)
		w.start(one()).crash()
		require.Len(t, w.published(), 4)
		w.goBack(3)
		_, err := w.tryStart(one())
		require.ErrorIs(t, err, sink.ErrState)
		require.ErrorContains(t, err, "taken back")
	})
}

// A rewind is taken up again wherever it broke off: after each of its calls, and then again after each.
func TestGoBack_ACrashAfterAnyCallLosesNothing(t *testing.T) {
	for nth := 1; ; nth++ {
		calls := 0
		retaining(t, func(t *testing.T, w *world) {
			r := w.start(one())
			r.rows(0, 4, 1023)
			r.publish() // 1
			r.rows(4, 6, 1023)
			r.checkpoint() // 2: open
			r.rows(6, 8, 1023)
			r.publish() // 3
			r.rows(8, 12, 1023)
			r.publish() // 4
			r.crash()
			w.goBack(2)
			for _, back := range []checkpoint.ID{0, 1} {
				seen := 0
				remove := w.store.Control(s3test.Match{}, func(s3test.Request) *s3test.Reply {
					if seen++; seen == nth {
						calls++
						return s3test.ResetAfter()
					} else if seen > nth {
						return s3test.Status(403, "AccessDenied")
					}
					return nil
				})
				if r, err := w.tryStart(one()); err == nil {
					r.crash()
				}
				remove()
				if back > 0 {
					w.goBack(back)
				}
			}
			r = w.start(one())
			r.rows(4, 16, 1023)
			r.finish()
			w.requireRows(16)
		})
		if calls == 0 {
			require.Greater(t, nth, 8)
			return
		}
	}
}

// A store that loses sight of an upload for a moment: nothing is given up at the first word, and nothing written again.
func TestRestore_AnUploadThatIsGoneOnlyOnceIsNotGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		o := one()
		o.Expired = sink.ExpiredSkip
		r := w.start(o)
		r.rows(0, 8, 40<<10)
		synctest.Wait()
		r.checkpoint()
		r.crash()
		w.store.Control(s3test.Match{Op: s3test.ListParts, Nth: 1}, s3test.Always(s3test.Status(404, "NoSuchUpload")))
		r = w.start(o)
		r.finish()
		w.requireRows(8)
	})
}
