package s3fs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

// slowConn lets a number of bytes per second through, in steps of a tenth of a second, in both directions.
type slowConn struct {
	net.Conn
	perSecond int
}

func (c *slowConn) Write(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		time.Sleep(100 * time.Millisecond)
		k, err := c.Conn.Write(p[n:min(len(p), n+c.perSecond/10)])
		if n += k; err != nil {
			return n, err
		}
	}
	return n, nil
}

func (c *slowConn) Read(p []byte) (int, error) {
	time.Sleep(100 * time.Millisecond)
	return c.Conn.Read(p[:min(len(p), c.perSecond/10)])
}

// slowLink is a file system whose connections go through wrap.
func slowLink(t *testing.T, set func(*s3fs.Settings), wrap func(net.Conn) net.Conn, test func(t *testing.T, s store)) {
	t.Helper()
	cleanAWS(t)
	synctest.Test(t, func(t *testing.T) {
		srv := s3test.New(s3test.Options{Buckets: []string{"b"}, MinPartSize: 1})
		defer srv.Close()
		cfg := settings(srv)
		set(&cfg)
		f, err := s3fs.OpenSettings(t.Context(), cfg, s3fs.WithDialContext(func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := srv.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return wrap(c), nil
		}))
		require.NoError(t, err)
		test(t, store{f, srv, t.Context()})
		require.NoError(t, f.Close(t.Context()))
		time.Sleep(time.Second) // a read of the slow link that is under way ends
	})
}

func TestSocketTimeout_O39_SlowUploadThatAdvancesNeverTimesOut(t *testing.T) {
	set := func(s *s3fs.Settings) { s.SocketTimeout = 5 * time.Second }
	slowLink(t, set, func(c net.Conn) net.Conn { return &slowConn{c, 200 << 10} }, func(t *testing.T, s store) {
		body := text(5 << 20)
		id, err := s.API().Create(s.ctx, target, "t")
		require.NoError(t, err)
		start := time.Now()
		_, err = s.API().UploadPart(s.ctx, target, id, 1, bytes.NewReader(body), int64(len(body)), multipart.Checksum(body))
		require.NoError(t, err)
		assert.Greater(t, time.Since(start), 4*5*time.Second, "it took many times the timeout")
		assert.Equal(t, 1, s.srv.Counts().Total(s3test.UploadPart))
	})
}

func TestSocketTimeout_SlowDownloadThatAdvancesNeverTimesOut(t *testing.T) {
	set := func(s *s3fs.Settings) { s.SocketTimeout = 5 * time.Second }
	slowLink(t, set, func(c net.Conn) net.Conn { return &slowConn{c, 200 << 10} }, func(t *testing.T, s store) {
		s.srv.PutObject("b", "k", text(5<<20), nil)
		start := time.Now()
		r, err := s.Open(s.ctx, path("k"))
		assert.Equal(t, text(5<<20), readAll(t, r, err))
		assert.Greater(t, time.Since(start), 20*time.Second)
		assert.Equal(t, 1, s.srv.Counts().Total())
	})
}

func TestSocketTimeout_AnswerThatDoesNotComeEndsTheAttemptAndIsRetried(t *testing.T) {
	bubble(t, options{settings: func(s *s3fs.Settings) { s.SocketTimeout = 5 * time.Second }}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{Op: s3test.PutObject, Nth: 1}, s3test.Always(s3test.Delay(50*time.Second)))()
		start := time.Now()
		require.NoError(t, s.Put(s.ctx, path("x"), bytes.NewReader(text(100_000))))
		assert.Equal(t, 2, s.srv.Counts().Total(s3test.PutObject)+pending(s))
		assert.GreaterOrEqual(t, time.Since(start), 5*time.Second)
		assert.Less(t, time.Since(start), 6*time.Second)
	})
}

func pending(s store) int { return bytes.Count([]byte(s.srv.Trace()), []byte("-> pending")) }

func TestSocketTimeout_EndsEveryAttemptAndSaysSo(t *testing.T) {
	bubble(t, options{settings: func(s *s3fs.Settings) { s.SocketTimeout = 5 * time.Second; s.Retry.MaxRetries = 1 }}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{}, s3test.Always(s3test.Delay(50*time.Second)))()
		start := time.Now()
		_, err := s.Stat(s.ctx, path("x"))
		_, ok := errors.AsType[*s3fs.NoProgressError](err)
		require.True(t, ok, "%v", err)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		oe, _ := errors.AsType[*s3fs.OpError](err)
		assert.Equal(t, retrymode.Transient, oe.Class)
		assert.Equal(t, 2, oe.Attempts)
		assert.Contains(t, err.Error(), "no progress on the wire for 5s")
		assert.Less(t, time.Since(start), 11*time.Second)
	})
}

func TestSocketTimeout_ReaderThatPausesIsNotPunished(t *testing.T) {
	bubble(t, options{settings: func(s *s3fs.Settings) { s.SocketTimeout = 5 * time.Second }}, func(t *testing.T, s store) {
		s.srv.PutObject("b", "x", text(1<<20), nil)
		r, err := s.Open(s.ctx, path("x"))
		require.NoError(t, err)
		var got []byte
		for range 4 {
			chunk := make([]byte, 1<<18)
			_, err := io.ReadFull(r, chunk)
			require.NoError(t, err)
			got = append(got, chunk...)
			time.Sleep(time.Minute)
		}
		require.NoError(t, r.Close())
		assert.Equal(t, text(1<<20), got)
		assert.Equal(t, 1, s.srv.Counts().Total())
	})
}

