package s3store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

var errInjected = errors.New("injected")

// content returns n bytes that do not repeat soon.
func content(n int) []byte {
	b := make([]byte, n)
	x := uint32(n)*2654435761 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
	return b
}

func TestBlobs_PutConcurrently_FromAnyReader_AreReadBack(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		s, p, _ := w.claimedStore()
		p.on(func(_ int, r s3test.Request) *s3test.Reply { // each request has to be sent again
			if r.Attempt == 1 {
				return s3test.SlowDown()
			}
			return nil
		})
		b, err := s.Blobs(ctx, 7)
		require.NoError(t, err)
		sizes := []int{0, 1, 5, 4096, 4097, 70_017, 64}
		refs := make([]string, 3*len(sizes))
		var wg sync.WaitGroup
		for i := range refs {
			wg.Go(func() {
				data := content(sizes[i/3])
				var r io.Reader = bytes.NewReader(data)
				switch i % 3 {
				case 1:
					r = iotest.HalfReader(r) // cannot seek
				case 2: // does not begin at its beginning
					r = bytes.NewReader(append([]byte("before"), data...))
					_, err := io.CopyN(io.Discard, r, 6)
					require.NoError(t, err)
				}
				var err error
				refs[i], err = b.Put(ctx, r, int64(len(data)))
				require.NoError(t, err)
			})
		}
		wg.Wait()
		require.NoError(t, b.Sync(ctx))
		require.NoError(t, errors.Join(b.Close(), b.Close()))
		require.Len(t, w.blobNames(), len(refs))
		for i, ref := range refs {
			require.True(t, strings.HasPrefix(ref, "00000000000000000007-1-"), ref)
			in, err := b.Open(ctx, ref)
			require.NoError(t, err)
			require.NoError(t, iotest.TestReader(struct{ io.Reader }{in}, content(sizes[i/3])))
			require.NoError(t, in.Close())
		}
		_, err = b.Put(ctx, strings.NewReader(""), 0)
		require.ErrorIs(t, err, checkpoint.ErrClosed)
	})
}

func TestBlobs_PutOfAnotherSizeThanAnnounced_FailsAndSendsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		s, p, _ := w.claimedStore()
		before := p.count()
		b, err := s.Blobs(ctx, 1)
		require.NoError(t, err)
		for _, c := range []struct{ has, says int }{{0, 1}, {9, 10}, {11, 10}, {1, 0}, {4096, 8192}, {8193, 8192}, {0, -1}, {0, math.MaxInt64}, {0, maxBlob + 1}} {
			for _, wrap := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader} {
				_, err := b.Put(ctx, wrap(bytes.NewReader(make([]byte, c.has))), int64(c.says))
				require.ErrorIs(t, err, checkpoint.ErrSize, "%d bytes announced as %d", c.has, c.says)
			}
		}
		_, err = b.Put(ctx, iotest.ErrReader(errInjected), 10)
		require.ErrorIs(t, err, errInjected)
		_, err = b.Put(ctx, io.MultiReader(strings.NewReader("x"), iotest.ErrReader(errInjected)), 1)
		require.ErrorIs(t, err, errInjected)
		require.Equal(t, before, p.count())
		require.NoError(t, b.Sync(ctx))
	})
}

// A pipe has a Seek method that does not work.
func TestBlobs_PutFromAPipe_IsBuffered(t *testing.T) {
	r, pipe, err := os.Pipe()
	require.NoError(t, err)
	_, err = pipe.Write([]byte("through a pipe"))
	require.NoError(t, err)
	require.NoError(t, pipe.Close())
	defer r.Close()
	bubble(t, func(t *testing.T, w *world) {
		s, _, _ := w.claimedStore()
		b, err := s.Blobs(t.Context(), 1)
		require.NoError(t, err)
		ref, err := b.Put(t.Context(), r, 14)
		require.NoError(t, err)
		text, err := readBlob(t.Context(), s, ref)
		require.NoError(t, err)
		require.Equal(t, "through a pipe", text)
	})
}

