package s3fs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// progressStep bounds one write to the socket, so that a stall is noticed at
// most one timeout after the step it happened in.
const progressStep = wireBuffer

// NoProgressError ends an attempt whose connection moved no byte in either
// direction for s3.socket.timeout. It is a timeout in the sense of net.Error
// and satisfies errors.Is(err, os.ErrDeadlineExceeded), so it is retried like
// any other lost connection.
type NoProgressError struct {
	Op  string        // "read" or "write"
	For time.Duration // how long nothing moved
}

var _ net.Error = (*NoProgressError)(nil)

// Error implements error.
func (e *NoProgressError) Error() string {
	return fmt.Sprintf("no progress on the wire for %v (%s)", e.For, e.Op)
}

// Timeout implements net.Error.
func (e *NoProgressError) Timeout() bool { return true }

// Temporary implements net.Error.
func (e *NoProgressError) Temporary() bool { return true }

// Is makes errors.Is(err, os.ErrDeadlineExceeded) true.
func (e *NoProgressError) Is(target error) bool { return target == os.ErrDeadlineExceeded }

// progressConn turns a socket timeout into a progress timeout.
//
// While an exchange is under way (between begin and end) every byte that moves
// in either direction pushes both deadlines out again: a slow upload that
// advances never times out, and neither does the pending read that waits for
// its answer. Between exchanges there is no deadline at all. That matters for
// pooled connections: net/http keeps a read pending on an idle connection, and
// a deadline left over from the last exchange would kill the connection under
// the next one.
type progressConn struct {
	net.Conn
	timeout time.Duration

	mu       sync.Mutex
	exchange uint64 // number of the current exchange
	armed    bool
}

func newProgressConn(c net.Conn, timeout time.Duration) *progressConn {
	return &progressConn{Conn: c, timeout: timeout}
}

// begin arms the deadlines for a new exchange and returns its number.
func (c *progressConn) begin() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exchange++
	c.armed = true
	_ = c.Conn.SetDeadline(time.Now().Add(c.timeout)) // fails only on a closed connection, which the next call reports
	return c.exchange
}

// end takes the deadlines away, unless a newer exchange has begun meanwhile:
// net/http puts a connection back into its pool before the reader of the old
// body has closed it.
func (c *progressConn) end(exchange uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.armed && c.exchange == exchange {
		c.armed = false
		_ = c.Conn.SetDeadline(time.Time{})
	}
}

// advance pushes both deadlines out.
func (c *progressConn) advance() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.armed {
		_ = c.Conn.SetDeadline(time.Now().Add(c.timeout))
	}
}

// Read implements net.Conn. The deadline counts from the start of the read, so
// a reader that pauses between two reads is not punished for its own pause.
func (c *progressConn) Read(p []byte) (int, error) {
	c.advance()
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.advance()
	}
	return n, c.explain("read", err)
}

// Write implements net.Conn. A deadline that ends a step of which some bytes
// have left is no stall: the rest goes on under a new one.
func (c *progressConn) Write(p []byte) (int, error) {
	written := 0
	for {
		step := p[written:min(len(p), written+progressStep)]
		c.advance()
		n, err := c.Conn.Write(step)
		written += n
		if n > 0 && errors.Is(err, os.ErrDeadlineExceeded) && c.isArmed() {
			err = nil
		}
		if err != nil || written == len(p) {
			if n > 0 {
				c.advance()
			}
			return written, c.explain("write", err)
		}
	}
}

func (c *progressConn) isArmed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.armed
}

// explain names our own deadline; every other error passes as it is.
func (c *progressConn) explain(op string, err error) error {
	if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	if !c.isArmed() {
		return err // a deadline somebody else has set, such as crypto/tls on close
	}
	return &NoProgressError{Op: op, For: c.timeout}
}

// progressOf finds the progressConn below c, which net/http wraps in TLS for
// https (twice behind an https proxy), or nil.
func progressOf(c net.Conn) *progressConn {
	for {
		switch t := c.(type) {
		case *progressConn:
			return t
		case *tls.Conn:
			c = t.NetConn()
		default:
			return nil
		}
	}
}

// dialFunc is the signature of net.Dialer.DialContext.
type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// progressDial dials within connect and wraps what it gets.
func progressDial(dial dialFunc, connect, socket time.Duration) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, connect, &connectTimeoutError{addr: addr, timeout: connect})
		defer cancel()
		c, err := dial(ctx, network, addr)
		if err != nil {
			if cause, ok := context.Cause(ctx).(*connectTimeoutError); ok {
				return nil, &net.OpError{Op: "dial", Net: network, Err: cause}
			}
			return nil, err
		}
		return newProgressConn(c, socket), nil
	}
}

// connectTimeoutError says that a connection was not there within
// s3.connection.timeout. Like NoProgressError it is a timeout of the network,
// not of the caller: it does not satisfy context.DeadlineExceeded, which the
// SDK would take for a cancelled call and never retry.
type connectTimeoutError struct {
	addr    string
	timeout time.Duration
}

var _ net.Error = (*connectTimeoutError)(nil)

func (e *connectTimeoutError) Timeout() bool   { return true }
func (e *connectTimeoutError) Temporary() bool { return true }

func (e *connectTimeoutError) Error() string {
	return fmt.Sprintf("no connection to %s within %v", e.addr, e.timeout)
}
