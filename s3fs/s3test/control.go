package s3test

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Match selects requests. Every field that is set has to hold; the zero value matches all.
//
// Nth, First and Every count the requests that the other fields select, from 1, in order of arrival. A request counts
// for every control that selects it, also when another control answers it. A client's retry is a request of its own.
type Match struct {
	Op        Op
	Bucket    string
	KeyPrefix string
	Part      int32

	Nth   int // only the nth
	First int // only the first n
	Every int // only the nth, the 2nth, and so on
}

func (m Match) selects(r Request) bool {
	return (m.Op == "" || m.Op == r.Op) &&
		(m.Bucket == "" || m.Bucket == r.Bucket) &&
		strings.HasPrefix(r.Key, m.KeyPrefix) &&
		(m.Part == 0 || m.Part == r.Part)
}

func (m Match) counted(n int) bool {
	return (m.Nth == 0 || n == m.Nth) &&
		(m.First == 0 || n <= m.First) &&
		(m.Every == 0 || n%m.Every == 0)
}

type control struct {
	match Match
	f     func(Request) *Reply
	seen  int
}

// asked is a control that a request has matched, with its number there.
type asked struct {
	f func(Request) *Reply
	n int
}

// Control lets f decide on requests that m matches, until remove is called.
//
// A request is matched against the controls when its head has arrived, before its body is read, before its credentials
// are looked at, and before it has any effect. The controls it matches are asked in the order in which they were
// registered; the first reply that is not nil is given, later ones are not asked. When all say nil, the request is handled
// normally. Use a channel inside f to hold a request back.
//
// f runs on the goroutine of its request, concurrently with itself when requests are concurrent, and under no lock: it
// may call every method of the server except Close. Close waits for it; see [Request.Context].
//
// remove keeps requests that arrive later from f; one that has been matched already may still call it. It is idempotent.
func (s *Server) Control(m Match, f func(Request) *Reply) (remove func()) {
	c := &control{match: m, f: f}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.controls = append(s.controls, c)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.controls = slices.DeleteFunc(s.controls, func(o *control) bool { return o == c })
	}
}

// Always is a control function that gives the same reply to every request it is asked about.
func Always(r *Reply) func(Request) *Reply { return func(Request) *Reply { return r } }

// arrive gives the request its place in the transcript and finds the controls that want to see it, in one step, so that
// counting follows the order of arrival.
func (s *Server) arrive(c *call) []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	c.id = requestID(s.requests)
	if c.req.UploadID != "" {
		c.req.Upload = s.uploadName(c.req.UploadID)
	}
	c.line = &line{op: c.req.Op, detail: describe(c)}
	if !s.o.NoTrace {
		s.lines = append(s.lines, c.line)
	}
	var found []asked
	for _, ctl := range s.controls {
		if !ctl.match.selects(c.req) {
			continue
		}
		ctl.seen++
		if ctl.match.counted(ctl.seen) {
			found = append(found, asked{f: ctl.f, n: ctl.seen})
		}
	}
	return found
}

// normally is the reply of a server that nobody disturbs.
var normally = &Reply{act: actHandle, effect: true}

func decide(found []asked, c *call) *Reply {
	for _, a := range found {
		req := c.req
		req.N = a.n
		req.Query = url.Values(cloneLists(req.Query))
		req.Header = c.req.Header.Clone()
		if rep := a.f(req); rep != nil {
			return rep
		}
	}
	return normally
}

func cloneLists(m map[string][]string) map[string][]string {
	out := maps.Clone(m)
	for k, v := range out {
		out[k] = slices.Clone(v)
	}
	return out
}