func TestBlobs_EveryFlippedBit_IsNoticedAtTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		s, _, _ := w.claimedStore()
		ref, name := put(t, s, 3, "the blob in question")
		check := func(change func([]byte) []byte) {
			t.Helper()
			o, _ := w.srv.Object("b", dir+blobPrefix+name)
			w.edit(blobPrefix+name, change)
			got, err := readBlob(ctx, s, ref)
			d := damaged(t, err)
			require.Equal(t, []any{url(blobPrefix + name), checkpoint.ID(3)}, []any{d.File, d.ID})
			require.LessOrEqual(t, len(got), 20)
			w.srv.PutObject("b", dir+blobPrefix+name, o.Data, nil)
		}
		for i := range 20 {
			check(func(data []byte) []byte { data[i] ^= 1 << (i % 8); return data })
		}
		check(func(data []byte) []byte { return data[:19] })
		check(func(data []byte) []byte { return nil })
		check(func(data []byte) []byte { return append(data, 'x') })
		w.drop(blobPrefix + name)
		_, err := s.OpenBlob(ctx, ref)
		require.Equal(t, url(blobPrefix+name), damaged(t, err).File)
	})
}

func TestBlobs_ReadOverABrokenConnection_IsResumed_AndAFailureIsNotDamage(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, p, _ := w.claimedStore()
		text := string(content(100_000))
		ref, _ := put(t, s, 1, text)
		p.reply(s3test.GetObject, "", once(s3test.CutBody(70_000)))
		got, err := readBlob(t.Context(), s, ref)
		require.NoError(t, err)
		require.Equal(t, text, got)
		p.reply(s3test.GetObject, "", func(n int) *s3test.Reply {
			if n == 1 {
				return s3test.CutBody(70_000)
			}
			return s3test.Status(403, "AccessDenied")
		})
		_, err = readBlob(t.Context(), s, ref)
		require.ErrorIs(t, err, s3fs.ErrAccessDenied)
		var d *checkpoint.DamagedError
		require.NotErrorAs(t, err, &d)
	})
}

func TestBlobs_Abort_DeletesWhatWasPut_AlsoWhatMayHaveBeen(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, p, _ := w.claimedStore()
		for name, end := range map[string]func(checkpoint.BlobWriter) error{
			"at once":     checkpoint.BlobWriter.Abort,
			"after close": func(b checkpoint.BlobWriter) error { return errors.Join(b.Close(), b.Abort(), b.Abort()) },
		} {
			ctx, cancel := context.WithCancel(t.Context())
			b, err := s.Blobs(ctx, 1)
			require.NoError(t, err)
			for range 20 {
				_, err = b.Put(ctx, strings.NewReader("x"), 1)
				require.NoError(t, err)
			}
			p.reply(s3test.PutObject, blobPrefix, func(int) *s3test.Reply { return s3test.Status(403, "AccessDenied").WithEffect() })
			_, err = b.Put(ctx, strings.NewReader("x"), 1)
			require.ErrorIs(t, err, s3fs.ErrAccessDenied)
			p.on(nil)
			require.Len(t, w.blobNames(), 21)
			cancel() // the checkpoint was abandoned because its time was over
			require.NoError(t, end(b), name)
			require.Empty(t, w.blobNames(), name)
			require.Empty(t, s.live)
		}
		empty, err := s.Blobs(t.Context(), 1)
		require.NoError(t, err)
		require.NoError(t, errors.Join(empty.Sync(t.Context()), empty.Close(), empty.Abort()))
	})
}

func TestBlobs_Abort_ThatIsRefused_SaysSo_AndPruneMakesUpForIt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, p, epoch := w.claimedStore()
		b, err := s.Blobs(t.Context(), 1)
		require.NoError(t, err)
		_, err = b.Put(t.Context(), strings.NewReader("x"), 1)
		require.NoError(t, err)
		p.reply(s3test.DeleteObject, "", func(int) *s3test.Reply { return s3test.Status(403, "AccessDenied") })
		require.ErrorIs(t, b.Abort(), s3fs.ErrAccessDenied)
		p.on(nil)
		require.NoError(t, s.Save(t.Context(), manifest(1, epoch)))
		require.NoError(t, s.Prune(t.Context(), 1))
		require.Empty(t, w.blobNames())
	})
}

func TestBlobs_SyncDuringAPut_IsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, p, _ := w.claimedStore()
		b, err := s.Blobs(t.Context(), 1)
		require.NoError(t, err)
		var sync error
		p.reply(s3test.PutObject, blobPrefix, func(int) *s3test.Reply {
			sync = b.Sync(t.Context())
			return nil
		})
		_, err = b.Put(t.Context(), strings.NewReader("x"), 1)
		require.NoError(t, err)
		require.ErrorContains(t, sync, "while 1 are being written")
	})
}
