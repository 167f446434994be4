package nginx

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluice-go/sluice/e2e/testbed/internal/loopback"
	"github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"
)

// ErrStart is wrapped by every error of an nginx that did not come up.
var ErrStart = errors.New("nginx did not start")

const (
	startTimeout   = 20 * time.Second
	stopTimeout    = 5 * time.Second // from a polite stop to SIGKILL
	healthInterval = 5 * time.Millisecond
	portAttempts   = 5 // another process may take a free port before nginx does
	// settle is how long the access log has to stand still before it is taken for
	// complete: nginx writes a line after the answer, and some milliseconds later
	// when it waits for the rest of a refused body.
	settle = 100 * time.Millisecond
)

// Server is a running nginx. Not safe for concurrent use.
type Server struct {
	addr string
	log  string // access log
	read int64  // offset up to which Counts has read it
	out  *os.File
	proc *sluicecmd.Process
}

// Start starts nginx on a free port of the loopback address and returns when it
// answers. The caller stops it with Stop; the death of the calling process stops
// it too, where the system can see to that. Errors satisfy
// errors.Is(err, ErrStart); without nginx also errors.Is(err, ErrMissing).
func Start(ctx context.Context, cfg Config) (s *Server, err error) {
	defer func() {
		if err != nil {
			s, err = nil, fmt.Errorf("%w: %w", ErrStart, err)
		}
	}()
	if cfg.Path == "" {
		if cfg.Path, err = Find(); err != nil {
			return nil, err
		}
	}
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(cfg.Dir, "scratch"), 0o755); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("no answer within %s", startTimeout))
	defer cancel()
	for range portAttempts {
		if s, err = launch(ctx, cfg); err == nil || ctx.Err() != nil {
			return s, err
		}
	}
	return nil, err
}

// launch starts one process and waits until it answers. The path of the health
// check is a secret of this one process: an answer from some other server that
// happens to own the port cannot pass for it.
func launch(ctx context.Context, cfg Config) (*Server, error) {
	addr, err := loopback.FreeAddr(ctx)
	if err != nil {
		return nil, err
	}
	health := "/health-" + strings.ToLower(rand.Text())
	text, err := cfg.render(addr, health)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(cfg.Dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	out, err := os.Create(filepath.Join(cfg.Dir, "error.log"))
	if err != nil {
		return nil, err
	}
	proc, err := sluicecmd.Start(cfg.Path, []string{"-p", cfg.Dir, "-e", "stderr", "-c", file}, out, nil)
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	s := &Server{addr: addr, log: filepath.Join(cfg.Dir, accessLog), out: out, proc: proc}
	if err := s.waitHealthy(ctx, "http://"+addr+health); err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

// Endpoint returns the URL of the limited store.
func (s *Server) Endpoint() string { return "http://" + s.addr }

// Done returns a channel that is closed when the process has ended.
func (s *Server) Done() <-chan struct{} { return s.proc.Done() }

// Counts returns what became of the requests since the last call. It waits until
// nginx has written what it knows.
func (s *Server) Counts(ctx context.Context) (Counts, error) {
	size := int64(-1)
	for {
		info, err := os.Stat(s.log)
		if err != nil {
			return Counts{}, err
		}
		if info.Size() == size {
			break
		}
		size = info.Size()
		select {
		case <-time.After(settle):
		case <-ctx.Done():
			return Counts{}, context.Cause(ctx)
		}
	}
	c, end, err := readLog(s.log, s.read)
	s.read = end
	return c, err
}

// Stop ends the process and waits for it.
func (s *Server) Stop() error {
	select {
	case <-s.proc.Done():
		return errors.Join(fmt.Errorf("nginx has ended: %w", s.lastWords()), s.end())
	default:
		return s.end()
	}
}

func (s *Server) end() error {
	s.proc.Stop()
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-s.proc.Done():
	case <-timer.C:
		s.proc.Kill()
		<-s.proc.Done()
	}
	return s.out.Close()
}

func (s *Server) waitHealthy(ctx context.Context, url string) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	for {
		if loopback.Answers(ctx, client, url, http.StatusNoContent) {
			return nil
		}
		select {
		case <-tick.C:
		case <-s.proc.Done():
			return s.lastWords()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// lastWords returns the end of what the ended process has said.
func (s *Server) lastWords() error {
	const most = 1 << 10
	text, err := os.ReadFile(s.out.Name())
	if err != nil {
		return err
	}
	return fmt.Errorf("exit code %d: %s", s.proc.ExitCode(), strings.TrimSpace(string(text[max(0, len(text)-most):])))
}
