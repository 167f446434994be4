package sim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

// network is a life's way to the store. There are no sockets: the scheduler hands a request to the store's handler when its
// turn has come, and what the store answers, or nothing, to the client.
type network struct {
	w    *world
	life *life
}

// storeCall is a request on its way.
type storeCall struct {
	req    *http.Request
	body   []byte
	done   chan struct{} // closed: answer and err are there
	answer *http.Response
	err    error

	left  bool // the client has given up; under the world's mutex
	drawn bool // its fault has been drawn
	fault fault
}

// RoundTrip implements http.RoundTripper.
func (n *network) RoundTrip(req *http.Request) (*http.Response, error) {
	c, err := newStoreCall(req)
	if err != nil {
		return nil, err
	}
	what := operation(req)
	text := what + " " + strings.TrimPrefix(strings.TrimPrefix(req.URL.Path, "/"+bucket+"/"+path.Key+"/"), "/"+stateBucket+"/"+chkDir+"/")
	if part := req.URL.Query().Get("partNumber"); part != "" {
		text += " part " + part
	}
	e := &event{life: n.life, kind: call, what: what, text: text, call: c}
	if err := n.w.submit(e); err != nil {
		return nil, err
	}
	select {
	case <-c.done:
		return c.answer, c.err
	case <-n.life.dead.Done():
		return nil, errKilled
	case <-req.Context().Done():
		n.w.mu.Lock()
		c.left = true // what was sent may arrive all the same
		n.w.mu.Unlock()
		return nil, req.Context().Err()
	}
}

func newStoreCall(req *http.Request) (*storeCall, error) {
	c := &storeCall{req: req, done: make(chan struct{})}
	if req.Body == nil {
		return c, nil
	}
	var err error
	c.body, err = io.ReadAll(req.Body)
	return c, errors.Join(err, req.Body.Close())
}

// operation names what a request asks for. A PutObject is of a record or of a file.
func operation(r *http.Request) string {
	q, key := r.URL.Query(), strings.TrimPrefix(r.URL.Path, "/"+bucket+"/")
	switch {
	case q.Has("uploads"):
		return "CreateMultipartUpload"
	case q.Has("list-type"):
		return "ListObjectsV2"
	case q.Has("partNumber"):
		return "UploadPart"
	case q.Has("uploadId"):
		return map[string]string{
			http.MethodPost: "CompleteMultipartUpload", http.MethodGet: "ListParts", http.MethodDelete: "AbortMultipartUpload",
		}[r.Method]
	case r.Method == http.MethodHead:
		return "HeadObject"
	case r.Method == http.MethodGet:
		return "GetObject"
	case r.Method == http.MethodPut && strings.HasPrefix(key, sink.RecordPrefix(path.Key, "")):
		return "PutObject record"
	case r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/"+stateBucket+"/"):
		return "PutObject checkpoint"
	case r.Method == http.MethodPut:
		return "PutObject file"
	case r.Method == http.MethodDelete:
		return "DeleteObject"
	}
	return r.Method
}

// serve lets a store call take effect, or go wrong. Called by the scheduler.
func (w *world) serve(e *event) {
	c := e.call
	w.mu.Lock()
	left := c.left
	w.mu.Unlock()
	if left {
		if w.chance.IntN(2) == 0 {
			w.stats.add("arrived after its client had given up: " + e.what)
			w.serveLate(e)
		}
		return
	}
	if !c.drawn {
		c.drawn, c.fault = true, w.drawFault(e)
		if d := c.fault.before; d > 0 { // it takes a while to arrive
			w.note(e, c.fault.name)
			e.from = time.Now().Add(d)
			w.mu.Lock()
			w.waiting = append(w.waiting, e)
			w.mu.Unlock()
			time.AfterFunc(d, w.poke)
			return
		}
	}
	c.answer, c.err = w.handle(e, c.fault.reply)
	if c.fault.after > 0 {
		time.AfterFunc(c.fault.after, func() { close(c.done) })
		return
	}
	close(c.done)
}

// serveLate lets a call take effect whose answer nobody hears.
func (w *world) serveLate(e *event) {
	before := e.text
	e.text += " (late)"
	_, _ = w.handle(e, nil) // nobody hears
	e.text = before
}

// handle hands a request to the store and looks at what it has done.
func (w *world) handle(e *event, reply *s3test.Reply) (*http.Response, error) {
	w.steal(e)
	check := w.beforeCall(e)
	w.reply = reply
	answer, err := exchange(w.store, e.call)
	w.reply = nil
	result := "lost"
	if err == nil {
		result = strconv.Itoa(answer.StatusCode)
	}
	if name := e.call.fault.name; name != "" {
		result += " (" + name + ")"
	}
	w.note(e, result)
	check()
	return answer, err
}

// exchange calls a handler as if a network were between it and the client.
func exchange(h http.Handler, c *storeCall) (*http.Response, error) {
	r := c.req.Clone(context.Background())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(c.body)), int64(len(c.body))
	if r.Host == "" {
		r.Host = r.URL.Host
	}
	rec := &recorder{header: http.Header{}}
	h.ServeHTTP(rec, r)
	if rec.status == 0 {
		return nil, syscall.ECONNRESET
	}
	answer := &http.Response{
		Status: http.StatusText(rec.status), StatusCode: rec.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: rec.header, Request: c.req, ContentLength: -1,
	}
	if n, err := strconv.ParseInt(rec.header.Get("Content-Length"), 10, 64); err == nil {
		answer.ContentLength = n
	}
	var end error = io.EOF
	if rec.hijacked {
		end = io.ErrUnexpectedEOF
	}
	answer.Body = io.NopCloser(io.MultiReader(bytes.NewReader(rec.body), failing{end}))
	return answer, nil
}

// direct is a network without faults and scheduler, for the verifier.
type direct struct{ store http.Handler }

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(req *http.Request) (*http.Response, error) {
	c, err := newStoreCall(req)
	if err != nil {
		return nil, err
	}
	return exchange(d.store, c)
}
