package s3fs

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/sluice-go/sluice/config"
)

// Clients hands out file systems of one process so that those with equal
// settings share one client: one connection pool, one in-flight limit, one
// retry limiter. Without it eight sinks with s3.connection.max = 50 would have
// 400 connections, and a throttle that one of them meets would be news to the
// others.
//
// The zero value is not usable; make one with NewClients in main and hand it
// down. It is safe for concurrent use and needs no Close: a client ends with
// the last file system that uses it.
type Clients struct {
	opts []Option

	mu   sync.Mutex
	live map[clientKey]*shared
}

// clientKey is a digest, so that no secret lies in a map for the life of the
// process.
type clientKey [sha256.Size]byte

// shared is one client and how many file systems use it.
type shared struct {
	ready  chan struct{} // closed when client or err is there
	client *client
	err    error
	users  int
}

// NewClients returns an empty set. The options are the dependencies of every
// client in it.
func NewClients(opts ...Option) *Clients {
	return &Clients{opts: opts, live: map[clientKey]*shared{}}
}

// Open is like the function Open, except that file systems with equal settings
// share their client. A logger may differ from one to the next: what the client
// itself logs goes to that of the file system that came first. A file system
// with WithHTTPClient or WithDialContext among opts gets a client of its own.
func (cs *Clients) Open(ctx context.Context, c *config.Config, opts ...Option) (*FS, error) {
	s, err := FromConfig(c)
	if err != nil {
		return nil, err
	}
	return cs.OpenSettings(ctx, s, opts...)
}

// OpenSettings is Open for callers without a config.Config.
func (cs *Clients) OpenSettings(ctx context.Context, s Settings, opts ...Option) (*FS, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	own := newDeps(opts)
	d := newDeps(append(cs.opts[:len(cs.opts):len(cs.opts)], opts...))
	if own.httpClient != nil || own.dialSet {
		return openAlone(ctx, s, d)
	}
	key := keyOf(s)
	for {
		sh, first := cs.join(key)
		if first {
			sh.client, sh.err = newClient(ctx, s, d)
			close(sh.ready)
		}
		select {
		case <-sh.ready:
		case <-ctx.Done():
			cs.quit(key, sh)
			return nil, context.Cause(ctx)
		}
		if sh.err == nil {
			return newFS(sh.client, s, d, func() { cs.quit(key, sh) }), nil
		}
		cs.quit(key, sh)
		if first || ctx.Err() != nil {
			return nil, sh.err
		}
		// The one who came first failed, perhaps only because its context ended.
	}
}

// join counts a user in; first says that the caller has to make the client.
func (cs *Clients) join(key clientKey) (sh *shared, first bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	sh = cs.live[key]
	if sh == nil {
		sh, first = &shared{ready: make(chan struct{})}, true
		cs.live[key] = sh
	}
	sh.users++
	return sh, first
}

// quit counts a user out; the last one ends the client.
func (cs *Clients) quit(key clientKey, sh *shared) {
	cs.mu.Lock()
	sh.users--
	last := sh.users == 0
	failed := false
	select {
	case <-sh.ready:
		failed = sh.err != nil
	default:
	}
	if (last || failed) && cs.live[key] == sh {
		delete(cs.live, key) // whoever comes next starts afresh
	}
	cs.mu.Unlock()
	if last && sh.client != nil {
		sh.client.close()
	}
}

// keyOf digests everything that makes two clients differ. The close timeout is
// left out: it belongs to the file system.
func keyOf(s Settings) clientKey {
	h := sha256.New()
	field := func(v any) {
		text := fmt.Sprint(v)
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(text)))
		h.Write(n[:]) // the length keeps neighbouring fields apart
		h.Write([]byte(text))
	}
	for _, secret := range []config.Secret{s.AccessKey, s.SecretKey, s.SessionToken} {
		field(secret.Reveal())
	}
	s.AccessKey, s.SecretKey, s.SessionToken = "", "", ""
	s.CloseTimeout = 0
	s.Retry = s.retryOptions()
	field(fmt.Sprintf("%+v", s))
	return clientKey(h.Sum(nil))
}
