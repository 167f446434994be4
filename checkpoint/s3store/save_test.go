package s3store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

func TestSave_NeedsAClaimAndTheNextNumber(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		s := w.start().open()
		require.ErrorIs(t, s.Save(ctx, manifest(1, 1)), checkpoint.ErrUnclaimed)
		require.ErrorIs(t, s.Prune(ctx, 1), checkpoint.ErrUnclaimed)
		_, err := s.Blobs(ctx, 1)
		require.ErrorIs(t, err, checkpoint.ErrUnclaimed)
		epoch, err := s.Claim(ctx)
		require.NoError(t, err)
		_, err = s.Blobs(ctx, 0)
		require.Error(t, err)
		require.NoError(t, s.Save(ctx, manifest(1, epoch)))
		for _, id := range []checkpoint.ID{1, 3} {
			require.ErrorIs(t, s.Save(ctx, manifest(id, epoch)), checkpoint.ErrFenced, "%d after 1", id)
		}
		require.ErrorIs(t, s.Save(ctx, manifest(2, epoch-1)), checkpoint.ErrFenced, "an older epoch")
		require.ErrorContains(t, s.Save(ctx, manifest(2, epoch, "../../x:1:0000000000000000")), "not a blob ref")
		err = s.Save(ctx, manifest(2, epoch, blobName(2, 1, 9)+":1:0000000000000000"))
		require.ErrorIs(t, err, fs.ErrNotExist, "a ref to nothing was saved")
		require.Equal(t, url(blobPrefix+blobName(2, 1, 9)), damaged(t, err).File)
		wrong := manifest(2, epoch)
		wrong.Job, wrong.Shard = "other", "0-of-1"
		require.ErrorContains(t, s.Save(ctx, wrong), `job "other"`)
		incomplete := manifest(2, epoch)
		incomplete.States = append(incomplete.States, incomplete.States[0])
		require.ErrorContains(t, s.Save(ctx, incomplete), "participant name")
		require.NoError(t, s.Save(ctx, manifest(2, epoch)))
		m, err := s.Load(ctx, 2)
		require.NoError(t, err)
		require.Equal(t, []any{"job-1", "0-of-1", epoch}, []any{m.Job, m.Shard, m.Epoch})
	})
}

func TestSave_OfABlobThatTheStoreLiedAbout_IsRefused_AndTheNextTryWorks(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, p, epoch := w.claimedStore()
		p.reply(s3test.PutObject, blobPrefix, once(s3test.DropEffect200()))
		ref, _ := put(t, s, 1, "tail")
		require.ErrorIs(t, s.Save(t.Context(), manifest(1, epoch, ref)), fs.ErrNotExist)
		require.NotContains(t, w.names(), manifestName(1))
		ref, name := put(t, s, 1, "tail")
		w.edit(blobPrefix+name, func(data []byte) []byte { return data[:3] })
		require.ErrorContains(t, s.Save(t.Context(), manifest(1, epoch, ref)), "3 bytes, not 4")
		ref, _ = put(t, s, 1, "tail")
		require.NoError(t, s.Save(t.Context(), manifest(1, epoch, ref)))
	})
}

func TestSave_AfterALaterClaim_IsFencedAndLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, _, epoch := w.claimedStore()
		w.claimedStore()
		require.ErrorIs(t, s.Save(t.Context(), manifest(1, epoch)), checkpoint.ErrFenced)
		require.ErrorIs(t, s.Prune(t.Context(), 1), checkpoint.ErrFenced)
		ids, err := s.List(t.Context())
		require.NoError(t, err)
		require.Empty(t, ids)
	})
}

