package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-go/sluice/s3fs/s3test"
)

// fault is what goes wrong with one store call. The zero value is nothing.
type fault struct {
	name          string
	reply         *s3test.Reply
	before, after time.Duration // until it takes effect; from there until it is answered
	loses         bool          // a job that gives expired uploads up must take it for one
	only          string        // operations it makes sense for, comma separated; empty: all
	weight        int
}

// faults is all that may go wrong. An answer of 200 that is none is only given to a Complete: that is where stores are known to do it.
func faults() []fault {
	const complete, writes = "CompleteMultipartUpload", "CompleteMultipartUpload,PutObject file,PutObject record,PutObject checkpoint,UploadPart,CreateMultipartUpload"
	return []fault{
		{name: "503 SlowDown", reply: s3test.SlowDown(), weight: 4},
		{name: "503 without body", reply: s3test.EmptyBody503(), weight: 1},
		{name: "500", reply: s3test.Status(500, "InternalError"), weight: 3},
		{name: "500 after the effect", reply: s3test.Status(500, "InternalError").WithEffect(), only: writes, weight: 2},
		{name: "503 after the effect", reply: s3test.SlowDown().WithEffect(), only: writes, weight: 1},
		{name: "reset", reply: s3test.ResetBefore(), weight: 4},
		{name: "lost answer", reply: s3test.ResetAfter(), weight: 5},
		{name: "slow answer", after: 1, weight: 4},
		{name: "slow request", before: 1, weight: 4},
		{name: "403", reply: s3test.Status(403, "AccessDenied"), weight: 1},
		{name: "cut answer", reply: s3test.CutBody(10), only: "GetObject,ListObjectsV2,ListParts", weight: 3},
		{name: "200 with an error", reply: s3test.ErrorIn200("InternalError"), only: complete, weight: 3},
		{name: "200 with an error after the effect", reply: s3test.ErrorIn200("InternalError").WithEffect(), only: complete, weight: 2},
		{name: "200 without body", reply: s3test.NoBody200(), only: complete, weight: 2},
		{name: "200 without body after the effect", reply: s3test.NoBody200().WithEffect(), only: complete, weight: 2},
		{name: "200 that is a lie", reply: s3test.DropEffect200(), only: complete, weight: 3},
		{name: "404 NoSuchUpload that is a lie", reply: s3test.Status(404, "NoSuchUpload"), only: complete, weight: 1, loses: true},
		{name: "404 NoSuchUpload after the effect", reply: s3test.Status(404, "NoSuchUpload").WithEffect(), only: complete, weight: 2},
	}
}

func (f fault) fits(what string) bool {
	return f.only == "" || slices.Contains(strings.Split(f.only, ","), what)
}

// drawFault decides what goes wrong with a call.
func (w *world) drawFault(e *event) fault {
	p := e.life.plan.faults
	e.life.calls++
	if n := e.life.calls; p.storm > 0 && n > p.stormAfter && n <= p.stormAfter+p.storm {
		w.stats.add("fault in a storm, 503 SlowDown")
		return fault{name: "503 SlowDown in a storm", reply: s3test.SlowDown()}
	}
	share := p.calls
	if slices.Contains([]string{"CompleteMultipartUpload", "PutObject file", "PutObject record", "PutObject checkpoint"}, e.what) {
		share = max(share, p.publishing)
	}
	if share == 0 || w.chance.Float64() >= share {
		return fault{}
	}
	var fit []fault
	total := 0
	for _, f := range w.faults {
		if f.fits(e.what) && (!w.plan.skip || !f.loses) {
			fit = append(fit, f)
			total += f.weight
		}
	}
	n := w.chance.IntN(total)
	for _, f := range fit {
		if n -= f.weight; n < 0 {
			d := time.Duration(w.chance.Int64N(int64(pick(w.chance, 10*time.Millisecond, 300*time.Millisecond, 8*time.Second))))
			f.before, f.after = f.before*d, f.after*d
			w.stats.add(fmt.Sprintf("fault at %s: %s", e.what, f.name))
			return f
		}
	}
	return fault{}
}

// stats counts what has happened in all runs, so that one sees that it did.
type stats struct {
	mu     sync.Mutex
	counts map[string]int
}

func newStats() *stats { return &stats{counts: map[string]int{}} }

func (s *stats) add(what string) { s.addN(what, 1) }

func (s *stats) addN(what string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what] += n
}

func (s *stats) get(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[what]
}

// String lists all counts.
func (s *stats) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(s.counts)) {
		fmt.Fprintf(&b, "%8d  %s\n", s.counts[what], what)
	}
	return b.String()
}
