package multipart_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
)

// kinds are the two ways a file is published: by a PUT, and by completing a multipart upload.
var kinds = map[string]struct {
	size    int
	publish string
}{
	"small": {10, "put"},
	"parts": {2*partSize + 17, "complete"},
}

func eachKind(t *testing.T, f func(t *testing.T, r *rig, u *multipart.Upload, data []byte, publish string)) {
	t.Helper()
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				u := r.start()
				data := bytesOf(1, kind.size)
				r.write(u, data)
				require.NoError(t, u.Seal())
				f(t, r, u, data, kind.publish)
				u.Abandon()
			})
		})
	}
}

func TestCommit_NeedsASeal(t *testing.T) {
	r := newRig(t)
	u := r.start()
	_, err := u.Commit(t.Context())
	require.ErrorIs(t, err, multipart.ErrNotSealed)
}

func TestCommit_PublishesThenLooks(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig, u *multipart.Upload, data []byte, publish string) {
		o, err := u.Commit(t.Context())
		require.NoError(t, err)
		require.Equal(t, int64(len(data)), o.Size)
		require.Equal(t, token, o.Token)
		require.True(t, o.HasCRC)
		require.Equal(t, crcOf(data), o.CRC)
		r.published(data)
		log := r.store.takeLog()
		require.Contains(t, log[len(log)-2], publish)
		require.Equal(t, "head data/part-0", log[len(log)-1])
		require.Zero(t, r.budget.Stats().Used)

		again, err := u.Commit(t.Context())
		require.NoError(t, err)
		require.Equal(t, o, again)
		require.Empty(t, r.store.takeLog(), "once proven, nobody looks again")
	})
}

func TestCommit_AnAnswerThatIsLostIsLookedUp(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig, u *multipart.Upload, data []byte, publish string) {
		r.store.script(rule{op: publish, times: 1, after: true, err: errInjected})
		_, err := u.Commit(t.Context())
		require.NoError(t, err)
		r.published(data)
		require.Equal(t, 1, r.store.calls(publish))
	})
}

func TestCommit_AnErrorWithNothingThereIsUnprovenAndTheNextCommitPublishes(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig, u *multipart.Upload, data []byte, publish string) {
		r.store.script(rule{op: publish, times: 1, err: errInjected})
		_, err := u.Commit(t.Context())
		require.ErrorIs(t, err, multipart.ErrMissing)
		require.ErrorIs(t, err, multipart.ErrUnproven)
		require.NotErrorIs(t, err, multipart.ErrUnknown)
		require.ErrorIs(t, err, errInjected)
		require.ErrorContains(t, err, "of s3://bucket/data/part-0")
		r.nothingVisible()
		r.store.takeLog()
		_, err = u.Commit(t.Context())
		require.NoError(t, err)
		require.Contains(t, r.store.takeLog()[0], "head", "it looks before it publishes again")
		r.published(data)
	})
}

func TestCommit_A200WithNoObjectIsAClaimAndNotAProof(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig, u *multipart.Upload, data []byte, publish string) {
		r.store.script(rule{op: publish, times: 2, lie: true})
		for range 2 {
			_, err := u.Commit(t.Context())
			require.ErrorIs(t, err, multipart.ErrMissing)
			require.ErrorContains(t, err, "nothing is at the key, although the store reported success")
		}
		_, err := u.Commit(t.Context())
		require.NoError(t, err)
		r.published(data)
	})
}

func TestCommit_ALookThatFailsIsUnprovenAndTheNextCommitOnlyLooks(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig, u *multipart.Upload, data []byte, publish string) {
		denied := errors.New("access denied")
		r.store.script(rule{op: "head", times: 1, err: denied})
		_, err := u.Commit(t.Context())
		require.ErrorIs(t, err, multipart.ErrUnknown)
		require.ErrorIs(t, err, denied)
		_, err = u.Commit(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, r.store.calls(publish))
		r.published(data)
	})
}

func TestCommit_BothErrorsAreKept(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig, u *multipart.Upload, _ []byte, publish string) {
		denied := errors.New("access denied")
		r.store.script(rule{op: publish, err: errInjected}, rule{op: "head", err: denied})
		_, err := u.Commit(t.Context())
		require.ErrorIs(t, err, multipart.ErrUnknown)
		require.ErrorIs(t, err, denied)
		require.ErrorIs(t, err, errInjected)
	})
}

