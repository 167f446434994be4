package s3test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	defaultMinPartSize = 5 << 20 // S3: every part but the last
	defaultMaxParts    = 10_000  // S3: part numbers run from 1 to 10,000
	defaultPageSize    = 1_000   // S3: entries in one answer of a listing
	defaultRegion      = "us-east-1"

	maxBodySize = 5 << 30 // S3: one PUT or one part
)

// Options configure a [Server]. The zero value is a server that accepts any credentials and has no buckets.
type Options struct {
	// Buckets exist from the start.
	Buckets []string

	// AccessKey, when set, is the only access key id that is let in; others are answered 403 InvalidAccessKeyId, requests
	// without a signature 403 AccessDenied. Empty accepts everything.
	AccessKey string
	// SecretKey, when set together with AccessKey, has every signature (AWS Signature Version 4, Authorization header)
	// checked: 403 SignatureDoesNotMatch, and 403 RequestTimeTooSkewed when the request is more than 15 minutes off.
	SecretKey string

	// Region is what the server calls itself. Default: us-east-1.
	Region string

	// MinPartSize is the least size in bytes of every part but the last. 0 means S3's 5 MiB; 1 or a negative number
	// lifts the limit.
	MinPartSize int64
	// MaxParts is the greatest part number. 0 means S3's 10,000.
	MaxParts int
	// PageSize is the greatest number of entries in one answer of a listing, whatever the client asks for. Lower it to
	// make a client page. 0 means S3's 1,000.
	PageSize int

	// NoTrace keeps no transcript, for runs of millions of requests. Counts are kept all the same.
	NoTrace bool

	// Quirks are oddities of stores that are not Amazon's.
	Quirks Quirks
}

// Quirks switch on behaviour of stores that differ from Amazon S3. The zero value is Amazon's behaviour.
type Quirks struct {
	// IgnoreChecksums accepts x-amz-checksum-* and x-amz-mp-object-size and does nothing with them: not verified, not
	// stored, not returned. Content-MD5 is still verified. Ceph RGW and Swift are like this.
	IgnoreChecksums bool
	// CompleteRepeat404 answers the repetition of a CompleteMultipartUpload that succeeded with 404 NoSuchUpload.
	// Amazon answers 200 again.
	CompleteRepeat404 bool
}

func (o Options) withDefaults() Options {
	if o.MinPartSize == 0 {
		o.MinPartSize = defaultMinPartSize
	}
	if o.MaxParts <= 0 {
		o.MaxParts = defaultMaxParts
	}
	if o.PageSize <= 0 {
		o.PageSize = defaultPageSize
	}
	if o.Region == "" {
		o.Region = defaultRegion
	}
	return o
}

// Server is an in-memory S3. Create it with [New], end it with [Server.Close]. It is safe for concurrent use.
type Server struct {
	o Options

	// ctx ends with Close; it wakes replies that wait and is the parent of every request's context.
	ctx    context.Context
	cancel context.CancelFunc
	http   *http.Server
	pipes  *pipeListener

	serving sync.WaitGroup // goroutines in http.Server.Serve
	working sync.WaitGroup // connections and requests

	// mu guards everything below. It is held for look-ups and changes of the maps only: never while bytes move over a
	// connection, while a digest is computed, or while a control function runs.
	mu         sync.Mutex
	closed     bool
	piping     bool // the in-memory listener is being served
	url        string
	transports []*http.Transport

	buckets   map[string]*bucket
	uploads   map[string]*upload
	completed map[string]completion
	ids       map[string]int // every upload id ever made -> its number

	controls []*control
	requests int
	lines    []*line
	counts   Counts
}

var _ http.Handler = (*Server)(nil)

// New returns a running server. It starts no goroutine before the first connection. In a testing/synctest bubble, call it
// inside the bubble.
func New(o Options) *Server {
	s := &Server{
		o:         o.withDefaults(),
		pipes:     newPipeListener(),
		buckets:   map[string]*bucket{},
		uploads:   map[string]*upload{},
		completed: map[string]completion{},
		ids:       map[string]int{},
		counts:    Counts{},
		url:       "http://" + memoryHost,
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler:     s,
		ConnState:   s.connState,
		BaseContext: func(net.Listener) context.Context { return s.ctx },
		// ErrorLog stays nil: the one thing net/http reports here is a panic in a control function, which has to be seen.
	}
	for _, name := range o.Buckets {
		s.buckets[name] = newBucket()
	}
	return s
}

