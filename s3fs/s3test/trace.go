package s3test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// line is one request in the transcript. The server's mutex guards it.
type line struct {
	op     Op
	detail string
	result string // empty while the request is under way
}

// Trace returns the transcript: one line per request in order of arrival, since the start or the last [Server.ResetTrace].
//
//	CreateMultipartUpload b/k checksum=CRC64NVME/FULL_OBJECT meta=sluice-token -> 200 upload-1
//	UploadPart b/k upload=upload-1 part=1 size=5242880 crc64nvme=... -> 503 SlowDown
//	UploadPart b/k upload=upload-1 part=1 size=5242880 crc64nvme=... -> 200
//
// Times, ETags, metadata values and everything random are left out; uploads are named in the order of their making.
// Faults are told: "reset" (no effect), "200 (answer lost)", "200 (no effect)", "206 (cut at 100)", "client gone" (it left
// before the effect). A request that has not been answered yet ends in "pending". Requests that are sent at the same time
// arrive in any order.
func (s *Server) Trace() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, l := range s.lines {
		fmt.Fprintf(&b, "%s%s -> %s\n", l.op, l.detail, orPending(l.result))
	}
	return b.String()
}

func orPending(result string) string {
	if result == "" {
		return "pending"
	}
	return result
}

// ResetTrace empties the transcript. Upload names and [Server.Counts] go on.
func (s *Server) ResetTrace() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = nil
}

// Counts tells how many requests of each operation ended with each HTTP status. Status 0 stands for requests without an
// answer: the connection was reset or the client left.
type Counts map[Op]map[int]int

// Total is the number of requests of the operations named, or of all when none is named.
func (c Counts) Total(ops ...Op) int {
	n := 0
	for op, statuses := range c {
		if len(ops) > 0 && !slices.Contains(ops, op) {
			continue
		}
		for _, k := range statuses {
			n += k
		}
	}
	return n
}

// Status is the number of requests of any operation that ended with the HTTP status.
func (c Counts) Status(status int) int {
	n := 0
	for _, statuses := range c {
		n += statuses[status]
	}
	return n
}

// Counts returns what has been counted since the start, as a copy. Requests under way are not in it.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Counts{}
	for op, statuses := range s.counts {
		out[op] = maps.Clone(statuses)
	}
	return out
}

type outcome uint8

const (
	outcomeAnswered outcome = iota + 1
	outcomeReset
	outcomeGone
)

// finish writes the result into the transcript. It comes before the answer is sent, so that a client that has its answer
// finds it there.
func (s *Server) finish(c *call, res *response, rep *Reply, how outcome) {
	text, status := "reset", 0
	switch how {
	case outcomeGone:
		text = "client gone"
	case outcomeAnswered:
		text = resultText(c, res, rep)
		if rep.act != actReset {
			status = res.status
		}
	case outcomeReset:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.line.result = text
	if s.counts[c.req.Op] == nil {
		s.counts[c.req.Op] = map[int]int{}
	}
	s.counts[c.req.Op][status]++
}

func resultText(c *call, res *response, rep *Reply) string {
	text := strconv.Itoa(res.status)
	if res.code != "" && c.http.Method != http.MethodHead {
		text += " " + res.code
	}
	if c.req.Op == CreateMultipartUpload && c.req.Upload != "" {
		text += " " + c.req.Upload
	}
	switch {
	case rep.act == actReset:
		text += " (answer lost)"
	case rep.act == actLie && hasEffect(c.req.Op):
		text += " (no effect)"
	case rep.act == actCut && rep.cut < int64(len(res.body)):
		text += fmt.Sprintf(" (cut at %d)", rep.cut)
	case rep.act == actAnswer && rep.effect:
		text += " (after the effect)"
	}
	return text
}

// describeAgain adds to the line what only the body could tell.
func (s *Server) describeAgain(c *call) {
	detail := describe(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	c.line.detail = detail
}

// shown lists, per operation, the query parameters that belong into the transcript.
var shown = map[Op][]string{
	ListObjectsV2:        {"prefix", "delimiter", "start-after", "max-keys", "encoding-type"},
	ListMultipartUploads: {"prefix", "delimiter", "key-marker", "max-uploads", "encoding-type"},
	ListParts:            {"part-number-marker", "max-parts"},
}

// describe renders everything of a line between the operation and the arrow.
func describe(c *call) string {
	var b strings.Builder
	if c.req.Op == Unsupported {
		b.WriteString(" " + c.req.Method)
	}
	if c.req.Bucket != "" {
		b.WriteString(" " + readable(c.req.Bucket))
		if c.req.Key != "" {
			b.WriteString("/" + readable(c.req.Key))
		}
	}
	add := func(name, value string) { fmt.Fprintf(&b, " %s=%s", name, readable(value)) }

	h := c.req.Header
	if c.req.UploadID != "" {
		add("upload", c.req.Upload)
	}
	if v := c.req.Query.Get("partNumber"); v != "" {
		add("part", v)
	}
	for _, name := range shown[c.req.Op] {
		if c.req.Query.Get(name) != "" {
			add(name, c.req.Query.Get(name))
		}
	}
	if c.req.Query.Get("continuation-token") != "" || c.req.Query.Get("upload-id-marker") != "" {
		b.WriteString(" continued")
	}
	switch c.req.Op {
	case PutObject, UploadPart:
		add("size", strconv.FormatInt(c.req.Size, 10))
	case CompleteMultipartUpload:
		add("parts", strconv.Itoa(len(c.parts)))
		if v := h.Get("x-amz-mp-object-size"); v != "" {
			add("size", v)
		}
	case DeleteObjects:
		add("keys", strconv.Itoa(c.keys))
	case CreateMultipartUpload:
		if v := h.Get("x-amz-checksum-algorithm"); v != "" {
			add("checksum", strings.TrimSuffix(v+"/"+h.Get("x-amz-checksum-type"), "/"))
		}
	default:
	}
	describeHeaders(c, add)
	return b.String()
}

// describeHeaders adds checksums, metadata names, ranges and conditions.
func describeHeaders(c *call, add func(name, value string)) {
	if c.req.Op != DeleteObjects {
		for _, alg := range algorithms {
			if v := c.announced(alg.header()); v != "" {
				add(strings.ToLower(alg.name), v)
			}
		}
	}
	if names := slices.Sorted(maps.Keys(metadata(c.req.Header))); len(names) > 0 {
		add("meta", strings.Join(names, ","))
	}
	if v := c.req.Header.Get("Range"); v != "" {
		add("range", v)
	}
	for _, name := range []string{"If-Match", "If-None-Match"} {
		switch v := c.req.Header.Get(name); v {
		case "":
		case "*":
			add(strings.ToLower(name), v)
		default:
			add(strings.ToLower(name), "etag") // ETags would make golden files depend on every byte of data
		}
	}
}

// readable quotes text that would break a line into other pieces.
func readable(s string) string {
	odd := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) || r == unicode.ReplacementChar }
	if strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}
