package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sluice-go/sluice/e2e/testbed/internal/loopback"
)

// Region is the region that the server reports and expects in signatures.
const Region = "us-east-1"

const (
	startTimeout   = 30 * time.Second // a loaded machine needs 0.2 s
	stopTimeout    = 5 * time.Second  // from a polite stop to SIGKILL
	healthInterval = 5 * time.Millisecond
	portAttempts   = 5 // another process may take a free port before the server does
)

// Errors that a caller decides on.
var (
	// ErrRunning is returned by Restart while the server still runs.
	ErrRunning = errors.New("store is running")
	// ErrStart is wrapped by every error of a server that did not come up.
	ErrStart = errors.New("store did not start")
)

// Config says where a Store keeps its files. Only Root is required.
type Config struct {
	// Root is the directory of buckets; it is created when missing.
	Root string
	// AccessLog is the file to which the server appends one line per request
	// (package accesslog reads it). Empty: none.
	AccessLog string
	// Log is the file to which the server's own output is appended. Empty: none.
	Log string
	// Sidecar is the directory for metadata when the file system of Root has no
	// extended attributes. Default: Root with ".meta" appended.
	Sidecar string
	// MaxRequests is the number of requests in flight above which the server
	// answers 503 SlowDown. Default: 1000.
	MaxRequests int
	// Command starts the server's process. Default: this executable with
	// Subcommand as its only argument.
	Command []string
}

// Store is one S3 server over one directory. Its address and keys stay the same
// through Kill and Restart. Safe for concurrent use.
type Store struct {
	cfg    Config
	secret string

	mu   sync.Mutex
	addr string
	proc *process // nil when stopped
}

// Start starts a server on a free port of the loopback address and returns when
// it answers. The caller stops it with Stop or Kill; the death of the calling
// process stops it too. Errors satisfy errors.Is(err, ErrStart).
func Start(ctx context.Context, cfg Config) (*Store, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	s := &Store{cfg: cfg, secret: rand.Text()}
	for range portAttempts {
		var addr string
		if addr, err = loopback.FreeAddr(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrStart, err)
		}
		var p *process
		if p, err = s.launch(ctx, addr); err == nil {
			s.addr, s.proc = addr, p
			return s, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

func (c Config) withDefaults() (Config, error) {
	if c.Root == "" {
		return c, errors.New("no root directory")
	}
	if c.Sidecar == "" {
		c.Sidecar = filepath.Clean(c.Root) + ".meta"
	}
	if c.MaxRequests == 0 {
		c.MaxRequests = 1000
	}
	if len(c.Command) == 0 {
		self, err := os.Executable()
		if err != nil {
			return c, err
		}
		c.Command = []string{self, Subcommand}
	}
	// The server changes its working directory: relative paths would move.
	for _, p := range []*string{&c.Root, &c.Sidecar, &c.AccessLog, &c.Log} {
		if *p == "" {
			continue
		}
		abs, err := filepath.Abs(*p)
		if err != nil {
			return c, err
		}
		*p = abs
	}
	return c, os.MkdirAll(c.Root, 0o755)
}

// Endpoint returns the URL of the server, for example "http://127.0.0.1:35211".
func (s *Store) Endpoint() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "http://" + s.addr
}

// AccessKey returns the access key id of the server's only user.
func (s *Store) AccessKey() string { return "sluice" }

// SecretKey returns the secret key of the server's only user. It is drawn at
// Start and stays the same through Restart.
func (s *Store) SecretKey() string { return s.secret }

// Root returns the directory of buckets as an absolute path.
func (s *Store) Root() string { return s.cfg.Root }

// Done returns a channel that is closed when the server's process has ended. Of
// a stopped store the channel is closed already.
func (s *Store) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		ended := make(chan struct{})
		close(ended)
		return ended
	}
	return s.proc.done
}

// Err returns why the server's process ended by itself, with its last words; nil
// while it runs and after Stop or Kill.
func (s *Store) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil || !s.proc.ended() {
		return nil
	}
	return s.proc.endError()
}

// Stop asks the server to end, waits, and kills it when it has not ended within
// five seconds or when ctx is done. Stopping a stopped store does nothing.
func (s *Store) Stop(ctx context.Context) error {
	p := s.take()
	if p == nil {
		return nil
	}
	if err := p.stop(ctx); err != nil {
		return fmt.Errorf("stop store: %w", err)
	}
	return nil
}

// Kill ends the server at once with SIGKILL, as a crash would, and waits until
// the process is gone. Killing a stopped store does nothing.
func (s *Store) Kill() error {
	p := s.take()
	if p == nil {
		return nil
	}
	if err := p.kill(); err != nil {
		return fmt.Errorf("kill store: %w", err)
	}
	return nil
}

// Restart starts a stopped or killed server again: same directory, same address,
// same keys. Clients only see connections fail in between. Errors satisfy
// errors.Is(err, ErrRunning) or errors.Is(err, ErrStart).
func (s *Store) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		if !s.proc.ended() {
			return ErrRunning
		}
		s.proc.release()
		s.proc = nil
	}
	p, err := s.launch(ctx, s.addr)
	if err != nil {
		return err
	}
	s.proc = p
	return nil
}

func (s *Store) take() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.proc
	s.proc = nil
	return p
}

// launch starts one process and waits until it answers. The path of the health
// check is a secret of this one process: an answer from some other server that
// happens to own the port cannot pass for it.
func (s *Store) launch(ctx context.Context, addr string) (*process, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("no answer within %s", startTimeout))
	defer cancel()
	health := "/health-" + strings.ToLower(rand.Text())
	p, err := spawn(s.cfg, serverSpec{
		Root: s.cfg.Root, Sidecar: s.cfg.Sidecar, Addr: addr,
		AccessKey: s.AccessKey(), SecretKey: s.secret, Region: Region,
		AccessLog: s.cfg.AccessLog, HealthPath: health, MaxRequests: s.cfg.MaxRequests,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	if err := p.waitHealthy(ctx, "http://"+addr+health); err != nil {
		_ = p.kill() // the reason below is the one to report
		return nil, fmt.Errorf("%w on %s: %w", ErrStart, addr, err)
	}
	return p, nil
}
