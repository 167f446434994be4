package multipart_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
)

// The behaviours that Flink's recoverable-writer suite pins down, by their number in the project's list. "Persist" is
// Capture and Store, "close for commit" is Seal, a commit handle is a handle stored after Seal.

func TestFlinkContract_01_OpenWriteNothingCommit_SucceedsAndPublishesNothing(t *testing.T) {
	r := newRig(t)
	u := r.start()
	o := r.sealAndCommit(u)
	require.Equal(t, multipart.Object{}, o)
	r.nothingVisible()
	require.Empty(t, r.store.takeLog(), "an empty file costs no call")
}

func TestFlinkContract_02_CommitPublishesExactlyWhatWasWritten(t *testing.T) {
	for name, n := range map[string]int{"small": 10, "one part": partSize, "parts": 3*partSize + 17} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			u := r.start()
			data := bytesOf(1, n)
			r.write(u, data)
			r.sealAndCommit(u)
			r.published(data)
			require.Equal(t, 1, r.store.visible(), "under the target name only")
		})
	}
}

func TestFlinkContract_03_NothingIsVisibleBeforeCommit(t *testing.T) {
	for name, n := range map[string]int{"small": 10, "parts": 3*partSize + 17} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			u := r.start()
			r.write(u, bytesOf(1, n))
			r.nothingVisible()
			r.persist(u)
			r.nothingVisible()
			require.NoError(t, u.Seal())
			r.persist(u)
			r.nothingVisible()
			u.Abandon()
			r.nothingVisible()
		})
	}
}

func TestFlinkContract_04_PersistInTheMiddleDoesNotChangeTheContent(t *testing.T) {
	for name, n := range map[string]int{"small": 10, "parts": 2*partSize + 17} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			u := r.start()
			a, b := bytesOf(1, n), bytesOf(2, n)
			r.write(u, a)
			r.persist(u)
			r.write(u, b)
			r.sealAndCommit(u)
			r.published(join(a, b))
		})
	}
}

func TestFlinkContract_05_ResumeFromAHandleTakenBeforeAnyByte_OnlyLaterBytes(t *testing.T) {
	r := newRig(t)
	u := r.start()
	h := r.persist(u)
	require.Zero(t, h.Offset)
	r.write(u, bytesOf(1, 2*partSize+5))
	u.Abandon()

	u = r.resume(h)
	require.Zero(t, u.Offset())
	later := bytesOf(2, 30)
	r.write(u, later)
	r.sealAndCommit(u)
	r.published(later)
}

func TestFlinkContract_06_ResumeFromAHandleWithData_BytesBehindItAreGone(t *testing.T) {
	for name, n := range map[string]int{"small": 10, "parts": 2*partSize + 17} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			u := r.start()
			kept := bytesOf(1, n)
			r.write(u, kept)
			h := r.persist(u)
			r.write(u, bytesOf(2, 3*partSize))
			r.persist(u)
			u.Abandon()

			u = r.resume(h)
			require.Equal(t, int64(n), u.Offset())
			later := bytesOf(3, n)
			r.write(u, later)
			r.sealAndCommit(u)
			r.published(join(kept, later))
		})
	}
}

func TestFlinkContract_07_TwoPersistsWithoutWritesBetweenAreBothValid(t *testing.T) {
	for _, which := range []int{0, 1} {
		r := newRig(t)
		u := r.start()
		data := bytesOf(1, partSize+10)
		r.write(u, data)
		handles := []multipart.Handle{r.persist(u), r.persist(u)}
		u.Abandon()
		u = r.resume(handles[which])
		r.sealAndCommit(u)
		r.published(data)
	}
}

func TestFlinkContract_08_ResumeFromTheNewestOfSeveralHandlesKeepsAllPersistedBytes(t *testing.T) {
	r := newRig(t)
	u := r.start()
	var all []byte
	var newest multipart.Handle
	for i := range 4 {
		p := bytesOf(uint64(i), 50)
		r.write(u, p)
		all = append(all, p...)
		newest = r.persist(u)
	}
	r.write(u, bytesOf(9, 70))
	u.Abandon()
	u = r.resume(newest)
	r.sealAndCommit(u)
	r.published(all)
}

