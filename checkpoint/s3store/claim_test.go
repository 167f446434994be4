package s3store

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

func TestOpen_AcceptsOnlyNamesThatAreOneHarmlessSegment_AndMakesNoRequest(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.start()
		for _, name := range []string{"a", "job-1", "A.b_c-9", strings.Repeat("x", 128)} {
			_, err := Open(p.fs, root, name, shard)
			require.NoError(t, err)
		}
		for _, name := range []string{"", ".", "..", ".hidden", "a..b", "a/b", `a\b`, "a b", "ä", "a\n", strings.Repeat("x", 129)} {
			_, err := Open(p.fs, root, name, shard)
			require.ErrorContains(t, err, "job name", "%q", name)
		}
		_, err := Open(p.fs, root, "job", checkpoint.Shard{})
		require.ErrorContains(t, err, "shard")
		_, err = Open(nil, root, "job", shard)
		require.ErrorContains(t, err, "no file system")
		_, err = Open(p.fs, s3fs.Path{Key: "checkpoints"}, "job", shard)
		require.ErrorContains(t, err, "bucket name is empty")
		_, err = Open(p.fs, s3fs.Path{Bucket: "b", Key: strings.Repeat("k", 950)}, "job", shard)
		require.ErrorContains(t, err, "at most 1024", "the longest name has to fit")
		require.Zero(t, p.count())
	})
}

func TestOpen_BelowAWholeBucketOrAKeyWithASlash_MakesNoEmptySegment(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.start()
		for key, want := range map[string]string{"": "j/0-of-1", "a": "a/j/0-of-1", "c/": "c/j/0-of-1", "a/b": "a/b/j/0-of-1"} {
			s, err := Open(p.fs, s3fs.Path{Bucket: "b", Key: key}, "j", shard)
			require.NoError(t, err)
			require.Equal(t, s3fs.Path{Bucket: "b", Key: want}, s.Path())
			_, err = s.Claim(p.ctx)
			require.NoError(t, err)
			_, found := w.srv.Object("b", want+"/epoch-00000000000000000001.json")
			require.True(t, found, "%v", w.srv.Keys("b"))
		}
	})
}

func TestStore_WithNothingInIt_HasNoCheckpoint_AndAMissingBucketIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.start()
		s := p.open()
		_, err := s.Latest(t.Context())
		require.ErrorIs(t, err, checkpoint.ErrNoCheckpoint)
		ids, err := s.List(t.Context())
		require.NoError(t, err)
		require.Empty(t, ids)
		require.Empty(t, w.srv.Keys("b"))

		s, err = Open(p.fs, s3fs.Path{Bucket: "other"}, "job", shard)
		require.NoError(t, err)
		_, err = s.Latest(t.Context())
		require.ErrorIs(t, err, s3fs.ErrNoBucket)
		require.NotErrorIs(t, err, checkpoint.ErrNoCheckpoint, "a fresh start would be wrong")
		_, err = s.Load(t.Context(), 1)
		require.ErrorIs(t, err, s3fs.ErrNoBucket)
		require.NotErrorIs(t, err, checkpoint.ErrNoCheckpoint)
		_, err = s.Claim(t.Context())
		require.ErrorIs(t, err, s3fs.ErrNoBucket)
	})
}

func TestClaim_GivesGrowingEpochs_AlsoWhenTheEpochsAreGone(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for want := int64(1); want <= 3; want++ {
			s, _, epoch := w.claimedStore()
			require.Equal(t, want, epoch)
			require.NoError(t, s.Save(t.Context(), manifest(checkpoint.ID(want), epoch)))
			require.NoError(t, s.Close())
		}
		for _, epoch := range []int64{1, 2, 3} {
			w.drop(epochName(epoch))
		}
		s, _, epoch := w.claimedStore()
		require.EqualValues(t, 4, epoch, "those of the manifests must count")
		put(t, s, 4, "x")
		w.drop(epochName(4))
		_, _, epoch = w.claimedStore()
		require.EqualValues(t, 5, epoch, "those of the blobs must count")
	})
}

func TestClaim_WithoutEpochsAndWithADamagedManifest_LooksAtOlderOnes_AndRefusesWhenThereAreNone(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, _, epoch := w.claimedStore()
		require.NoError(t, s.Save(t.Context(), manifest(1, epoch)))
		require.NoError(t, s.Save(t.Context(), manifest(2, epoch)))
		w.drop(epochName(1))
		w.edit(manifestName(2), func([]byte) []byte { return nil })
		_, _, epoch = w.claimedStore()
		require.EqualValues(t, 2, epoch)
		w.drop(epochName(2))
		w.edit(manifestName(1), func([]byte) []byte { return nil })
		_, err := w.start().open().Claim(t.Context())
		require.Equal(t, url(manifestName(2)), damaged(t, err).File)
	})
}

