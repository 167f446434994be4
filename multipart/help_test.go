package multipart_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
)

const (
	partSize = 100_000 // two pages, the second partly used: the awkward case
	page     = multipart.PageSize
	key      = "data/part-0"
	token    = "job/1/0/0"
)

var target = multipart.Target{Bucket: "bucket", Key: key}

// rig is one process's view: a store, checkpoint blobs, and a budget that must be empty at the end.
type rig struct {
	t      *testing.T
	store  *store
	blobs  *blobs
	budget *multipart.Budget
	wait   time.Duration
	conc   int
	size   int64
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, store: newStore(), blobs: newBlobs(), budget: multipart.NewBudget(16 << 20), wait: time.Minute, size: partSize}
	t.Cleanup(func() {
		require.Zero(t, r.budget.Stats().Used, "all memory is back at the end")
		require.Zero(t, r.store.aborts, "nothing aborts")
	})
	return r
}

func (r *rig) options() multipart.Options {
	return multipart.Options{PartSize: r.size, Budget: r.budget, PersistWait: r.wait, Concurrency: r.conc, Epoch: 7}
}

func (r *rig) start() *multipart.Upload {
	r.t.Helper()
	u, err := multipart.Start(r.store, target, token, r.options())
	require.NoError(r.t, err)
	r.t.Cleanup(u.Abandon)
	return u
}

func (r *rig) resume(h multipart.Handle) *multipart.Upload {
	r.t.Helper()
	u, err := multipart.Resume(r.t.Context(), r.store, h, r.blobs, r.options())
	require.NoError(r.t, err)
	r.t.Cleanup(u.Abandon)
	return u
}

func (r *rig) write(u *multipart.Upload, p []byte) {
	r.t.Helper()
	n, err := u.Write(r.t.Context(), p)
	require.NoError(r.t, err)
	require.Equal(r.t, len(p), n)
}

// persist captures and stores, and sends the handle through its binary form.
func (r *rig) persist(u *multipart.Upload) multipart.Handle {
	r.t.Helper()
	return r.keep(u.Capture())
}

func (r *rig) keep(c *multipart.Capture) multipart.Handle {
	r.t.Helper()
	h, err := c.Store(r.t.Context(), r.blobs)
	require.NoError(r.t, err)
	b, err := h.MarshalBinary()
	require.NoError(r.t, err)
	var out multipart.Handle
	require.NoError(r.t, out.UnmarshalBinary(b))
	require.Equal(r.t, h, out)
	return out
}

func (r *rig) sealAndCommit(u *multipart.Upload) multipart.Object {
	r.t.Helper()
	require.NoError(r.t, u.Seal())
	o, err := u.Commit(r.t.Context())
	require.NoError(r.t, err)
	return o
}

// published checks the object at the key.
func (r *rig) published(want []byte) {
	r.t.Helper()
	got, ok := r.store.content(key)
	require.True(r.t, ok, "the object is visible")
	require.Equal(r.t, len(want), len(got))
	require.Equal(r.t, crcOf(want), crcOf(got), "content")
}

func (r *rig) nothingVisible() {
	r.t.Helper()
	require.Zero(r.t, r.store.visible(), "nothing is visible")
}

// bytesOf returns n bytes that differ by seed.
func bytesOf(seed uint64, n int) []byte {
	rnd := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	p := make([]byte, n)
	_, _ = rnd.Read(p)
	return p
}

func join(ps ...[]byte) []byte {
	var out []byte
	for _, p := range ps {
		out = append(out, p...)
	}
	return out
}
