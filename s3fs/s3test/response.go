package s3test

import (
	"encoding/xml"
	"net/http"
	"runtime"
	"strconv"
)

// response is an answer that has not been sent yet.
type response struct {
	status int
	code   string // S3's error code, for the transcript
	header http.Header
	body   []byte
}

func newResponse(status int) *response { return &response{status: status, header: http.Header{}} }

func (r *response) xml(body []byte) *response {
	r.header.Set("Content-Type", "application/xml")
	r.body = body
	return r
}

// marshal renders v with the XML declaration.
func marshal(v any) []byte {
	b, err := xml.Marshal(v)
	if err != nil {
		panic("s3test: an answer cannot be written as XML: " + err.Error()) // our own types, whose marshalling cannot fail
	}
	return append([]byte(xml.Header), b...)
}

// yields is how often an answer lets other goroutines run before it is sent.
const yields = 4

// writeResponse sends res. A write error means that the client has gone, which is nobody's fault here.
func writeResponse(w http.ResponseWriter, method string, res *response) {
	// Without a network in between, an answer can overtake the last step of the client's own write loop. AWS's SDK then
	// closes the request body under it, and net/http throws the connection away. Real networks are slower than that.
	for range yields {
		runtime.Gosched()
	}
	h := w.Header()
	for k, v := range res.header {
		h[k] = v
	}
	if method == http.MethodHead {
		w.WriteHeader(res.status) // the length, if there is one to tell, is in the header already
		return
	}
	if res.status != http.StatusNotModified && res.status != http.StatusNoContent {
		h.Set("Content-Length", strconv.Itoa(len(res.body)))
	}
	w.WriteHeader(res.status)
	if len(res.body) > 0 {
		_, _ = w.Write(res.body)
	}
}

// writeCut promises the whole body, sends n bytes of it and closes the connection.
func writeCut(w http.ResponseWriter, res *response, n int64) {
	h := w.Header()
	for k, v := range res.header {
		h[k] = v
	}
	h.Set("Content-Length", strconv.Itoa(len(res.body)))
	w.WriteHeader(res.status)
	_, _ = w.Write(res.body[:n])
	rc := http.NewResponseController(w)
	if err := rc.Flush(); err != nil {
		panic(http.ErrAbortHandler)
	}
	conn, _, err := rc.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = conn.Close() // an orderly close: what was sent arrives
}
