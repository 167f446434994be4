package s3test

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of S3 on keys and metadata, in bytes.
const (
	maxKeyLength    = 1024
	maxMetadataSize = 2048
)

// bucket holds objects by key. The server's mutex guards it; the objects themselves never change.
type bucket struct {
	created time.Time
	objects map[string]*object
	sorted  []string // keys in order, nil when out of date
}

func newBucket() *bucket { return &bucket{created: time.Now(), objects: map[string]*object{}} }

func (b *bucket) put(key string, o *object) {
	if b.objects[key] == nil {
		b.sorted = nil
	}
	b.objects[key] = o
}

func (b *bucket) remove(key string) {
	if b.objects[key] != nil {
		b.sorted = nil
	}
	delete(b.objects, key)
}

func (b *bucket) keys() []string {
	if b.sorted == nil {
		b.sorted = slices.Sorted(maps.Keys(b.objects))
	}
	return b.sorted
}

// object is immutable once stored.
type object struct {
	data     []byte
	etag     string // without quotes
	header   http.Header
	meta     map[string]string
	sum      checksum
	modified time.Time
	parts    []int64 // sizes of the parts of a multipart object
}

// kept are the request headers that come back with the object.
var kept = []string{"Content-Type", "Content-Encoding", "Content-Disposition", "Content-Language", "Cache-Control", "Expires"}

func keptHeaders(h http.Header) http.Header {
	out := http.Header{"Content-Type": {"binary/octet-stream"}}
	for _, name := range kept {
		if v := h.Get(name); v != "" {
			out.Set(name, v)
		}
	}
	// aws-chunked describes the transfer, not the object.
	var encodings []string
	for e := range strings.SplitSeq(out.Get("Content-Encoding"), ",") {
		if e = strings.TrimSpace(e); e != "" && e != "aws-chunked" {
			encodings = append(encodings, e)
		}
	}
	if out.Del("Content-Encoding"); len(encodings) > 0 {
		out.Set("Content-Encoding", strings.Join(encodings, ","))
	}
	return out
}

func metadata(h http.Header) map[string]string {
	meta := map[string]string{}
	for name, values := range h {
		if key, ok := strings.CutPrefix(strings.ToLower(name), "x-amz-meta-"); ok {
			meta[key] = strings.Join(values, ",")
		}
	}
	return meta
}

// checkNew refuses keys and metadata that S3 does not take.
func checkNew(c *call) *apiError {
	if len(c.req.Key) > maxKeyLength {
		return fault("KeyTooLongError", "Your key is too long", "Size", strconv.Itoa(len(c.req.Key)), "MaxSizeAllowed", strconv.Itoa(maxKeyLength))
	}
	size := 0
	for k, v := range metadata(c.req.Header) {
		size += len(k) + len(v)
	}
	if size > maxMetadataSize {
		return fault("MetadataTooLarge", "Your metadata headers exceed the maximum allowed metadata size", "Size", strconv.Itoa(size), "MaxSizeAllowed", strconv.Itoa(maxMetadataSize))
	}
	return nil
}

func etagOf(data []byte) string {
	sum := md5.Sum(data)
	return hex.EncodeToString(sum[:])
}

func quoted(etag string) string { return `"` + etag + `"` }

// etagListed reports whether a condition header names the ETag.
func etagListed(header, etag string) bool {
	for v := range strings.SplitSeq(header, ",") {
		v = strings.TrimPrefix(strings.TrimSpace(v), "W/")
		if v == "*" || strings.Trim(v, `"`) == etag {
			return true
		}
	}
	return false
}

// writeAllowed checks the conditions of a write. The mutex is held, so the answer holds for the write that follows.
func (b *bucket) writeAllowed(c *call) *apiError {
	o := b.objects[c.req.Key]
	switch v := c.req.Header.Get("If-None-Match"); {
	case v == "":
	case v != "*":
		return fault("NotImplemented", "A header you provided implies functionality that is not implemented", "Header", "If-None-Match")
	case o != nil:
		return preconditionFailed("If-None-Match")
	}
	v := c.req.Header.Get("If-Match")
	switch {
	case v == "":
		return nil
	case o == nil:
		return noSuchKey(c.req.Key)
	case !etagListed(v, o.etag):
		return preconditionFailed("If-Match")
	}
	return nil
}

