package s3store

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

func TestPrune_KeepsTheNewest_TheBlobsTheyName_AndWhatIsBeingWritten(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		s, _, epoch := w.claimedStore()
		ref1, blob1 := put(t, s, 1, "x")
		require.NoError(t, s.Save(ctx, manifest(1, epoch, ref1)))
		ref2, blob2 := put(t, s, 2, "x")
		require.NoError(t, s.Save(ctx, manifest(2, epoch, ref2)))
		ref3, blob3 := put(t, s, 3, "x")
		require.NoError(t, s.Save(ctx, manifest(3, epoch, ref3, ref1))) // carries a blob of checkpoint 1
		_, blob4 := put(t, s, 4, "x")                                   // not saved yet
		require.Error(t, s.Prune(ctx, 0))
		require.NoError(t, s.Prune(ctx, 2))
		ids, err := s.List(ctx)
		require.NoError(t, err)
		require.Equal(t, []checkpoint.ID{2, 3}, ids)
		require.Equal(t, []string{blob1, blob2, blob3, blob4}, w.blobNames())
		require.NoError(t, s.Prune(ctx, 1))
		require.Equal(t, []string{blob1, blob3, blob4}, w.blobNames())
		// An attempt at 4 that was given up without Abort stops being live when 4 is saved.
		ref4, again := put(t, s, 4, "x")
		require.NoError(t, s.Save(ctx, manifest(4, epoch, ref4)))
		require.NoError(t, s.Prune(ctx, 1))
		require.Equal(t, []string{again}, w.blobNames())
	})
}

func TestPrune_RemovesWhatDeadRunsHaveLeft_AndNothingOfALaterEpoch(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		s, _, epoch := w.claimedStore()
		require.NoError(t, s.Save(ctx, manifest(1, epoch)))
		put(t, s, 2, "x") // the run dies before it saves
		for range 2 {
			s, _, epoch = w.claimedStore()
		}
		later := blobName(2, epoch+1, 1)
		w.srv.PutObject("b", dir+blobPrefix+later, []byte("x"), nil)
		require.NoError(t, s.Prune(ctx, 1))
		require.Equal(t, []string{blobPrefix + later, manifestName(1), epochName(epoch)}, w.names())
	})
}

func TestPrune_WhenARetainedManifestCannotBeRead_TouchesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		s, _, epoch := w.claimedStore()
		saved(t, s, epoch, 1, 2, 3)
		require.NoError(t, s.Prune(ctx, 3)) // has read all of them
		before := w.names()
		w.edit(manifestName(2), func(data []byte) []byte { data[100] ^= 4; return data })
		err := s.Prune(ctx, 2)
		require.Equal(t, url(manifestName(2)), damaged(t, err).File)
		require.Equal(t, before, w.names())
		require.NoError(t, s.Prune(ctx, 1), "2 is not retained now")
	})
}

// A manifest is not read for every checkpoint that is taken after it.
func TestPrune_ReadsEachRetainedManifestOnce_AndNoneThatItsRunHasSaved(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, _, epoch := w.claimedStore()
		saved(t, s, epoch, 1, 2, 3, 4, 5)
		s, p, epoch := w.claimedStore()
		reads := 0
		p.reply(s3test.GetObject, manifestPrefix, func(int) *s3test.Reply { reads++; return nil })
		require.NoError(t, s.Prune(t.Context(), 4))
		require.Equal(t, 4, reads)
		saved(t, s, epoch, 6)
		reads = 0
		require.NoError(t, s.Prune(t.Context(), 4))
		require.NoError(t, s.Prune(t.Context(), 3))
		require.Zero(t, reads)
		require.Len(t, s.read, 3)
		require.Len(t, w.blobNames(), 3)
	})
}

func TestPrune_AManifestThatCannotBeDeleted_KeepsItsBlobs(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, p, epoch := w.claimedStore()
		saved(t, s, epoch, 1, 2)
		for name, r := range map[string]*s3test.Reply{"refused": s3test.Status(403, "AccessDenied"), "no answer": s3test.ResetBefore()} {
			p.reply(s3test.DeleteObject, manifestPrefix, func(int) *s3test.Reply { return r })
			require.Error(t, s.Prune(t.Context(), 1), name)
			l, err := s.look(t.Context(), "")
			require.NoError(t, err)
			for id := checkpoint.ID(1); id <= 2; id++ {
				_, err := s.intact(t.Context(), l, id)
				require.NoError(t, err, name)
			}
		}
		p.reply(s3test.DeleteObject, blobPrefix, func(int) *s3test.Reply { return s3test.Status(403, "AccessDenied") })
		require.ErrorIs(t, s.Prune(t.Context(), 1), s3fs.ErrAccessDenied)
		p.on(nil)
		require.NoError(t, s.Prune(t.Context(), 1))
		require.Len(t, w.names(), 3)
	})
}

