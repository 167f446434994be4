package s3fs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

// counted is an in-memory network that counts the connections that are open.
type counted struct {
	srv         *s3test.Server
	dials, open atomic.Int64
}

func (c *counted) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := c.srv.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c.dials.Add(1)
	c.open.Add(1)
	return &countedConn{Conn: conn, c: c}, nil
}

type countedConn struct {
	net.Conn
	c    *counted
	once sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.c.open.Add(-1) })
	return c.Conn.Close()
}

// clientsBubble gives a test a set of clients on one in-memory store.
func clientsBubble(t *testing.T, test func(t *testing.T, srv *s3test.Server, n *counted, cs *s3fs.Clients)) {
	t.Helper()
	cleanAWS(t)
	synctest.Test(t, func(t *testing.T) {
		srv := s3test.New(s3test.Options{Buckets: []string{"b"}})
		defer srv.Close()
		n := &counted{srv: srv}
		test(t, srv, n, s3fs.NewClients(s3fs.WithDialContext(n.dial)))
	})
}

func TestClients_32WritersOn4FileSystemsShareOnePoolAndOneInFlightLimit(t *testing.T) {
	clientsBubble(t, func(t *testing.T, srv *s3test.Server, n *counted, cs *s3fs.Clients) {
		cfg := load(t, map[string]string{
			"s3.endpoint": srv.URL(), "s3.path-style-access": "true", "s3.access-key": "a", "s3.secret-key": "b",
			"s3.connection.max": "8", "s3.retry.mode": "standard",
		})
		var now, peak atomic.Int64
		defer srv.Control(s3test.Match{Op: s3test.PutObject}, func(s3test.Request) *s3test.Reply {
			peak.Store(max(peak.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			return nil
		})()
		var all []*s3fs.FS
		for range 4 {
			f, err := cs.Open(t.Context(), cfg)
			require.NoError(t, err)
			all = append(all, f)
		}
		var writers sync.WaitGroup
		for w := range 32 {
			writers.Go(func() {
				for range 3 {
					assert.NoError(t, all[w%4].Put(t.Context(), path(fmt.Sprint(w)), bytes.NewReader([]byte("x"))))
				}
			})
		}
		writers.Wait()
		assert.Equal(t, int64(7), peak.Load(), "seven of eight connections are for writers, whatever the number of file systems")
		assert.LessOrEqual(t, n.dials.Load(), int64(8))
		assert.Equal(t, int64(96), all[0].Stats().Total.Calls, "statistics are the client's")
		for i, f := range all {
			assert.NotZero(t, n.open.Load(), "closing file system %d of 4", i)
			require.NoError(t, f.Close(t.Context()))
		}
		synctest.Wait()
		assert.Zero(t, n.open.Load(), "the last one closes the connections")
	})
}

func TestClients_DifferentSettingsGetDifferentClients(t *testing.T) {
	clientsBubble(t, func(t *testing.T, srv *s3test.Server, n *counted, cs *s3fs.Clients) {
		base := settings(srv)
		changes := map[string]func(*s3fs.Settings){
			"secret":   func(s *s3fs.Settings) { s.SecretKey = "other" },
			"key":      func(s *s3fs.Settings) { s.AccessKey = "other" },
			"moved":    func(s *s3fs.Settings) { s.AccessKey, s.SecretKey = s.AccessKey+s.SecretKey[:1], s.SecretKey[1:] },
			"token":    func(s *s3fs.Settings) { s.SessionToken = "t" },
			"region":   func(s *s3fs.Settings) { s.Region = "x" },
			"pool":     func(s *s3fs.Settings) { s.MaxConnections = 9 },
			"socket":   func(s *s3fs.Settings) { s.SocketTimeout = time.Second },
			"checksum": func(s *s3fs.Settings) { s.Checksums = false },
			"retries":  func(s *s3fs.Settings) { s.Retry.MaxRetries = 9 },
		}
		stats := func(f *s3fs.FS) int64 { return f.Stats().Total.Calls }
		first, err := cs.OpenSettings(t.Context(), base)
		require.NoError(t, err)
		require.NoError(t, first.Put(t.Context(), path("x"), bytes.NewReader(nil)))
		for name, change := range changes {
			s := base
			change(&s)
			f, err := cs.OpenSettings(t.Context(), s)
			require.NoError(t, err)
			assert.Zero(t, stats(f), name)
			require.NoError(t, f.Close(t.Context()))
		}
		same := base
		same.CloseTimeout = time.Second
		f, err := cs.OpenSettings(t.Context(), same)
		require.NoError(t, err)
		assert.Equal(t, int64(1), stats(f), "the close timeout belongs to the file system")
		require.NoError(t, f.Close(t.Context()))
		require.NoError(t, first.Close(t.Context()))

		again, err := cs.OpenSettings(t.Context(), base)
		require.NoError(t, err)
		assert.Zero(t, stats(again), "a client ends with its last file system")
		require.NoError(t, again.Close(t.Context()))
	})
}

func TestClients_OwnTransportIsNotShared(t *testing.T) {
	clientsBubble(t, func(t *testing.T, srv *s3test.Server, n *counted, cs *s3fs.Clients) {
		one, err := cs.OpenSettings(t.Context(), settings(srv), s3fs.WithDialContext(srv.DialContext))
		require.NoError(t, err)
		two, err := cs.OpenSettings(t.Context(), settings(srv), s3fs.WithDialContext(srv.DialContext))
		require.NoError(t, err)
		require.NoError(t, one.Put(t.Context(), path("x"), bytes.NewReader(nil)))
		assert.Zero(t, two.Stats().Total.Calls)
		assert.Zero(t, n.dials.Load())
		require.NoError(t, errors.Join(one.Close(t.Context()), two.Close(t.Context())))
	})
}

func TestClients_FailedOpenIsTriedAgainByTheNext(t *testing.T) {
	clientsBubble(t, func(t *testing.T, srv *s3test.Server, n *counted, cs *s3fs.Clients) {
		s := s3fs.DefaultSettings()
		_, err := cs.OpenSettings(t.Context(), s)
		require.ErrorIs(t, err, s3fs.ErrNoRegion)
		_, err = cs.OpenSettings(t.Context(), s)
		require.ErrorIs(t, err, s3fs.ErrNoRegion)
		var half *config.Config = load(t, map[string]string{"s3.access-key": "a"})
		_, err = cs.Open(t.Context(), half)
		require.ErrorContains(t, err, "s3.secret-key")
	})
}

func TestClients_OpeningAtOnceMakesOneClient(t *testing.T) {
	clientsBubble(t, func(t *testing.T, srv *s3test.Server, n *counted, cs *s3fs.Clients) {
		var wg sync.WaitGroup
		all := make([]*s3fs.FS, 16)
		for i := range all {
			wg.Go(func() {
				f, err := cs.OpenSettings(t.Context(), settings(srv))
				if assert.NoError(t, err) {
					all[i] = f
				}
			})
		}
		wg.Wait()
		require.NoError(t, all[0].Put(t.Context(), path("x"), bytes.NewReader(nil)))
		for _, f := range all {
			assert.Equal(t, int64(1), f.Stats().Total.Calls)
			require.NoError(t, f.Close(t.Context()))
		}
	})
}
