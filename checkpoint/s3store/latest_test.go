package s3store

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

// saved saves checkpoints with one blob each and returns the names of the blobs.
func saved(t *testing.T, s *Store, epoch int64, ids ...checkpoint.ID) (blobs []string) {
	t.Helper()
	for _, id := range ids {
		ref, name := put(t, s, id, "tail")
		require.NoError(t, s.Save(t.Context(), manifest(id, epoch, ref)))
		blobs = append(blobs, blobPrefix+name)
	}
	return blobs
}

func TestLatest_OfADamagedNewest_NamesTheNewestIntactOlderOne_AndDoesNotFallBack(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		s, _, epoch := w.claimedStore()
		blobs := saved(t, s, epoch, 1, 2, 3, 4)
		flip := func(data []byte) []byte { data[len(data)/2] ^= 1; return data }
		expect := func(what, name string, older checkpoint.ID) {
			t.Helper()
			_, err := s.Latest(ctx)
			d := damaged(t, err)
			require.Equal(t, []any{checkpoint.ID(4), older, url(name)}, []any{d.ID, d.Older, d.File}, what)
			require.ErrorContains(t, err, url(name))
		}
		w.edit(blobs[3], func(data []byte) []byte { return data[:3] })
		expect("blob cut", blobs[3], 3)
		w.drop(blobs[3])
		expect("blob gone", blobs[3], 3)
		w.edit(manifestName(4), flip)
		expect("manifest flipped", manifestName(4), 3)
		w.drop(blobs[2])
		expect("blob of the older one gone too", manifestName(4), 2)
		w.edit(manifestName(2), func([]byte) []byte { return nil })
		expect("manifest empty", manifestName(4), 1)
		w.edit(manifestName(1), flip)
		expect("nothing intact", manifestName(4), 0)
		_, err := s.Load(ctx, 3)
		require.NoError(t, err, "Load does not look at blobs")
		_, err = s.Load(ctx, 9)
		require.ErrorIs(t, err, checkpoint.ErrNoCheckpoint)
		_, err = s.Load(ctx, 2)
		require.Equal(t, url(manifestName(2)), damaged(t, err).File)
		other := manifest(3, epoch)
		other.Job, other.Shard = "job-1", "0-of-1"
		data, err := other.Encode()
		require.NoError(t, err)
		w.edit(manifestName(4), func([]byte) []byte { return data })
		expect("manifest of another id", manifestName(4), 0)
	})
}

func TestLatest_WithAnyBitOfTheManifestFlipped_IsDamaged(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, _, epoch := w.claimedStore()
		saved(t, s, epoch, 1)
		o, _ := w.srv.Object("b", dir+manifestName(1))
		for i := range o.Data {
			w.edit(manifestName(1), func(data []byte) []byte { data[i] ^= 1 << (i % 8); return data })
			_, err := s.Load(t.Context(), 1)
			require.Equal(t, url(manifestName(1)), damaged(t, err).File, "byte %d", i)
			w.srv.PutObject("b", dir+manifestName(1), o.Data, nil)
		}
		for _, n := range []int{0, 1, 40, len(o.Data) - 1} {
			w.srv.PutObject("b", dir+manifestName(1), o.Data[:n], nil)
			_, err := s.Latest(t.Context())
			damaged(t, err)
		}
		w.srv.PutObject("b", dir+manifestName(1), append(o.Data[:len(o.Data):len(o.Data)], '\n'), nil)
		_, err := s.Latest(t.Context())
		damaged(t, err)
	})
}

// The job must not begin anew because a store lists what it cannot find.
func TestLatest_ThatIsListedButNotFound_IsDamageAndNoFreshStart(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, p, epoch := w.claimedStore()
		saved(t, s, epoch, 1)
		p.reply(s3test.GetObject, manifestPrefix, func(int) *s3test.Reply { return s3test.Status(404, "NoSuchKey") })
		_, err := s.Latest(t.Context())
		require.Equal(t, url(manifestName(1)), damaged(t, err).File)
		require.NotErrorIs(t, err, checkpoint.ErrNoCheckpoint)
	})
}

