package lab

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// realWire is the transport of one client: it asks the rig's store about every attempt.
type realWire struct{ r *rig }

var _ http.RoundTripper = realWire{}

func (w realWire) RoundTrip(req *http.Request) (*http.Response, error) {
	r := w.r
	ctx := req.Context()
	c := ctx.Value(realCallKey{}).(*realCall)
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	r.mu.Lock()
	c.number++
	r.res.Attempts++
	a := r.store.Arrive(r.now(), Attempt{Client: c.client.id, Key: c.key, Bytes: c.bytes, Number: c.number})
	r.mu.Unlock()
	if t := r.w.AttemptTimeout; t > 0 && a.After > t {
		a = Answer{Kind: Lost, After: t}
	}
	if err := pass(ctx, a.After); err != nil {
		return nil, err
	}
	r.mu.Lock()
	s := r.second(r.now())
	switch a.Kind {
	case OK:
		s.OK++
		s.PerClient[c.client.id]++
	case Throttle, Closed, Lost:
		s.Throttled++
		r.res.Throttled++
	}
	r.mu.Unlock()
	return answerOf(a, req)
}

// pass lets d go by, or less if ctx ends.
func pass(ctx context.Context, d time.Duration) error {
	if ctx.Done() == nil {
		time.Sleep(d)
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answerOf is what HTTP makes of an answer: a response, a connection that was reset, or the timeout of a transport that waits for headers no
// longer.
func answerOf(a Answer, req *http.Request) (*http.Response, error) {
	switch a.Kind {
	case OK:
		return respond(req, http.StatusOK, "", 0), nil
	case Throttle:
		return respond(req, http.StatusServiceUnavailable, slowDown, a.RetryAfter), nil
	case Closed:
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	case Lost:
		return nil, headerTimeout{}
	default:
		return respond(req, http.StatusInternalServerError, internalError, 0), nil
	}
}

const (
	slowDown      = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`
	internalError = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>InternalError</Code><Message>Please try again.</Message></Error>`
)

func respond(req *http.Request, status int, body string, retryAfter time.Duration) *http.Response {
	resp := &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, ContentLength: int64(len(body)), Request: req,
	}
	if body != "" {
		resp.Body = io.NopCloser(strings.NewReader(body))
	} else {
		resp.Header["Etag"] = []string{`"e"`}
	}
	if retryAfter > 0 {
		resp.Header.Set("Retry-After", strconv.Itoa(int((retryAfter+time.Second-1)/time.Second)))
	}
	return resp
}

// headerTimeout is what net/http says when ResponseHeaderTimeout has passed.
type headerTimeout struct{}

func (headerTimeout) Error() string   { return "net/http: timeout awaiting response headers" }
func (headerTimeout) Timeout() bool   { return true }
func (headerTimeout) Temporary() bool { return true }
