package s3fs

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
)

// wireBuffer is the size of the buffers net/http puts before each connection.
// Its own default of 4 KiB means 1,500 system calls for one part of 6 MB.
const wireBuffer = 64 << 10

// configureTransport sets up base, which comes from the SDK's buildable client
// and so already trusts what AWS_CA_BUNDLE names.
func configureTransport(base *http.Transport, s Settings, dial dialFunc) *http.Transport {
	base.DialContext = progressDial(dial, s.ConnectTimeout, s.SocketTimeout)
	base.TLSHandshakeTimeout = s.ConnectTimeout
	// Every connection may stay idle: a smaller idle limit makes a busy client
	// close and open connections all the time.
	base.MaxConnsPerHost = s.MaxConnections
	base.MaxIdleConnsPerHost = s.MaxConnections
	base.MaxIdleConns = 0
	base.IdleConnTimeout = s.MaxIdleTime
	base.ReadBufferSize = wireBuffer
	base.WriteBufferSize = wireBuffer
	// HTTP/2 would put all parts on one connection: one lost packet stops all of
	// them, the pool size has no effect, and a refused upload cannot be told
	// from a slow one. S3 speaks HTTP/1.1.
	base.ForceAttemptHTTP2 = false
	base.Protocols = new(http.Protocols)
	base.Protocols.SetHTTP1(true)
	base.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	return base
}

// newHTTPClient wraps a transport for the SDK. Redirects are never followed: a
// signed request is only good for the host it was signed for, and the answer
// names the region to put into s3.region.
func newHTTPClient(t http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     progressTransport{t},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// progressTransport tells each progressConn when an exchange begins and ends.
type progressTransport struct{ next http.RoundTripper }

// CloseIdleConnections is what http.Client.CloseIdleConnections looks for; a
// wrapper without it would keep every connection for ever.
func (t progressTransport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper.
func (t progressTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	x := &exchange{}
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), x.trace()))
	if r.Body != nil {
		// Hides the WriterTo of the SDK's body. The SDK closes a body as soon as it
		// has the answer, and a WriteTo that net/http begins after that fails and
		// takes a healthy connection with it, which the caller sees as a lost answer.
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		x.finish()
		return nil, err
	}
	resp.Body = &exchangeBody{ReadCloser: resp.Body, exchange: x}
	return resp, nil
}

// exchange is one request and its answer on one connection. net/http may try a
// second connection for it when the first one turned out to be dead.
type exchange struct {
	mu     sync.Mutex
	conn   *progressConn
	number uint64
}

func (x *exchange) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { x.start(progressOf(i.Conn)) }}
}

func (x *exchange) start(c *progressConn) {
	x.finish()
	if c == nil {
		return // a connection of a caller's own HTTP client
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.conn, x.number = c, c.begin()
}

func (x *exchange) finish() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.conn != nil {
		x.conn.end(x.number)
		x.conn = nil
	}
}

// exchangeBody ends the exchange when the body has been read or given up.
type exchangeBody struct {
	io.ReadCloser
	exchange *exchange
}

// Read implements io.Reader.
func (b *exchangeBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.exchange.finish()
	}
	return n, err
}

// Close implements io.Closer.
func (b *exchangeBody) Close() error {
	err := b.ReadCloser.Close()
	b.exchange.finish()
	return err
}