func TestNewestEpoch_NeedsNoClaim_AndNobodyKnowsWhetherItsRunIsAlive(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		reader := w.start().open()
		for want := range int64(4) {
			epoch, err := reader.NewestEpoch(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, epoch)
			s, _, epoch := w.claimedStore()
			require.NoError(t, s.Save(t.Context(), manifest(checkpoint.ID(want+1), epoch)))
		}
		w.drop(epochName(4))
		epoch, err := reader.NewestEpoch(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 4, epoch, "that of the newest manifest")
		_, _, err = reader.Live(t.Context())
		require.ErrorContains(t, err, "does not tell")
	})
}

func TestClaim_AgainByTheSameStore_FencesTheEarlierEpochOff(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, _, first := w.claimedStore()
		put(t, s, 2, "of an attempt that is given up")
		second, err := s.Claim(t.Context())
		require.NoError(t, err)
		require.Equal(t, first+1, second)
		require.ErrorIs(t, s.Save(t.Context(), manifest(1, first)), checkpoint.ErrFenced)
		require.NoError(t, s.Save(t.Context(), manifest(1, second)))
		require.NoError(t, s.Prune(t.Context(), 1))
		require.Empty(t, w.blobNames())
	})
}

func TestClaim_OfEachShardAndJob_IsItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.start()
		for _, job := range []string{"job-1", "job-10", "job-1.x"} {
			for _, sh := range []checkpoint.Shard{{Index: 0, Count: 1}, {Index: 0, Count: 10}, {Index: 1, Count: 10}} {
				s, err := Open(p.fs, root, job, sh)
				require.NoError(t, err)
				epoch, err := s.Claim(t.Context())
				require.NoError(t, err)
				require.EqualValues(t, 1, epoch, "%s %s", job, sh)
				require.NoError(t, s.Save(t.Context(), manifest(1, epoch)))
			}
		}
	})
}

// Two runs list at the same time and want the same epoch.
func TestClaim_LostToAnotherRun_TakesTheNextEpoch(t *testing.T) {
	for _, unconditional := range []bool{false, true} {
		bubble(t, func(t *testing.T, w *world) {
			w.unconditional = unconditional
			p := w.start()
			var other *Store
			p.reply(s3test.PutObject, epochPrefix, func(n int) *s3test.Reply {
				if n == 1 {
					other, _, _ = w.claimedStore()
				}
				return nil
			})
			s := p.open()
			epoch, err := s.Claim(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, 2, epoch)
			require.ErrorIs(t, other.Save(t.Context(), manifest(1, 1)), checkpoint.ErrFenced)
			require.NoError(t, s.Save(t.Context(), manifest(1, 2)))
		})
	}
}

func TestClaim_LostAgainAndAgain_GivesUp(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.start()
		p.reply(s3test.PutObject, epochPrefix, func(int) *s3test.Reply {
			w.claimedStore()
			return nil
		})
		_, err := p.open().Claim(t.Context())
		require.ErrorIs(t, err, checkpoint.ErrEpochTaken)
		require.ErrorContains(t, err, "8 times in a row")
	})
}

// The epoch was claimed by a run that is gone, and pruned by its successor, while this one was held up between its listing and its PUT.
func TestClaim_OfAnEpochThatWasUsedAndPruned_IsNotBelieved(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.start()
		p.reply(s3test.PutObject, epochPrefix, func(n int) *s3test.Reply {
			if n == 1 {
				w.claimedStore() // epoch 1
				s, _, epoch := w.claimedStore()
				require.NoError(t, s.Save(t.Context(), manifest(1, epoch)))
				require.NoError(t, s.Prune(t.Context(), 1))
				require.NotContains(t, w.names(), epochName(1))
			}
			return nil
		})
		epoch, err := p.open().Claim(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 3, epoch)
	})
}

// Without conditional PUT two runs can look, find nothing, and both write. The one that was overwritten must notice before it publishes.
func TestClaim_OfTheSameEpochByTwoRunsWithoutConditionalPut_FencesTheOverwrittenOneOff(t *testing.T) {
	cleanAWS(t)
	same := 0
	for at, last := 0, false; !last; at++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, s3test.Options{})
			w.unconditional = true
			defer w.end()
			p := w.start()
			var other *Store
			var others int64
			p.on(func(n int, _ s3test.Request) *s3test.Reply {
				if n == at {
					other, _, others = w.claimedStore()
				}
				return nil
			})
			s := p.open()
			epoch, err := s.Claim(t.Context())
			require.NoError(t, err)
			if last = other == nil; last {
				return
			}
			err = other.Save(t.Context(), manifest(1, others))
			if epoch == others {
				same++
				require.ErrorIs(t, err, checkpoint.ErrFenced, "both have epoch %d, held up at request %d", epoch, at)
			}
			if epoch >= others {
				require.ErrorIs(t, err, checkpoint.ErrFenced)
				require.NoError(t, s.Save(t.Context(), manifest(1, epoch)))
			} else {
				require.NoError(t, err)
				require.ErrorIs(t, s.Save(t.Context(), manifest(1, epoch)), checkpoint.ErrFenced)
			}
		})
	}
	require.Equal(t, 1, same, "between the look and the write")
}