// findBucket looks up the bucket of a request. The mutex is held.
func (s *Server) findBucket(c *call) (*bucket, *apiError) {
	b := s.buckets[c.req.Bucket]
	if b == nil {
		return nil, noSuchBucket(c.req.Bucket)
	}
	return b, nil
}

func (s *Server) putObject(c *call) (*response, *apiError) {
	if err := checkNew(c); err != nil {
		return nil, err
	}
	sum, _, err := s.verifySum(c)
	if err != nil {
		return nil, err
	}
	o := newObject(c.body, c.req.Header, sum)
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.findBucket(c)
	if err != nil {
		return nil, err
	}
	if err := b.writeAllowed(c); err != nil {
		return nil, err
	}
	b.put(c.req.Key, o)
	res := newResponse(http.StatusOK)
	res.header.Set("ETag", quoted(o.etag))
	o.sum.set(res.header)
	return res, nil
}

func newObject(data []byte, h http.Header, sum checksum) *object {
	return &object{
		data: data, etag: etagOf(data), header: keptHeaders(h), meta: metadata(h), sum: sum,
		modified: time.Now().UTC().Truncate(time.Second), // S3's resolution
	}
}

// getObject serves GetObject and HeadObject.
func (s *Server) getObject(c *call) (*response, *apiError) {
	s.mu.Lock()
	b, err := s.findBucket(c)
	var o *object
	if err == nil {
		o = b.objects[c.req.Key]
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if o == nil {
		return nil, noSuchKey(c.req.Key)
	}
	if err := readAllowed(c, o); err != nil {
		return nil, err
	}
	from, to, partial, err := extent(c, o)
	if err != nil {
		return nil, err
	}
	res := newResponse(http.StatusOK)
	for k, v := range o.header {
		res.header[k] = v
	}
	for k, v := range o.meta {
		res.header.Set("x-amz-meta-"+k, v)
	}
	res.header.Set("ETag", quoted(o.etag))
	res.header.Set("Last-Modified", o.modified.Format(http.TimeFormat))
	res.header.Set("Accept-Ranges", "bytes")
	res.header.Set("Content-Length", strconv.FormatInt(to-from, 10))
	if partial {
		res.status = http.StatusPartialContent
		res.header.Set("Content-Range", "bytes "+strconv.FormatInt(from, 10)+"-"+strconv.FormatInt(to-1, 10)+"/"+strconv.Itoa(len(o.data)))
	} else if c.req.Header.Get("x-amz-checksum-mode") == "ENABLED" {
		o.sum.set(res.header) // it is the whole object's, so a part of it goes without
	}
	if c.req.Query.Has("partNumber") && len(o.parts) > 0 {
		res.header.Set("x-amz-mp-parts-count", strconv.Itoa(len(o.parts)))
	}
	res.body = o.data[from:to]
	return res, nil
}

// readAllowed checks the conditions of a read, in HTTP's order of precedence.
func readAllowed(c *call, o *object) *apiError {
	h := c.req.Header
	if v := h.Get("If-Match"); v != "" {
		if !etagListed(v, o.etag) {
			return preconditionFailed("If-Match")
		}
	} else if t, err := http.ParseTime(h.Get("If-Unmodified-Since")); err == nil && o.modified.After(t) {
		return preconditionFailed("If-Unmodified-Since")
	}
	if v := h.Get("If-None-Match"); v != "" {
		if etagListed(v, o.etag) {
			return fault("NotModified", "Not Modified")
		}
	} else if t, err := http.ParseTime(h.Get("If-Modified-Since")); err == nil && !o.modified.After(t) {
		return fault("NotModified", "Not Modified")
	}
	return nil
}

// extent finds the bytes [from, to) that a read asks for, by range or by part number.
func extent(c *call, o *object) (from, to int64, partial bool, err *apiError) {
	size := int64(len(o.data))
	if c.req.Query.Has("partNumber") {
		sizes := o.parts
		if len(sizes) == 0 {
			sizes = []int64{size}
		}
		n := int(c.req.Part)
		if n < 1 || n > len(sizes) {
			return 0, 0, false, fault("InvalidPartNumber", "The requested partnumber is not satisfiable", "PartNumberRequested", c.req.Query.Get("partNumber"))
		}
		for _, k := range sizes[:n-1] {
			from += k
		}
		return from, from + sizes[n-1], size > 0, nil
	}
	spec := c.req.Header.Get("Range")
	from, to, ok, satisfiable := parseRange(spec, size)
	switch {
	case !ok:
		return 0, size, false, nil
	case !satisfiable:
		return 0, 0, false, fault("InvalidRange", "The requested range is not satisfiable",
			"RangeRequested", spec, "ActualObjectSize", strconv.FormatInt(size, 10))
	}
	return from, to, true, nil
}

// parseRange reads a Range header of one range. ok is false when there is none or it means nothing, which HTTP and S3
// treat alike: the whole object is sent. So are several ranges in one header.
func parseRange(spec string, size int64) (from, to int64, ok, satisfiable bool) {
	set, found := strings.CutPrefix(spec, "bytes=")
	first, last, dash := strings.Cut(set, "-")
	if !found || !dash {
		return 0, 0, false, false
	}
	if first == "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < 0 {
			return 0, 0, false, false
		}
		return max(size-n, 0), size, true, n > 0 && size > 0
	}
	from, err := strconv.ParseInt(first, 10, 64)
	if err != nil || from < 0 {
		return 0, 0, false, false
	}
	to = size
	if last != "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < from {
			return 0, 0, false, false
		}
		if n < size {
			to = n + 1
		}
	}
	return from, to, true, from < size
}