// ServeHTTP answers one S3 request. It makes the server usable with any HTTP server; connections that [Server.DialContext]
// and [Server.ListenTCP] bring come here as well.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		hangUp(w)
		return
	}
	defer s.working.Done()
	c := s.newCall(r)
	asked := s.arrive(c)
	s.answer(w, c, decide(asked, c))
}

// call is one request on its way through the server. One goroutine owns it.
type call struct {
	req  Request
	http *http.Request
	id   string
	line *line

	body    []byte      // the payload, aws-chunked encoding removed
	trailer http.Header // checksums that followed an aws-chunked payload
	parts   []completedPart
	keys    int // keys named by DeleteObjects
}

// answer takes the request through the steps its reply allows: read the body, wait, have the effect, wait, answer.
func (s *Server) answer(w http.ResponseWriter, c *call, rep *Reply) {
	if rep.act == actReset && !rep.effect {
		// The body stays unread: that is what the client would see if the store had gone away.
		s.sleep(c, rep.delay)
		s.finish(c, nil, rep, outcomeReset)
		hangUp(w)
		return
	}
	var broken *apiError
	if !rep.early {
		raw, err := readAll(c.http)
		if err != nil {
			s.finish(c, nil, rep, outcomeGone)
			hangUp(w)
			return
		}
		broken = s.unpack(c, raw)
		s.describeAgain(c)
	}
	if !s.sleep(c, rep.delay) {
		s.finish(c, nil, rep, outcomeGone)
		hangUp(w)
		return
	}
	res := s.result(c, rep, broken)
	// The effect has happened: a client that leaves now does not undo it, so the line tells the result either way.
	s.sleep(c, rep.answerDelay)
	s.finish(c, res, rep, outcomeAnswered)
	switch {
	case rep.act == actReset:
		hangUp(w)
	case rep.act == actCut && c.http.Method != http.MethodHead && rep.cut < int64(len(res.body)):
		writeCut(w, res, rep.cut)
	default:
		if rep.early {
			res.header.Set("Connection", "close") // the unread body makes the connection useless
		}
		writeResponse(w, c.http.Method, res)
	}
}

// result performs the effect the reply allows and returns what the client is to be told.
func (s *Server) result(c *call, rep *Reply, broken *apiError) *response {
	var res *response
	if rep.act == actLie {
		res = s.lie(c)
	} else if rep.effect {
		res = s.handle(c, broken)
	}
	if rep.act == actAnswer {
		res = rep.response(c)
	}
	for k, v := range rep.header {
		res.header[k] = v
	}
	res.header.Set("x-amz-request-id", c.id)
	res.header.Set("Server", "AmazonS3")
	return res
}

// handle is the server without scripted faults.
func (s *Server) handle(c *call, broken *apiError) *response {
	err := s.authorize(c)
	if err == nil {
		err = broken
	}
	var res *response
	if err == nil {
		res, err = s.dispatch(c)
	}
	if err != nil {
		return err.response(c)
	}
	return res
}

func (s *Server) dispatch(c *call) (*response, *apiError) {
	switch c.req.Op {
	case ListBuckets:
		return s.listBuckets()
	case CreateBucket:
		return s.createBucket(c)
	case HeadBucket:
		return s.headBucket(c)
	case DeleteBucket:
		return s.deleteBucket(c)
	case ListObjectsV2:
		return s.listObjects(c)
	case ListMultipartUploads:
		return s.listUploads(c)
	case DeleteObjects:
		return s.deleteObjects(c)
	case GetObject, HeadObject:
		return s.getObject(c)
	case PutObject:
		return s.putObject(c)
	case DeleteObject:
		return s.deleteObject(c)
	case CreateMultipartUpload:
		return s.createUpload(c)
	case UploadPart:
		return s.uploadPart(c)
	case CompleteMultipartUpload:
		return s.completeUpload(c)
	case AbortMultipartUpload:
		return s.abortUpload(c)
	case ListParts:
		return s.listParts(c)
	default:
		return nil, fault("NotImplemented", "A header or query you provided implies functionality that is not implemented.")
	}
}

// enter counts a request in, unless the server has been closed.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.working.Add(1)
	return true
}

// sleep waits for d and reports whether the client is still there. It returns early when the client leaves or the server
// is closed. Without a wait only the latter counts: a request that has arrived whole is served.
func (s *Server) sleep(c *call, d time.Duration) bool {
	if d <= 0 {
		return s.ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.http.Context().Done():
	case <-s.ctx.Done():
	}
	return false
}

// newCall reads what the head of the request says.
func (s *Server) newCall(r *http.Request) *call {
	return &call{req: s.parse(r), http: r}
}

// requestID is deterministic, so that error texts can stand in golden files.
func requestID(n int) string { return fmt.Sprintf("%016X", n) }