func TestCommit_AnotherObjectAtTheKeyIsForeignAndStays(t *testing.T) {
	for name, owner := range map[string]string{"no token": "", "another token": "other/1"} {
		t.Run(name, func(t *testing.T) {
			eachKind(t, func(t *testing.T, r *rig, u *multipart.Upload, data []byte, publish string) {
				theirs := object{data: data, etag: md5Of(data), crc: crcOf(data), hasCRC: true, token: owner}
				r.store.script(rule{op: publish, times: 1, err: errInjected, do: func() { r.store.set(key, theirs) }})
				for range 2 {
					_, err := u.Commit(t.Context())
					require.ErrorIs(t, err, multipart.ErrForeign, "though the content is the same")
					require.NotErrorIs(t, err, multipart.ErrUnproven)
				}
				require.Equal(t, 1, r.store.calls(publish), "the second commit looked and did not overwrite it")
				require.Equal(t, owner, r.store.objects[key].token)
			})
		})
	}
}

func TestCommit_NoSuchUploadIsDecidedByTheLook(t *testing.T) {
	t.Run("completed before: ours", func(t *testing.T) {
		r := newRig(t)
		u := r.start()
		data := bytesOf(1, 2*partSize)
		r.write(u, data)
		require.NoError(t, u.Seal())
		h := r.persist(u)
		// A zombie of this process completes the same upload first.
		_, err := r.resume(h).Commit(t.Context())
		require.NoError(t, err)
		_, err = u.Commit(t.Context())
		require.NoError(t, err)
		r.published(data)
	})
	t.Run("gone: unproven with the cause and the hint", func(t *testing.T) {
		r := newRig(t)
		u := r.start()
		r.write(u, bytesOf(1, 2*partSize))
		require.NoError(t, u.Seal())
		r.persist(u) // waits for the parts
		r.store.drop("up1")
		_, err := u.Commit(t.Context())
		require.ErrorIs(t, err, multipart.ErrUnproven)
		require.ErrorIs(t, err, multipart.ErrNoSuchUpload)
		require.ErrorContains(t, err, "lifecycle rule")
	})
	t.Run("gone before the last part", func(t *testing.T) {
		r := newRig(t)
		u := r.start()
		r.write(u, bytesOf(1, partSize+1))
		r.persist(u) // waits for the part
		r.store.drop("up1")
		require.NoError(t, u.Seal())
		_, err := u.Commit(t.Context())
		require.ErrorIs(t, err, multipart.ErrUnproven)
		require.ErrorIs(t, err, multipart.ErrNoSuchUpload)
	})
	t.Run("gone after a restore: unproven", func(t *testing.T) {
		r := newRig(t)
		u := r.start()
		r.write(u, bytesOf(1, 2*partSize))
		require.NoError(t, u.Seal())
		h := r.persist(u)
		u.Abandon()
		r.store.drop("up1")
		_, err := r.resume(h).Commit(t.Context())
		require.ErrorIs(t, err, multipart.ErrUnproven)
		require.ErrorIs(t, err, multipart.ErrNoSuchUpload)
		require.ErrorContains(t, err, "nothing is at the key, and the upload is gone")
	})
}

func TestCommit_AfterARestoreFindsWhatTheDeadRunPublished(t *testing.T) {
	for name, kind := range kinds {
		for _, hideCRC := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t)
					if hideCRC {
						r.store.hideCRC()
					}
					// No part is acknowledged when the checkpoint is taken, so the ETag can only come from the bytes.
					gate := make(chan struct{})
					r.store.script(rule{op: "part", gate: gate})
					r.wait = 0
					u := r.start()
					data := bytesOf(1, kind.size)
					r.write(u, data)
					require.NoError(t, u.Seal())
					h := r.persist(u)
					require.Empty(t, h.Parts)
					close(gate)
					_, err := u.Commit(t.Context())
					require.NoError(t, err)
					r.store.takeLog()
					_, err = r.resume(h).Commit(t.Context())
					require.NoError(t, err)
					require.Equal(t, []string{"head data/part-0"}, r.store.takeLog())
					r.published(data)
				})
			})
		}
	}
}