func (s *Server) deleteObject(c *call) (*response, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.findBucket(c)
	if err != nil {
		return nil, err
	}
	if c.req.Header.Get("If-Match") != "" {
		if err := b.writeAllowed(c); err != nil {
			return nil, err
		}
	}
	b.remove(c.req.Key)
	return newResponse(http.StatusNoContent), nil
}

type deleteRequest struct {
	XMLName xml.Name `xml:"Delete"`
	Quiet   bool
	Objects []struct {
		Key  string
		ETag string
	} `xml:"Object"`
}

type deleteResult struct {
	XMLName xml.Name        `xml:"http://s3.amazonaws.com/doc/2006-03-01/ DeleteResult"`
	Deleted []deleted       `xml:"Deleted"`
	Errors  []deleteRefused `xml:"Error"`
}

type deleted struct{ Key string }

type deleteRefused struct{ Key, Code, Message string }

// countDeletes checks the body of DeleteObjects and remembers its size for the transcript.
func countDeletes(c *call) *apiError {
	var req deleteRequest
	if err := parseXML(c.body, &req); err != nil {
		return err
	}
	if c.keys = len(req.Objects); c.keys == 0 || c.keys > 1000 {
		return malformedXML()
	}
	return nil
}

func (s *Server) deleteObjects(c *call) (*response, *apiError) {
	_, given, err := s.verifySum(c)
	if err != nil {
		return nil, err
	}
	if !given && c.req.Header.Get("Content-MD5") == "" && !s.o.Quirks.IgnoreChecksums {
		return nil, fault("InvalidRequest", "Missing required header for this request: Content-MD5")
	}
	var req deleteRequest
	if err := parseXML(c.body, &req); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.findBucket(c)
	if err != nil {
		return nil, err
	}
	var out deleteResult
	for _, o := range req.Objects {
		if have := b.objects[o.Key]; o.ETag != "" && have != nil && !etagListed(o.ETag, have.etag) {
			e := preconditionFailed("If-Match")
			out.Errors = append(out.Errors, deleteRefused{o.Key, e.code, e.message})
			continue
		}
		b.remove(o.Key)
		if !req.Quiet {
			out.Deleted = append(out.Deleted, deleted{o.Key})
		}
	}
	return newResponse(http.StatusOK).xml(marshal(out)), nil
}