func TestFlinkContract_09_ResumeWithChunksLargerThanAPart(t *testing.T) {
	chunk := 2*partSize + 321
	t.Run("before any byte", func(t *testing.T) {
		r := newRig(t)
		u := r.start()
		h := r.persist(u)
		r.write(u, bytesOf(1, chunk))
		u.Abandon()
		u = r.resume(h)
		later := bytesOf(2, chunk)
		r.write(u, later)
		r.sealAndCommit(u)
		r.published(later)
	})
	t.Run("in the middle", func(t *testing.T) {
		r := newRig(t)
		u := r.start()
		a, c := bytesOf(1, chunk), bytesOf(3, chunk)
		r.write(u, a)
		h := r.persist(u)
		r.write(u, bytesOf(2, chunk))
		u.Abandon()
		u = r.resume(h)
		r.write(u, c)
		r.sealAndCommit(u)
		r.published(join(a, c))
	})
	t.Run("newest of several", func(t *testing.T) {
		r := newRig(t)
		u := r.start()
		a, b, d := bytesOf(1, chunk), bytesOf(2, chunk), bytesOf(4, chunk)
		r.write(u, a)
		r.persist(u)
		r.write(u, b)
		h := r.persist(u)
		r.write(u, bytesOf(3, chunk))
		u.Abandon()
		u = r.resume(h)
		r.write(u, d)
		r.sealAndCommit(u)
		r.published(join(a, b, d))
	})
}

func TestFlinkContract_10_HandlesSurviveSerialisationIntoAnotherProcess(t *testing.T) {
	r := newRig(t)
	u := r.start()
	data := bytesOf(1, 2*partSize+99)
	r.write(u, data)
	h := r.persist(u)
	u.Abandon()
	b, err := h.MarshalBinary()
	require.NoError(t, err)

	var read multipart.Handle
	require.NoError(t, read.UnmarshalBinary(b))
	other := &rig{t: t, store: r.store, blobs: r.blobs, budget: multipart.NewBudget(1 << 20), size: partSize}
	u = other.resume(read)
	other.sealAndCommit(u)
	other.published(data)
	require.Zero(t, other.budget.Stats().Used)
}

func TestFlinkContract_11_ACommitHandleIsCommittableByANewProcess(t *testing.T) {
	for name, n := range map[string]int{"small": 10, "parts": 2*partSize + 17} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			u := r.start()
			data := bytesOf(1, n)
			r.write(u, data)
			require.NoError(t, u.Seal())
			h := r.persist(u)
			require.True(t, h.Sealed)
			u.Abandon()
			u = r.resume(h)
			_, err := u.Commit(t.Context())
			require.NoError(t, err)
			r.published(data)

			// And once more: the commit after a second restore from the same checkpoint finds the work done.
			u = r.resume(h)
			_, err = u.Commit(t.Context())
			require.NoError(t, err)
			r.published(data)
		})
	}
}

func TestFlinkContract_12_WritingAfterSealFails(t *testing.T) {
	r := newRig(t)
	u := r.start()
	data := bytesOf(1, 10)
	r.write(u, data)
	require.NoError(t, u.Seal())
	n, err := u.Write(t.Context(), []byte("x"))
	require.ErrorIs(t, err, multipart.ErrSealed)
	require.Zero(t, n)
	_, err = u.Commit(t.Context())
	require.NoError(t, err)
	_, err = u.Write(t.Context(), []byte("x"))
	require.ErrorIs(t, err, multipart.ErrSealed)
	r.published(data)
}