// The claim comes between the look before the manifest and the one after it.
func TestSave_OvertakenByAClaim_IsFenced_AndItsManifestStaysForTheSuccessor(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, p, epoch := w.claimedStore()
		var heir *Store
		p.reply(s3test.PutObject, manifestPrefix, func(int) *s3test.Reply {
			heir, _, _ = w.claimedStore()
			return nil
		})
		require.ErrorIs(t, s.Save(t.Context(), manifest(1, epoch)), checkpoint.ErrFenced)
		m, err := heir.Latest(t.Context())
		require.NoError(t, err)
		require.Equal(t, epoch, m.Epoch)
	})
}

func TestSave_OfANumberThatAnotherRunWins_IsFenced(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, p, epoch := w.claimedStore()
		p.reply(s3test.PutObject, manifestPrefix, func(int) *s3test.Reply {
			heir, _, later := w.claimedStore()
			require.NoError(t, heir.Save(t.Context(), manifest(1, later)))
			return nil
		})
		err := s.Save(t.Context(), manifest(1, epoch))
		require.ErrorIs(t, err, checkpoint.ErrFenced)
		require.ErrorIs(t, err, s3fs.ErrExists)
		m, err := s.Latest(t.Context())
		require.NoError(t, err)
		require.Equal(t, epoch+1, m.Epoch)
	})
}

// What Save says must be what is true, whatever the store answers to the one PUT that counts. An answer that was lost for good leaves it open
// and says so.
func TestSave_WhoseAnswerIsLostOrALie_SaysWhatIsTrue(t *testing.T) {
	const forGood = 1 << 30
	for _, c := range []struct {
		name  string
		reply *s3test.Reply
		times int
		want  error // nil: saved. errKilled: certainly not saved. ErrAmbiguous: both are possible
	}{
		{"lost before, once", s3test.ResetBefore(), 1, nil},
		{"lost before, for good", s3test.ResetBefore(), forGood, checkpoint.ErrAmbiguous},
		{"lost after, once", s3test.ResetAfter(), 1, nil},
		{"lost after, for good", s3test.ResetAfter(), forGood, nil},
		{"500 once", s3test.Status(500, "InternalError"), 1, nil},
		{"500 for good", s3test.Status(500, "InternalError"), forGood, checkpoint.ErrAmbiguous},
		{"500 after the effect", s3test.Status(500, "InternalError").WithEffect(), forGood, nil},
		{"503 for good", s3test.SlowDown(), forGood, errKilled},
		{"503 after the effect", s3test.SlowDown().WithEffect(), forGood, nil},
		{"403", s3test.Status(403, "AccessDenied"), forGood, errKilled},
		{"403 after the effect", s3test.Status(403, "AccessDenied").WithEffect(), forGood, nil},
		{"412 without an object", s3test.Status(412, "PreconditionFailed"), forGood, checkpoint.ErrAmbiguous},
		{"409 once", s3test.Status(409, "ConditionalRequestConflict"), 1, nil},
		{"409 for good", s3test.Status(409, "ConditionalRequestConflict"), forGood, checkpoint.ErrAmbiguous},
		{"200 without a body", s3test.NoBody200().WithEffect(), forGood, nil},
		{"a lie, once", s3test.DropEffect200(), 1, nil},
		{"a lie, for good", s3test.DropEffect200(), forGood, checkpoint.ErrAmbiguous},
		{"a slow answer", s3test.Delay(30 * time.Second), forGood, nil},
	} {
		for _, unconditional := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/501=%v", c.name, unconditional), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					s, p, epoch := w.claimedStore()
					if w.unconditional = unconditional; unconditional && c.name == "412 without an object" {
						return // there is no condition
					}
					if unconditional {
						_ = p.fs.PutIfAbsent(t.Context(), root.Join("x"), nil) // from here on it looks before it writes
					}
					p.reply(s3test.PutObject, manifestPrefix, func(n int) *s3test.Reply {
						if n > c.times {
							return nil
						}
						return c.reply
					})
					err := s.Save(t.Context(), manifest(1, epoch))
					_, there := w.srv.Object("b", dir+manifestName(1))
					switch c.want {
					case nil:
						require.NoError(t, err)
						require.True(t, there)
					case errKilled:
						require.Error(t, err)
						require.NotErrorIs(t, err, checkpoint.ErrAmbiguous)
						require.NotErrorIs(t, err, checkpoint.ErrFenced)
						require.False(t, there)
						p.on(nil)
						require.NoError(t, s.Save(t.Context(), manifest(1, epoch)), "the next one has the same number")
					default:
						require.ErrorIs(t, err, c.want)
						require.ErrorContains(t, err, url(manifestName(1)))
					}
				})
			})
		}
	}
}

