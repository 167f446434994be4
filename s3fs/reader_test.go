package s3fs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

func TestOpen_ReadsTheWholeObject(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		want := text(3 << 20)
		s.srv.PutObject("b", "x", want, nil)
		r, err := s.Open(s.ctx, path("x"))
		assert.Equal(t, want, readAll(t, r, err))
		assert.Equal(t, 1, s.srv.Counts().Total())
	})
}

func TestOpen_OfNothingFailsAtOnce(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		_, err := s.Open(s.ctx, path("nothing"))
		require.ErrorIs(t, err, s3fs.ErrNotFound)
		_, err = s.Open(s.ctx, s3fs.Path{Bucket: "missing", Key: "x"})
		require.ErrorIs(t, err, s3fs.ErrNoBucket)
	})
}

func TestOpen_BrokenBodyIsResumedByRangeWithIfMatch(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		want := text(1 << 20)
		s.srv.PutObject("b", "x", want, nil)
		defer s.srv.Control(s3test.Match{Op: s3test.GetObject, Nth: 1}, s3test.Always(s3test.CutBody(1000)))()
		defer s.srv.Control(s3test.Match{Op: s3test.GetObject, Nth: 2}, s3test.Always(s3test.CutBody(5000)))()
		r, err := s.Open(s.ctx, path("x"))
		assert.Equal(t, want, readAll(t, r, err))
		assert.Equal(t, []string{
			"GetObject b/x -> 200 (cut at 1000)",
			"GetObject b/x range=bytes=1000-1048575 if-match=etag -> 206 (cut at 5000)",
			"GetObject b/x range=bytes=6000-1048575 if-match=etag -> 206",
		}, lines(s.srv.Trace()))
	})
}

func TestOpen_ProgressResetsTheBoundOnResumptions(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		want := text(100_000)
		s.srv.PutObject("b", "x", want, nil)
		defer s.srv.Control(s3test.Match{Op: s3test.GetObject}, s3test.Always(s3test.CutBody(5_000)))()
		r, err := s.Open(s.ctx, path("x"))
		assert.Equal(t, want, readAll(t, r, err))
		assert.Equal(t, 20, s.srv.Counts().Total())
	})
}

func TestOpen_AnswersWithoutASingleByteEndAfterAsManyResumptionsAsRetries(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		s.srv.PutObject("b", "x", text(100_000), nil)
		defer s.srv.Control(s3test.Match{Op: s3test.GetObject}, s3test.Always(s3test.CutBody(0)))()
		start := time.Now()
		r, err := s.Open(s.ctx, path("x"))
		require.NoError(t, err)
		_, err = io.ReadAll(r)
		require.ErrorContains(t, err, "broke off at byte 0")
		require.NoError(t, r.Close())
		assert.Equal(t, 4, s.srv.Counts().Total())
		assert.Equal(t, 300*time.Millisecond, time.Since(start), "waits of 0, 100 and 200 ms between the resumptions")
	})
}

func TestOpen_ObjectReplacedWhileReadingIsAnError(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		s.srv.PutObject("b", "x", text(100_000), nil)
		defer s.srv.Control(s3test.Match{Op: s3test.GetObject, Nth: 1}, s3test.Always(s3test.CutBody(10)))()
		r, err := s.Open(s.ctx, path("x"))
		require.NoError(t, err)
		s.srv.PutObject("b", "x", text(100_001), nil)
		_, err = io.ReadAll(r)
		require.ErrorIs(t, err, s3fs.ErrChanged)
		require.NoError(t, r.Close())
	})
}

func TestOpen_WrongContentIsFoundAlsoOverAResumption(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		require.NoError(t, s.Put(s.ctx, path("x"), bytes.NewReader(text(100_000))))
		o, _ := s.srv.Object("b", "x")
		o.Data[99_000] ^= 1 // the disk of the store rots
		defer s.srv.Control(s3test.Match{Op: s3test.GetObject, Nth: 1}, s3test.Always(s3test.CutBody(10)))()
		r, err := s.Open(s.ctx, path("x"))
		require.NoError(t, err)
		_, err = io.ReadAll(r)
		require.ErrorIs(t, err, s3fs.ErrChecksum)
		require.NoError(t, r.Close())
	})
}