func TestFlinkContract_13_ResumingAHandleWhoseFileWasCommittedMeanwhileFails(t *testing.T) {
	t.Run("parts: already at resume", func(t *testing.T) {
		r := newRig(t)
		u := r.start()
		data := bytesOf(1, 2*partSize)
		r.write(u, data)
		h := r.persist(u)
		r.sealAndCommit(u)
		_, err := multipart.Resume(t.Context(), r.store, h, r.blobs, r.options())
		require.ErrorIs(t, err, multipart.ErrNoSuchUpload)
		r.published(data)
	})
	t.Run("small: at the commit, and the published object stays", func(t *testing.T) {
		r := newRig(t)
		u := r.start()
		data := bytesOf(1, 20)
		r.write(u, data[:10])
		h := r.persist(u)
		r.write(u, data[10:])
		r.sealAndCommit(u)
		u = r.resume(h)
		r.write(u, bytesOf(2, 10)) // same length, other content
		require.NoError(t, u.Seal())
		_, err := u.Commit(t.Context())
		require.ErrorIs(t, err, multipart.ErrUnproven)
		r.published(data)
	})
}

func TestFlinkContract_14_AfterAnOlderHandleWasCommittedANewerOneFails(t *testing.T) {
	for name, n := range map[string]int{"small": 10, "parts": 2*partSize + 17} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			u := r.start()
			data := bytesOf(1, 2*n)
			r.write(u, data[:n])
			older := r.persist(u)
			r.write(u, data[n:])
			newer := r.persist(u)
			u.Abandon()
			u = r.resume(older)
			r.sealAndCommit(u)

			u, err := multipart.Resume(t.Context(), r.store, newer, r.blobs, r.options())
			if err == nil {
				require.NoError(t, u.Seal())
				_, err = u.Commit(t.Context())
				u.Abandon()
			}
			require.Error(t, err)
			r.published(data[:n])
		})
	}
}

// 15: Flink checks that its temporary directory is empty. There are no temporary files here; what must be empty is the
// budget, and every test of this package checks that at its end. This one does it in all end states in turn.
func TestFlinkContract_15_NoMemoryIsLeftInAnyEndState(t *testing.T) {
	for name, end := range map[string]func(*rig, *multipart.Upload){
		"abandoned":             func(_ *rig, u *multipart.Upload) { u.Abandon() },
		"abandoned sealed":      func(r *rig, u *multipart.Upload) { require.NoError(r.t, u.Seal()); u.Abandon() },
		"committed":             func(r *rig, u *multipart.Upload) { r.sealAndCommit(u) },
		"capture released":      func(_ *rig, u *multipart.Upload) { c := u.Capture(); u.Abandon(); c.Release(); c.Release() },
		"capture stored":        func(r *rig, u *multipart.Upload) { c := u.Capture(); u.Abandon(); r.keep(c) },
		"abandoned and resumed": func(r *rig, u *multipart.Upload) { h := r.persist(u); u.Abandon(); r.resume(h).Abandon() },
	} {
		for _, n := range []int{0, 10, partSize, 2*partSize + 17} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t)
				u := r.start()
				r.write(u, bytesOf(1, n))
				end(r, u)
				require.Zero(t, r.budget.Stats().Used)
			})
		}
	}
}

// 16: In Flink the tail is an object beside the data, and the writer deletes it some time after the commit. Here it is a
// blob of the checkpoint, so it outlives the commit for as long as a checkpoint names it, and pruning checkpoints is what
// deletes it: this package never does. A second deletion is the checkpoint store's to tolerate.
func TestFlinkContract_16_TheTailBlobOutlivesTheCommitUntilItsCheckpointIsPruned(t *testing.T) {
	r := newRig(t)
	u := r.start()
	data := bytesOf(1, partSize+10)
	r.write(u, data)
	h := r.persist(u)
	require.Len(t, h.Pieces, 1)
	ref := h.Pieces[0].Ref
	r.sealAndCommit(u)
	r.published(data)
	require.Equal(t, data[partSize:], r.blobs.data[ref], "the checkpoint still has the tail")

	delete(r.blobs.data, ref) // the last manifest that names it is pruned
	r.published(data)
}