func TestSave_WhoseLookIsLost_IsAmbiguous(t *testing.T) {
	for op, part := range map[s3test.Op]string{s3test.GetObject: manifestPrefix, s3test.ListObjectsV2: epochPrefix} {
		bubble(t, func(t *testing.T, w *world) {
			s, p, epoch := w.claimedStore()
			p.reply(op, part, func(int) *s3test.Reply { return s3test.Status(403, "AccessDenied") })
			err := s.Save(t.Context(), manifest(1, epoch))
			require.ErrorIs(t, err, checkpoint.ErrAmbiguous)
			require.ErrorContains(t, err, "AccessDenied")
		})
	}
}

// The checkpoint's time ends while the manifest is on its way.
func TestSave_WhoseContextEndsDuringThePut_FindsOut(t *testing.T) {
	for name, c := range map[string]struct {
		reply *s3test.Reply
		want  error // as above
	}{
		"it came":        {s3test.Delay(0).AnswerAfter(time.Minute), nil},
		"it did not":     {s3test.Delay(time.Minute), checkpoint.ErrAmbiguous},
		"it was refused": {s3test.SlowDown(), errKilled},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				s, p, epoch := w.claimedStore()
				p.reply(s3test.PutObject, manifestPrefix, func(int) *s3test.Reply { return c.reply })
				ctx, cancel := context.WithTimeoutCause(t.Context(), 2500*time.Millisecond, checkpoint.ErrTimeout)
				defer cancel()
				start := time.Now()
				err := s.Save(ctx, manifest(1, epoch))
				require.Less(t, time.Since(start), 3*time.Second)
				if c.want == nil {
					require.NoError(t, err)
					_, err := s.Load(t.Context(), 1)
					require.NoError(t, err)
					return
				}
				require.Error(t, err)
				require.Equal(t, c.want == checkpoint.ErrAmbiguous, errors.Is(err, checkpoint.ErrAmbiguous), "%v", err)
			})
		})
	}
}

// A store that hangs does not hold Save up for longer than it says.
func TestSave_WhoseContextHasEnded_WaitsForAHangingStoreOnlyAWhile(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, p, epoch := w.claimedStore()
		p.on(func(_ int, r s3test.Request) *s3test.Reply {
			if r.Op == s3test.PutObject || r.Op == s3test.GetObject {
				return s3test.Delay(time.Hour)
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, s.Save(ctx, manifest(1, epoch)), checkpoint.ErrAmbiguous)
		require.InDelta(t, 1+settleTime.Seconds(), time.Since(start).Seconds(), 0.1)
	})
}

func TestSave_ThatIsCancelledBeforeAnythingIsSent_IsNotAmbiguous(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, p, epoch := w.claimedStore()
		ctx, cancel := context.WithCancelCause(t.Context())
		p.reply(s3test.ListObjectsV2, "", func(int) *s3test.Reply {
			cancel(errKilled) // during the look before the manifest
			return nil
		})
		err := s.Save(ctx, manifest(1, epoch))
		require.ErrorIs(t, err, errKilled)
		require.NotErrorIs(t, err, checkpoint.ErrAmbiguous)

		before := p.count()
		got, err := s.create(ctx, s.manifestPath(1), []byte("x"))
		require.ErrorIs(t, err, errKilled)
		require.Equal(t, absent, got)
		require.Equal(t, before, p.count())
	})
}