// A deadline left over from the last exchange would kill a pooled connection under the next one.
func TestSocketTimeout_IdleConnectionsInThePoolStayUsable(t *testing.T) {
	cleanAWS(t)
	dials := 0
	set := func(s *s3fs.Settings) { s.SocketTimeout = 5 * time.Second; s.MaxIdleTime = time.Hour }
	bubbleDial(t, set, &dials, func(t *testing.T, s store) {
		for _, pause := range []time.Duration{4999 * time.Millisecond, 5 * time.Second, 5001 * time.Millisecond, time.Minute, 59 * time.Minute} {
			require.NoError(t, s.Put(s.ctx, path("x"), bytes.NewReader([]byte("x"))))
			time.Sleep(pause)
		}
		require.NoError(t, s.Put(s.ctx, path("x"), bytes.NewReader([]byte("x"))))
		assert.Equal(t, 1, dials)
		assert.Equal(t, int64(6), s.Stats().Total.Attempts)
	})
}

func TestSocketTimeout_BodyThatStallsIsResumed(t *testing.T) {
	var first atomic.Bool
	first.Store(true)
	wrap := func(c net.Conn) net.Conn {
		if !first.Swap(false) {
			return c
		}
		budget := new(atomic.Int64)
		budget.Store(100_000)
		return &stallingReads{c, budget, new(sync.Once), make(chan struct{})}
	}
	set := func(s *s3fs.Settings) { s.SocketTimeout = 5 * time.Second }
	slowLink(t, set, wrap, func(t *testing.T, s store) {
		want := text(1 << 20)
		s.srv.PutObject("b", "x", want, nil)
		start := time.Now()
		r, err := s.Open(s.ctx, path("x"))
		assert.Equal(t, want, readAll(t, r, err))
		assert.Equal(t, 5*time.Second, time.Since(start))
		assert.Equal(t, 2, s.srv.Counts().Total(s3test.GetObject)+pending(s))
	})
}

// stallingReads gives nothing more once the budget is used up, until its deadline or its end.
type stallingReads struct {
	net.Conn
	left   *atomic.Int64
	once   *sync.Once
	closed chan struct{}
}

func (c *stallingReads) Read(p []byte) (int, error) {
	left := c.left.Load()
	if left <= 0 {
		<-c.closed
		return 0, os.ErrDeadlineExceeded
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), left)])
	c.left.Add(-int64(n))
	return n, err
}

func (c *stallingReads) SetDeadline(d time.Time) error {
	if c.left.Load() <= 0 && !d.IsZero() {
		time.AfterFunc(time.Until(d), func() { c.once.Do(func() { close(c.closed) }) })
	}
	return c.Conn.SetDeadline(d)
}

func TestConnectionTimeout_EndsADialAndIsRetried(t *testing.T) {
	cleanAWS(t)
	synctest.Test(t, func(t *testing.T) {
		dials := 0
		s := s3fs.DefaultSettings()
		s.Endpoint, s.AccessKey, s.SecretKey, s.ConnectTimeout, s.Retry.MaxRetries = "http://x.test", "a", "b", 3*time.Second, 2
		f, err := s3fs.OpenSettings(t.Context(), s, s3fs.WithDialContext(func(ctx context.Context, _, _ string) (net.Conn, error) {
			dials++
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		require.NoError(t, err)
		start := time.Now()
		_, err = f.Stat(t.Context(), path("x"))
		require.ErrorIs(t, err, s3fs.ErrUnreachable)
		require.ErrorContains(t, err, "within 3s")
		assert.Equal(t, 3, dials)
		assert.GreaterOrEqual(t, time.Since(start), 9*time.Second)
		assert.Less(t, time.Since(start), 10*time.Second)
		require.NoError(t, f.Close(t.Context()))
	})
}

// The other side takes the connection and says nothing, as a port of plain HTTP or a stuck balancer may.
func TestConnectionTimeout_EndsATLSHandshakeAndIsRetried(t *testing.T) {
	cleanAWS(t)
	synctest.Test(t, func(t *testing.T) {
		dials := 0
		s := s3fs.DefaultSettings()
		s.Endpoint, s.AccessKey, s.SecretKey, s.ConnectTimeout, s.Retry.MaxRetries = "https://x.test", "a", "b", 3*time.Second, 2
		f, err := s3fs.OpenSettings(t.Context(), s, s3fs.WithDialContext(func(context.Context, string, string) (net.Conn, error) {
			dials++
			ours, theirs := net.Pipe()
			go func() {
				_, _ = io.Copy(io.Discard, theirs)
				_ = theirs.Close()
			}()
			return ours, nil
		}))
		require.NoError(t, err)
		start := time.Now()
		_, err = f.Stat(t.Context(), path("x"))
		require.ErrorContains(t, err, "TLS handshake timeout")
		assert.Equal(t, 3, dials)
		assert.GreaterOrEqual(t, time.Since(start), 9*time.Second)
		assert.Less(t, time.Since(start), 10*time.Second)
		require.NoError(t, f.Close(t.Context()))
	})
}