func TestLatest_OfAStoreThatDoesNotAnswer_IsNotCalledDamage(t *testing.T) {
	for _, op := range []s3test.Op{s3test.GetObject, s3test.ListObjectsV2} {
		bubble(t, func(t *testing.T, w *world) {
			s, p, epoch := w.claimedStore()
			saved(t, s, epoch, 1)
			p.reply(op, "", func(int) *s3test.Reply { return s3test.Status(403, "AccessDenied") })
			_, err := s.Latest(t.Context())
			require.ErrorIs(t, err, s3fs.ErrAccessDenied)
			require.NotErrorIs(t, err, checkpoint.ErrNoCheckpoint)
			var d *checkpoint.DamagedError
			require.NotErrorAs(t, err, &d)
		})
	}
}

// A reader beside a live run: what it has listed may be pruned before it is read, and the pages of its listing may be of different moments.
func TestLatest_BesideARunThatGoesOn_FindsTheNewest(t *testing.T) {
	cleanAWS(t)
	for _, pageSize := range []int{0, 2} {
		for op := range 9 {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, s3test.Options{PageSize: pageSize})
				defer w.end()
				live, _, epoch := w.claimedStore()
				saved(t, live, epoch, 1, 2)
				p := w.start()
				reader := p.open()
				p.on(func(n int, _ s3test.Request) *s3test.Reply {
					if n == op {
						saved(t, live, epoch, 3, 4)
						require.NoError(t, live.Prune(t.Context(), 1))
					}
					return nil
				})
				m, err := reader.Latest(t.Context())
				require.NoError(t, err, "at request %d", op)
				require.Contains(t, []checkpoint.ID{2, 4}, m.ID)
			})
		}
	}
}

func TestStore_WithManyObjects_ReadsAllPages(t *testing.T) {
	bubbleWith(t, s3test.Options{PageSize: 2}, func(t *testing.T, w *world) {
		s, _, epoch := w.claimedStore()
		var want []checkpoint.ID
		for id := checkpoint.ID(1); id <= 7; id++ {
			want = append(want, id)
		}
		saved(t, s, epoch, want...)
		ids, err := s.List(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, ids)
		for range 4 {
			s, _, epoch = w.claimedStore()
		}
		require.EqualValues(t, 5, epoch)
		saved(t, s, epoch, 8)
		m, err := s.Latest(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 8, m.ID)
		require.NoError(t, s.Prune(t.Context(), 3))
		ids, err = s.List(t.Context())
		require.NoError(t, err)
		require.Equal(t, []checkpoint.ID{6, 7, 8}, ids)
		require.Len(t, w.names(), 3+3+1)
	})
}

func TestStore_IgnoresWhatIsNotItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, _, epoch := w.claimedStore()
		foreign := []string{
			"README", "chk-1.json", "chk-00000000000000000007.json.bak", "chk-+0000000000000000007.json", "blobs/notes.txt", "blobs/", "",
			"epoch-9.json", "epoch-00000000000000000099", "blobs/00000000000000000001-1.blob", "sub/chk-00000000000000000009.json",
		}
		for _, name := range foreign {
			w.srv.PutObject("b", dir+name, []byte("x"), nil)
		}
		w.srv.PutObject("b", strings.TrimSuffix(dir, "/")+"0/chk-00000000000000000009.json", []byte("x"), nil)
		saved(t, s, epoch, 1, 2)
		ids, err := s.List(t.Context())
		require.NoError(t, err)
		require.Equal(t, []checkpoint.ID{1, 2}, ids)
		require.NoError(t, s.Prune(t.Context(), 1))
		require.Subset(t, w.names(), foreign)
		require.Len(t, w.names(), len(foreign)+3, "%q", w.names())
		_, _, epoch = w.claimedStore()
		require.EqualValues(t, 2, epoch)
	})
}

// While uploads keep every connection of the common lane busy, a checkpoint goes through.
func TestStore_BesideASaturatedClient_GoesThrough(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.startWith(func(s *s3fs.Settings) { s.MaxConnections, s.Retry.MaxRetries = 8, 0 })
		release := make(chan struct{})
		p.on(func(_ int, r s3test.Request) *s3test.Reply {
			if strings.HasPrefix(r.Key, "data/") {
				<-release
			}
			return nil
		})
		uploads := make(chan error)
		for i := range 20 {
			go func() {
				uploads <- p.fs.Put(t.Context(), s3fs.Path{Bucket: "b", Key: fmt.Sprintf("data/%d", i)}, strings.NewReader("x"))
			}()
		}
		synctest.Wait()
		j, _, err := p.run(1)
		require.NoError(t, err)
		require.NoError(t, j.checkpoints(3))
		require.NoError(t, j.finish())
		close(release)
		for range 20 {
			require.NoError(t, <-uploads)
		}
	})
}