func TestCommit_WithoutAChecksumTheETagIsTheProof(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig, u *multipart.Upload, data []byte, _ string) {
		r.store.hideCRC()
		_, err := u.Commit(t.Context())
		require.NoError(t, err)
		r.published(data)
	})
}

func TestCommit_OurTokenWithAnETagThatIsNoMD5AndNoChecksumIsUnprovenNeverForeign(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.store.hideCRC()
			r.store.opaque = true
			u := r.start()
			r.write(u, bytesOf(1, kind.size))
			require.NoError(t, u.Seal())
			_, err := u.Commit(t.Context())
			require.ErrorIs(t, err, multipart.ErrUnproven)
			require.NotErrorIs(t, err, multipart.ErrForeign)
			_, err = u.Commit(t.Context())
			require.ErrorIs(t, err, multipart.ErrUnproven)
			require.Equal(t, 1, r.store.calls(kind.publish), "it is not published again")
		})
	}
}

func TestCommit_AnETagThatIsNoMD5DoesNotMatterWhenTheChecksumMatches(t *testing.T) {
	r := newRig(t)
	r.store.opaque = true
	u := r.start()
	data := bytesOf(1, 2*partSize+1)
	r.write(u, data)
	r.sealAndCommit(u)
	r.published(data)
}

func TestCommit_OurTokenWithOtherContentIsUnproven(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig, u *multipart.Upload, data []byte, publish string) {
		other := bytesOf(2, len(data))
		for name, o := range map[string]object{
			"size":     {data: data[1:], token: token, crc: crcOf(data), hasCRC: true},
			"checksum": {data: other, token: token, crc: crcOf(other), hasCRC: true},
			"etag":     {data: other, token: token, etag: md5Of(other)},
		} {
			r.store.clearScript()
			r.store.script(rule{op: publish, err: errInjected})
			r.store.set(key, o)
			_, err := u.Commit(t.Context())
			require.ErrorIs(t, err, multipart.ErrUnproven, name)
			require.ErrorContains(t, err, "our token", name)
		}
	})
}

func TestCommit_OneAtATime(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig, u *multipart.Upload, data []byte, publish string) {
		gate := make(chan struct{})
		r.store.script(rule{op: publish, gate: gate})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := u.Commit(t.Context())
			require.NoError(t, err)
		})
		synctest.Wait()
		_, err := u.Commit(t.Context())
		require.ErrorIs(t, err, multipart.ErrBusy)
		close(gate)
		wg.Wait()
		r.published(data)
	})
}

func TestCommit_CanBeCancelledWhileItWaitsForPartsAndCalledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.store.script(rule{op: "part", delay: time.Minute})
		u := r.start()
		data := bytesOf(1, 2*partSize)
		r.write(u, data)
		require.NoError(t, u.Seal())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := u.Commit(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, multipart.ErrUnproven)
		_, err = u.Commit(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = u.Commit(t.Context())
		require.NoError(t, err)
		r.published(data)
		require.Equal(t, 2, r.store.calls("part"), "the uploads went on meanwhile")
	})
}

// The handle of a file that was being spilled does not say how its bytes were sent, and a store that gives no checksum
// gives a one-part upload another ETag than a PUT.
func TestCommit_AfterARestoreRecognisesASpilledFileByItsETag(t *testing.T) {
	for name, swap := range map[string]bool{"sent as a part, then expected as a put": false, "sent by put, then spilled": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.store.hideCRC()
				r.wait = 0
				u := r.start()
				r.write(u, []byte("abc"))
				require.NoError(t, u.Seal())
				h := r.persist(u)
				if !swap {
					require.NoError(t, u.Spill())
				}
				_, err := u.Commit(t.Context())
				require.NoError(t, err)
				u = r.resume(h)
				if swap {
					require.NoError(t, u.Spill())
					synctest.Wait()
				}
				_, err = u.Commit(t.Context())
				require.NoError(t, err)
				r.published([]byte("abc"))
			})
		})
	}
}
