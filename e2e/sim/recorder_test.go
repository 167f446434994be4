package sim

import (
	"bufio"
	"net"
	"net/http"
	"time"
)

// recorder is the store's side of an exchange. A hijacked connection that is closed before the head was written is a reset.
type recorder struct {
	header   http.Header
	status   int
	body     []byte
	hijacked bool
}

var (
	_ http.ResponseWriter = (*recorder)(nil)
	_ http.Hijacker       = (*recorder)(nil)
	_ http.Flusher        = (*recorder)(nil)
)

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
		r.header = r.header.Clone()
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	r.body = append(r.body, p...)
	return len(p), nil
}

func (r *recorder) Flush() {}

func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	r.hijacked = true
	return noConn{}, nil, nil
}

// noConn is a connection that can only be closed.
type noConn struct{}

func (noConn) Read([]byte) (int, error)         { return 0, net.ErrClosed }
func (noConn) Write([]byte) (int, error)        { return 0, net.ErrClosed }
func (noConn) Close() error                     { return nil }
func (noConn) LocalAddr() net.Addr              { return nil }
func (noConn) RemoteAddr() net.Addr             { return nil }
func (noConn) SetDeadline(time.Time) error      { return nil }
func (noConn) SetReadDeadline(time.Time) error  { return nil }
func (noConn) SetWriteDeadline(time.Time) error { return nil }