func TestOpen_WithChecksumsOffNothingIsCompared(t *testing.T) {
	bubble(t, options{settings: func(s *s3fs.Settings) { s.Checksums = false }}, func(t *testing.T, s store) {
		var modes []string
		defer s.srv.Control(s3test.Match{}, func(r s3test.Request) *s3test.Reply {
			modes = append(modes, r.Header.Get("x-amz-checksum-mode"))
			return nil
		})()
		s.srv.PutObject("b", "x", text(10), nil)
		r, err := s.Open(s.ctx, path("x"))
		assert.Len(t, readAll(t, r, err), 10)
		_, err = s.Stat(s.ctx, path("x"))
		require.NoError(t, err)
		assert.Equal(t, []string{"", ""}, modes)
	})
}

func TestOpen_ThrottledReadIsRetriedBeforeItBegins(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		s.srv.PutObject("b", "x", text(10), nil)
		defer s.srv.Control(s3test.Match{Op: s3test.GetObject, First: 3}, s3test.Always(s3test.SlowDown()))()
		r, err := s.Open(s.ctx, path("x"))
		assert.Len(t, readAll(t, r, err), 10)
		assert.Equal(t, 4, s.srv.Counts().Total())
	})
}

func TestOpen_CancelEndsARead(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		s.srv.PutObject("b", "x", text(1<<20), nil)
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(s.ctx)
		r, err := s.Open(ctx, path("x"))
		require.NoError(t, err)
		cancel(why)
		_, err = io.ReadAll(r)
		require.ErrorIs(t, err, why)
		require.NoError(t, r.Close())
		_, err = r.Read(make([]byte, 1))
		require.Error(t, err)
	})
}

func TestOpen_CallTimeoutCoversTheAnswerAndNotTheBody(t *testing.T) {
	bubble(t, options{settings: func(s *s3fs.Settings) { s.CallTimeout = 10 * time.Second }}, func(t *testing.T, s store) {
		s.srv.PutObject("b", "x", text(1<<20), nil)
		r, err := s.Open(s.ctx, path("x"))
		require.NoError(t, err)
		time.Sleep(time.Hour)
		assert.Len(t, readAll(t, r, nil), 1<<20)

		defer s.srv.Control(s3test.Match{Op: s3test.GetObject}, s3test.Always(s3test.Delay(50*time.Second)))()
		start := time.Now()
		_, err = s.Open(s.ctx, path("x"))
		_, ok := errors.AsType[*s3fs.CallTimeoutError](err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, 10*time.Second, time.Since(start))
	})
}

func TestOpen_WaitsWhileTooManyAnswersAreOpen(t *testing.T) {
	bubble(t, options{settings: func(s *s3fs.Settings) { s.MaxConnections = 4 }}, func(t *testing.T, s store) {
		s.srv.PutObject("b", "x", text(1<<20), nil)
		var open []io.ReadCloser
		for range 3 {
			r, err := s.Open(s.ctx, path("x"))
			require.NoError(t, err)
			open = append(open, r)
		}
		// The fourth connection is left for those who publish.
		require.NoError(t, s.PutIfAbsent(s.ctx, path("record"), []byte("r")))
		ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
		defer cancel()
		_, err := s.Open(ctx, path("x"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.AfterFunc(time.Second, func() { _ = open[0].Close() })
		r, err := s.Open(s.ctx, path("x"))
		require.NoError(t, err)
		for _, r := range append(open, r) {
			require.NoError(t, r.Close())
		}
	})
}

func TestReadRange_ReadsExactlyTheRange(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		want := text(1000)
		s.srv.PutObject("b", "x", want, nil)
		for _, c := range []struct{ off, n, from, to int64 }{
			{0, 1, 0, 1}, {0, 1000, 0, 1000}, {10, 90, 10, 100}, {999, 1, 999, 1000}, {990, 100, 990, 1000}, {5, 0, 5, 5},
		} {
			r, err := s.ReadRange(s.ctx, path("x"), c.off, c.n)
			assert.Equal(t, string(want[c.from:c.to]), string(readAll(t, r, err)), "%d bytes at %d", c.n, c.off)
		}
		_, err := s.ReadRange(s.ctx, path("x"), 1000, 1)
		require.ErrorContains(t, err, "InvalidRange")
		_, err = s.ReadRange(s.ctx, path("x"), -1, 1)
		require.Error(t, err)
		_, err = s.ReadRange(s.ctx, path("x"), 1, 1<<63-1)
		require.Error(t, err)
	})
}