// As above, but the other run's write comes after this one has found its own object, and before it lists the epochs.
func TestClaim_OverwrittenWhileItLooksForLaterEpochs_TakesTheNextEpoch(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.unconditional = true
		other := w.start()
		held, release, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		other.on(func(_ int, r s3test.Request) *s3test.Reply {
			if r.Op == s3test.PutObject && r.Header.Get("If-None-Match") == "" {
				close(held)
				<-release
			}
			return nil
		})
		go func() {
			defer close(done)
			epoch, err := other.open().Claim(other.ctx)
			require.NoError(t, err)
			require.EqualValues(t, 1, epoch)
		}()
		<-held
		p := w.start()
		p.reply(s3test.ListObjectsV2, epochPrefix, func(n int) *s3test.Reply {
			if n == 1 {
				close(release)
				<-done
			}
			return nil
		})
		epoch, err := p.open().Claim(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, epoch)
	})
}

// What becomes of the one PUT of a claim, whatever is answered.
func TestClaim_WhoseAnswerIsLostOrALie_IsCertainInTheEnd(t *testing.T) {
	for name, r := range map[string]*s3test.Reply{
		"lost before": s3test.ResetBefore(), "lost after": s3test.ResetAfter(), "500 after": s3test.Status(500, "InternalError").WithEffect(),
		"503 after": s3test.SlowDown().WithEffect(), "no body": s3test.NoBody200(), "lie": s3test.DropEffect200(),
		"conflict": s3test.Status(409, "ConditionalRequestConflict"), "412 without reason": s3test.Status(412, "PreconditionFailed"),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				p := w.start()
				p.reply(s3test.PutObject, epochPrefix, once(r))
				s := p.open()
				epoch, err := s.Claim(t.Context())
				require.NoError(t, err)
				require.EqualValues(t, 1, epoch)
				require.Equal(t, []string{epochName(1)}, w.names())
				require.NoError(t, s.Save(t.Context(), manifest(1, epoch)))
			})
		})
	}
}

// once replies to the first request only.
func once(r *s3test.Reply) func(int) *s3test.Reply {
	return func(n int) *s3test.Reply {
		if n == 1 {
			return r
		}
		return nil
	}
}

func TestStore_ThatIsClosed_StillReads(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, _, epoch := w.claimedStore()
		ref, _ := put(t, s, 1, "tail")
		require.NoError(t, s.Save(t.Context(), manifest(1, epoch, ref)))
		require.NoError(t, errors.Join(s.Close(), s.Close()))
		_, err := s.Claim(t.Context())
		require.ErrorIs(t, err, checkpoint.ErrClosed)
		require.ErrorIs(t, s.Save(t.Context(), manifest(2, epoch)), checkpoint.ErrClosed)
		require.ErrorIs(t, s.Prune(t.Context(), 1), checkpoint.ErrClosed)
		_, err = s.Blobs(t.Context(), 2)
		require.ErrorIs(t, err, checkpoint.ErrClosed)
		m, err := s.Latest(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, m.ID)
		text, err := readBlob(t.Context(), s, ref)
		require.NoError(t, err)
		require.Equal(t, "tail", text)
	})
}

func TestStore_WithAnEndedContext_MakesNoRequest(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, p, epoch := w.claimedStore()
		b, err := s.Blobs(t.Context(), 1)
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errKilled)
		before := p.count()
		_, claim := s.Claim(ctx)
		_, latest := s.Latest(ctx)
		_, load := s.Load(ctx, 1)
		_, list := s.List(ctx)
		_, blobs := s.Blobs(ctx, 1)
		_, open := s.OpenBlob(ctx, blobName(1, 1, 1)+":0:0000000000000000")
		_, put := b.Put(ctx, strings.NewReader(""), 0)
		for i, err := range []error{claim, latest, load, list, blobs, open, put, b.Sync(ctx), s.Save(ctx, manifest(1, epoch)), s.Prune(ctx, 1)} {
			require.ErrorIs(t, err, errKilled, "%d", i)
		}
		require.Equal(t, before, p.count())
	})
}
