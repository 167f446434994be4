package s3fs_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

func TestStat_DescribesWhatPutWrote(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		body := text(1000)
		require.NoError(t, s.Put(s.ctx, path("a/x"), bytes.NewReader(body)))
		info, err := s.Stat(s.ctx, path("a/x"))
		require.NoError(t, err)
		assert.Equal(t, path("a/x"), info.Path)
		assert.Equal(t, int64(1000), info.Size)
		assert.NotEmpty(t, info.ETag)
		assert.NotContains(t, info.ETag, `"`)
		assert.WithinDuration(t, time.Now(), info.LastModified, time.Second)
		o, ok := s.srv.Object("b", "a/x")
		require.True(t, ok)
		assert.Equal(t, body, o.Data)
		assert.True(t, info.HasCRC)
		assert.Equal(t, o.Checksum.Value, info.CRC.String())
		assert.Equal(t, "CRC64NVME", o.Checksum.Algorithm)
	})
}

func TestStat_OfNothingIsNotFound(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		_, err := s.Stat(s.ctx, path("nothing"))
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorIs(t, err, s3fs.ErrNotFound)
		e, ok := errors.AsType[*s3fs.OpError](err)
		require.True(t, ok)
		assert.Equal(t, "stat", e.Op)
		assert.Equal(t, path("nothing"), e.Path)
		assert.Equal(t, 1, e.Attempts)
		assert.Equal(t, retrymode.Permanent, e.Class)
	})
}

func TestPut_StartsAtTheReadersPosition(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		r := bytes.NewReader([]byte("skipped|kept"))
		_, err := r.Seek(8, 0)
		require.NoError(t, err)
		require.NoError(t, s.Put(s.ctx, path("x"), r))
		o, _ := s.srv.Object("b", "x")
		assert.Equal(t, "kept", string(o.Data))
	})
}

func TestPut_EmptyObject(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		require.NoError(t, s.Put(s.ctx, path("empty"), bytes.NewReader(nil)))
		info, err := s.Stat(s.ctx, path("empty"))
		require.NoError(t, err)
		assert.Zero(t, info.Size)
		r, err := s.Open(s.ctx, path("empty"))
		assert.Empty(t, readAll(t, r, err))
	})
}

func TestDelete_IsIdempotent(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		s.srv.PutObject("b", "x", []byte("x"), nil)
		require.NoError(t, s.Delete(s.ctx, path("x")))
		require.NoError(t, s.Delete(s.ctx, path("x")))
		assert.Empty(t, s.srv.Keys("b"))
		defer s.srv.Control(s3test.Match{Op: s3test.DeleteObject}, s3test.Always(s3test.Status(404, "NoSuchKey")))()
		require.NoError(t, s.Delete(s.ctx, path("x")), "some stores answer 404")
		err := s.Delete(s.ctx, s3fs.Path{Bucket: "b"})
		require.ErrorIs(t, err, fs.ErrInvalid, "an empty key would delete the bucket")
	})
}

func TestPutIfAbsent_WritesOnceAndThenSaysExists(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		require.NoError(t, s.PutIfAbsent(s.ctx, path("r"), []byte("one")))
		err := s.PutIfAbsent(s.ctx, path("r"), []byte("two"))
		require.ErrorIs(t, err, s3fs.ErrExists)
		require.ErrorIs(t, err, fs.ErrExist)
		o, _ := s.srv.Object("b", "r")
		assert.Equal(t, "one", string(o.Data))
	})
}

func TestPutIfAbsent_LostAnswerLeavesTheRetryerSoThatTheCallerLooks(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{Op: s3test.PutObject, Nth: 1}, s3test.Always(s3test.ResetAfter()))()
		err := s.PutIfAbsent(s.ctx, path("r"), []byte("one"))
		require.Error(t, err)
		e, _ := errors.AsType[*s3fs.OpError](err)
		assert.Equal(t, retrymode.Ambiguous, e.Class)
		assert.Equal(t, 1, e.Attempts)
		o, ok := s.srv.Object("b", "r")
		require.True(t, ok, "it had succeeded")
		assert.Equal(t, "one", string(o.Data))
	})
}

func TestPutIfAbsent_ConflictIsAskedAgain(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{Op: s3test.PutObject, First: 2}, s3test.Always(s3test.Status(409, "ConditionalRequestConflict")))()
		require.NoError(t, s.PutIfAbsent(s.ctx, path("r"), []byte("one")))
	})
}

func TestPutIfAbsent_EndlessConflictEnds(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{Op: s3test.PutObject}, s3test.Always(s3test.Status(409, "ConditionalRequestConflict")))()
		require.Error(t, s.PutIfAbsent(s.ctx, path("r"), []byte("one")))
		assert.Equal(t, 4, s.srv.Counts().Total())
	})
}

func TestPutIfAbsent_StoreWithoutConditionsIsLookedAtFirst(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{Op: s3test.PutObject}, func(r s3test.Request) *s3test.Reply {
			if r.Header.Get("If-None-Match") != "" {
				return s3test.Status(501, "NotImplemented")
			}
			return nil
		})()
		require.NoError(t, s.PutIfAbsent(s.ctx, path("r"), []byte("one")))
		require.ErrorIs(t, s.PutIfAbsent(s.ctx, path("r"), []byte("two")), s3fs.ErrExists)
		o, _ := s.srv.Object("b", "r")
		assert.Equal(t, "one", string(o.Data))
		assert.Equal(t, 1, s.srv.Counts().Status(501), "the store is asked for conditions once only")
	})
}