// Whatever Prune is doing when its run dies or is taken over, each checkpoint that is listed can be restored, and the newest ones are all there.
func TestPrune_CutOffAnywhere_LeavesWholeCheckpoints(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for op, last := 0, false; !last; op++ {
			sh := checkpoint.Shard{Index: op, Count: 9999}
			p := w.start()
			s, err := Open(p.fs, root, "job-1", sh)
			require.NoError(t, err)
			epoch, err := s.Claim(p.ctx)
			require.NoError(t, err)
			var refs []string
			for id := checkpoint.ID(1); id <= 5; id++ {
				ref, _ := put(t, s, id, "tail")
				if refs = append(refs, ref); len(refs) > 2 {
					refs = refs[1:]
				}
				require.NoError(t, s.Save(p.ctx, manifest(id, epoch, refs...)))
			}
			begin := p.count()
			p.dieAt(begin+op, s3test.ResetAfter())
			err = s.Prune(p.ctx, 2)
			last = err == nil
			synctest.Wait() // the request at which the process died has reached the store, and is carried out or not
			reader, err := Open(w.start().fs, root, "job-1", sh)
			require.NoError(t, err)
			l, err := reader.look(t.Context(), "")
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(l.ids), 2)
			require.EqualValues(t, 5, l.newest())
			for _, id := range l.ids {
				m, err := reader.intact(t.Context(), l, id)
				require.NoError(t, err, "request %d, checkpoint %d", op, id)
				for _, ref := range m.States[0].Refs {
					_, err := readBlob(t.Context(), reader, ref)
					require.NoError(t, err)
				}
			}
		}
	})
}

// A zombie that was overtaken in the middle of Prune does not delete what its successor writes or restores.
func TestPrune_OvertakenByASuccessor_TouchesNothingOfIt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for op, last := 0, false; !last; op++ {
			sh := checkpoint.Shard{Index: op, Count: 9999}
			open := func() (*Store, *proc, int64) {
				p := w.start()
				s, err := Open(p.fs, root, "job-1", sh)
				require.NoError(t, err)
				epoch, err := s.Claim(p.ctx)
				require.NoError(t, err)
				return s, p, epoch
			}
			zombie, p, epoch := open()
			ref1, _ := put(t, zombie, 1, "tail")
			require.NoError(t, zombie.Save(t.Context(), manifest(1, epoch, ref1)))
			ref2, _ := put(t, zombie, 2, "tail")
			require.NoError(t, zombie.Save(t.Context(), manifest(2, epoch, ref2, ref1)))
			begin := p.count()
			var heir *Store
			p.on(func(n int, _ s3test.Request) *s3test.Reply {
				if n == begin+op {
					var later int64
					heir, _, later = open()
					m, err := heir.Latest(t.Context())
					require.NoError(t, err)
					require.EqualValues(t, 2, m.ID)
					ref3, _ := put(t, heir, 3, "more")
					require.NoError(t, heir.Save(t.Context(), manifest(3, later, ref3, ref2, ref1)))
				}
				return nil
			})
			err := zombie.Prune(t.Context(), 1)
			if err != nil {
				require.ErrorIs(t, err, checkpoint.ErrFenced)
			}
			if last = heir == nil; last {
				continue
			}
			m, err := heir.Latest(t.Context())
			require.NoError(t, err, "request %d", op)
			require.EqualValues(t, 3, m.ID)
			for _, ref := range m.States[0].Refs {
				_, err := readBlob(t.Context(), heir, ref)
				require.NoError(t, err)
			}
		}
	})
}

func TestPrune_OfManyBlobs_DeletesSomeAtATime(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, p, epoch := w.claimedStore()
		require.NoError(t, s.Save(t.Context(), manifest(1, epoch)))
		for i := range 50 {
			w.srv.PutObject("b", dir+blobPrefix+blobName(1, 1, int64(100+i)), []byte("x"), nil)
		}
		p.reply(s3test.DeleteObject, "", func(int) *s3test.Reply { return s3test.Delay(time.Second) })
		start := time.Now()
		require.NoError(t, s.Prune(t.Context(), 1))
		require.Empty(t, w.blobNames())
		require.Equal(t, 7*time.Second, time.Since(start), "50 deletes of a second, 8 at a time")
	})
}
