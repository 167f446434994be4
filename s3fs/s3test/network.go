package s3test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// memoryHost is the server's name on the in-memory network. "bucket.s3.test" addresses a bucket as virtual hosting does.
const memoryHost = "s3.test"

// URL is the endpoint to give to an S3 client: http://s3.test, or the loopback address once [Server.ListenTCP] has been
// called. Clients on the in-memory network may use either.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url
}

// Client returns a new HTTP client on the in-memory network; see [Server.Transport].
func (s *Server) Client() *http.Client { return &http.Client{Transport: s.Transport()} }

// Transport returns a new transport that reaches this server, whatever the address, over the in-memory network. It keeps
// connections alive as a real one does. [Server.Close] closes its idle connections.
//
// The network has no latency, so an answer may overtake the end of net/http's write loop; with AWS's SDK the connection is
// then not used again. Requests and answers are not affected. A test that counts connections makes every answer take time:
//
//	srv.Control(s3test.Match{}, s3test.Always(s3test.Delay(time.Microsecond)))
func (s *Server) Transport() *http.Transport {
	t := &http.Transport{
		DialContext:           s.DialContext,
		MaxIdleConns:          1024,
		MaxIdleConnsPerHost:   1024,
		ExpectContinueTimeout: time.Second,
		// An in-memory connection hands each write to one read; larger buffers mean fewer hand-overs.
		WriteBufferSize: 64 << 10,
		ReadBufferSize:  64 << 10,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.transports = append(s.transports, t)
	return t
}

// DialContext connects to the server over the in-memory network; network and address are ignored. Put it into the
// transport of a client that insists on building its own.
func (s *Server) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	s.mu.Lock()
	if !s.closed && !s.piping {
		s.piping = true
		s.serving.Go(func() { s.serve(s.pipes) })
	}
	s.mu.Unlock()
	return s.pipes.dial(ctx)
}

// ListenTCP opens a socket on a free port of the loopback interface and returns the endpoint for S3 clients, which is also
// [Server.URL] from now on. The in-memory network goes on working. It does not work in a testing/synctest bubble: a
// goroutine that waits for a real socket keeps virtual time from advancing.
func (s *Server) ListenTCP() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen on the loopback interface: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", errors.Join(fmt.Errorf("listen on the loopback interface: %w", http.ErrServerClosed), l.Close())
	}
	s.serving.Go(func() { s.serve(l) })
	s.url = "http://" + l.Addr().String()
	return s.url, nil
}

// Close breaks every connection and returns when every goroutine of the server has ended, control functions included. It
// is idempotent. Goroutines of HTTP clients end soon after, as their connections are gone.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	transports := s.transports
	s.mu.Unlock()

	s.cancel()
	s.pipes.Close()
	// The only error is that of a listener that is closed already, which is what we want of it.
	_ = s.http.Close()
	s.serving.Wait()
	s.working.Wait()
	for _, t := range transports {
		t.CloseIdleConnections()
	}
}

func (s *Server) serve(l net.Listener) {
	// Serve ends with ErrServerClosed, or because the listener is gone: both mean Close.
	_ = s.http.Serve(l)
}

// connState counts connections, so that Close can wait for the goroutines that serve them.
func (s *Server) connState(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.working.Add(1) // Close waits for Serve, which calls this, before it waits for working
		s.mu.Lock()
		closed := s.closed
		s.mu.Unlock()
		if closed {
			_ = conn.Close() // http.Server.Close may have looked at its connections before this one came
		}
	case http.StateClosed, http.StateHijacked:
		s.working.Done()
	default:
	}
}

// hangUp closes the connection of a request without (further) answer. On a socket the client sees a reset.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2 under somebody else's server: its stream is aborted
	}
	if c, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		_ = c.SetLinger(0)
	}
	_ = conn.Close()
}

// pipeListener is the in-memory network.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

var _ net.Listener = (*pipeListener)(nil)

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	var err error
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		err = net.ErrClosed
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return nil, &net.OpError{Op: "dial", Net: "pipe", Addr: pipeAddr{}, Err: err}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, &net.OpError{Op: "accept", Net: "pipe", Addr: pipeAddr{}, Err: net.ErrClosed}
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return memoryHost }