func TestList_YieldsEveryPageInOrderAndEnds(t *testing.T) {
	bubble(t, options{server: s3test.Options{PageSize: 3}}, func(t *testing.T, s store) {
		want := []string{"p/a", "p/a/b", "p/b", "p/c", "p/d", "p/e", "p/f", "p/g"}
		for _, k := range append([]string{"other", "q"}, want...) {
			s.srv.PutObject("b", k, []byte(k), nil)
		}
		var got []string
		for info, err := range s.List(s.ctx, path("p/")) {
			require.NoError(t, err)
			assert.Equal(t, int64(len(info.Path.Key)), info.Size)
			assert.NotEmpty(t, info.ETag)
			got = append(got, info.Path.Key)
		}
		assert.Equal(t, want, got)
		assert.Equal(t, 3, s.srv.Counts().Total(s3test.ListObjectsV2))
	})
}

func TestList_BreakFetchesNoFurtherPage(t *testing.T) {
	bubble(t, options{server: s3test.Options{PageSize: 2}}, func(t *testing.T, s store) {
		for _, k := range []string{"a", "b", "c", "d"} {
			s.srv.PutObject("b", k, nil, nil)
		}
		for range s.List(s.ctx, path("")) {
			break
		}
		assert.Equal(t, 1, s.srv.Counts().Total())
	})
}

func TestList_EmptyIsNoErrorAndAMissingBucketIs(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		for range s.List(s.ctx, path("none/")) {
			t.Error("something listed")
		}
		n := 0
		for _, err := range s.List(s.ctx, s3fs.Path{Bucket: "missing"}) {
			require.ErrorIs(t, err, s3fs.ErrNoBucket)
			require.ErrorIs(t, err, fs.ErrNotExist)
			n++
		}
		assert.Equal(t, 1, n)
	})
}

func TestList_StoreThatPagesInACircleIsAnError(t *testing.T) {
	const page = `<?xml version="1.0"?><ListBucketResult><IsTruncated>true</IsTruncated>` +
		`<NextContinuationToken>t</NextContinuationToken><Contents><Key>k</Key><Size>1</Size></Contents></ListBucketResult>`
	bubble(t, options{}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{Op: s3test.ListObjectsV2}, s3test.Always(s3test.Raw(200, "application/xml", page)))()
		var last error
		for _, err := range s.List(s.ctx, path("")) {
			last = err
		}
		require.Error(t, last)
		assert.Equal(t, 2, s.srv.Counts().Total())
	})
}

func TestCalls_WithAnEndedContextChangeNothing(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		why := errors.New("the job was stopped")
		ctx, cancel := context.WithCancelCause(s.ctx)
		cancel(why)
		api := s.API()
		target := multipart.Target{Bucket: "b", Key: "k"}
		calls := map[string]func() error{
			"stat":          func() error { _, err := s.Stat(ctx, path("k")); return err },
			"put":           func() error { return s.Put(ctx, path("k"), bytes.NewReader(nil)) },
			"put if absent": func() error { return s.PutIfAbsent(ctx, path("k"), nil) },
			"delete":        func() error { return s.Delete(ctx, path("k")) },
			"open":          func() error { _, err := s.Open(ctx, path("k")); return err },
			"check":         func() error { return s.CheckBucket(ctx, "b") },
			"create":        func() error { _, err := api.Create(ctx, target, "t"); return err },
			"abort":         func() error { return api.Abort(ctx, target, "u") },
			"list parts":    func() error { _, err := api.ListParts(ctx, target, "u"); return err },
		}
		for name, call := range calls {
			assert.ErrorIs(t, call(), why, name)
		}
		assert.Zero(t, s.srv.Counts().Total())
	})
}

func TestClose_LetsCallsInFlightFinishAndRefusesNewOnes(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{Op: s3test.PutObject}, s3test.Always(s3test.Delay(30*time.Second)))()
		done := make(chan error)
		go func() { done <- s.Put(s.ctx, path("slow"), bytes.NewReader([]byte("x"))) }()
		time.Sleep(time.Second)
		closed := make(chan error)
		go func() { closed <- s.Close(s.ctx) }()
		time.Sleep(time.Second)
		_, err := s.Stat(s.ctx, path("slow"))
		require.ErrorIs(t, err, s3fs.ErrClosed)
		require.ErrorIs(t, err, fs.ErrClosed)
		require.NoError(t, <-done)
		require.NoError(t, <-closed)
		require.NoError(t, s.Close(s.ctx), "closing again")
		assert.Equal(t, []string{"slow"}, s.srv.Keys("b"))
	})
}

func TestClose_CancelsWhatOutlivesTheCloseTimeout(t *testing.T) {
	bubbleOpen(t, options{settings: func(s *s3fs.Settings) { s.CloseTimeout = 5 * time.Second }}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{Op: s3test.PutObject}, s3test.Always(s3test.Delay(50*time.Second)))()
		done := make(chan error)
		go func() { done <- s.Put(s.ctx, path("slow"), bytes.NewReader([]byte("x"))) }()
		time.Sleep(time.Second)
		start := time.Now()
		err := s.Close(s.ctx)
		require.ErrorContains(t, err, "1 calls were still in flight")
		assert.Equal(t, 5*time.Second, time.Since(start))
		require.ErrorIs(t, <-done, s3fs.ErrClosed)
	})
}

func TestClose_EndsReaders(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		s.srv.PutObject("b", "x", text(1<<20), nil)
		r, err := s.Open(s.ctx, path("x"))
		require.NoError(t, err)
		require.NoError(t, s.Close(s.ctx))
		_, err = r.Read(make([]byte, 1<<20))
		for err == nil {
			_, err = r.Read(make([]byte, 1<<20))
		}
		require.ErrorIs(t, err, s3fs.ErrClosed)
		require.NoError(t, r.Close())
	})
}