func TestReadRange_StoreThatIgnoresRangesIsAnError(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{Op: s3test.GetObject}, s3test.Always(s3test.Raw(200, "text/plain", "everything")))()
		_, err := s.ReadRange(s.ctx, path("x"), 3, 2)
		require.ErrorIs(t, err, s3fs.ErrMissingHeader)
		require.ErrorContains(t, err, "Content-Range")
	})
}

// buffer is an io.WriterAt in memory.
type buffer struct {
	mu sync.Mutex
	b  []byte
}

func (b *buffer) WriteAt(p []byte, off int64) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if grow := int(off) + len(p) - len(b.b); grow > 0 {
		b.b = append(b.b, make([]byte, grow)...)
	}
	return copy(b.b[off:], p), nil
}

func TestReadParallel_CopiesByRangesOfOneVersion(t *testing.T) {
	for _, size := range []int{0, 1, 999, 1000, 1001, 10_500} {
		bubble(t, options{}, func(t *testing.T, s store) {
			want := text(size)
			require.NoError(t, s.Put(s.ctx, path("x"), bytes.NewReader(want)))
			defer s.srv.Control(s3test.Match{Op: s3test.GetObject, Nth: 2}, s3test.Always(s3test.CutBody(100)))()
			var b buffer
			info, err := s.ReadParallel(s.ctx, path("x"), &b, 1000, 4)
			require.NoError(t, err)
			assert.Equal(t, int64(size), info.Size)
			assert.Equal(t, string(want), string(b.b))
		})
	}
}

func TestReadParallel_KeepsToItsConcurrency(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		s.srv.PutObject("b", "x", text(20_000), nil)
		defer s.srv.Control(s3test.Match{Op: s3test.GetObject}, s3test.Always(s3test.Delay(time.Second)))()
		start := time.Now()
		_, err := s.ReadParallel(s.ctx, path("x"), &buffer{}, 1000, 5)
		require.NoError(t, err)
		assert.Equal(t, 4*time.Second, time.Since(start), "20 ranges of a second each, 5 at a time")
	})
}

func TestReadParallel_WrongContentAndReplacedObjectAreErrors(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		require.NoError(t, s.Put(s.ctx, path("x"), bytes.NewReader(text(10_000))))
		o, _ := s.srv.Object("b", "x")
		o.Data[5_000] ^= 1
		_, err := s.ReadParallel(s.ctx, path("x"), &buffer{}, 1000, 4)
		require.ErrorIs(t, err, s3fs.ErrChecksum)

		defer s.srv.Control(s3test.Match{Op: s3test.GetObject, Nth: 3}, func(s3test.Request) *s3test.Reply {
			s.srv.PutObject("b", "x", text(10_001), nil)
			return nil
		})()
		_, err = s.ReadParallel(s.ctx, path("x"), &buffer{}, 1000, 1)
		require.ErrorIs(t, err, s3fs.ErrChanged)
		_, err = s.ReadParallel(s.ctx, path("x"), &buffer{}, 0, 1)
		require.Error(t, err)
	})
}
