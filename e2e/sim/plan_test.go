package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// plan is everything about a run that is decided before it begins.
type plan struct {
	seed   uint64
	rows   int64
	length int // of a row, without its line feed
	store  storePlan
	bucket bool       // checkpoints are kept in a bucket instead of a directory
	lives  []lifePlan // the last one is undisturbed
	expire bool       // an upload that the newest checkpoint names is gone between two lives
	skip   bool       // what has expired is given up, and recorded
	// rewrite: what has expired is written again from an older checkpoint. Nobody is replaced while alive then, or he might publish what was taken back.
	rewrite bool
	thief   bool // somebody else's object appears under a key of ours
}

// storePlan is how the store differs from Amazon's.
type storePlan struct {
	ignoresChecksums bool
	repeat404        bool
	pageSize         int
	checksums        bool // the client's setting
}

// lifePlan is one life of the job.
type lifePlan struct {
	writers, batch       int
	partSize, fileSize   int64
	onCheckpoint         bool
	concurrency, commits int
	spare                int64 // memory budget beyond the least, in parts
	persistWait          time.Duration
	interval, timeout    time.Duration
	minPause, deadline   time.Duration
	backlog              int
	tolerable, retain    int
	retries              int
	listed               int // files from which on listings prove them, -1: never
	callTimeout          time.Duration

	faults faultPlan
	weight weights
	end    ending
}

// weights say how likely each kind of event is picked, against each other, and how often time passes instead.
type weights struct {
	call, file, turn int
	time             float64
}

// faultPlan is what goes wrong during a life.
type faultPlan struct {
	calls      float64 // share of store calls
	publishing float64 // share of the calls that publish: Complete, and the PUT of a file or record
	files      float64 // share of file operations
	stormAfter int     // calls until every call is throttled
	storm      int     // calls that are
}

// how a life ends.
type how uint8

const (
	byItself how = iota // undisturbed
	byKill              // the process dies; what was written to files stays
	byPower             // the machine dies; what was not synced is lost
	byStop              // told to stop
	asZombie            // loses its lock and goes on beside its successor
)

var hows = [...]string{"undisturbed", "kill", "power loss", "stop", "zombie"}

func (h how) String() string { return hows[h] }

// ending is when and how a life ends: after the nth event of a kind.
type ending struct {
	how  how
	what string // an operation, "" for any store call or file operation
	nth  int
	more int // events of a zombie until it is killed
}

// endings are operations after which a crash is worth more than its share.
var endings = []string{
	"CompleteMultipartUpload", "CompleteMultipartUpload", "PutObject file", "PutObject record", "PutObject record", "HeadObject",
	"UploadPart", "CreateMultipartUpload", "ListParts", "ListObjectsV2", "GetObject",
}

// Those of a directory of checkpoints, and those of a bucket of them.
var (
	fileEndings  = []string{"sync", "syncdir", "syncdir", "link", "create", "write", "remove", "lock"}
	stateEndings = []string{"PutObject checkpoint", "PutObject checkpoint", "GetObject", "DeleteObject", "ListObjectsV2"}
)

// rewriteSeeds is the first of the seeds whose jobs write again what has expired. Of the others some do.
const rewriteSeeds = 1 << 32

func newPlan(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 1))
	p := plan{
		seed: seed, rows: 50 + r.Int64N(551), length: 29 + r.IntN(171),
		store: storePlan{
			ignoresChecksums: r.IntN(5) == 0, repeat404: r.IntN(4) == 0,
			pageSize: pick(r, 2, 5, 1000), checksums: r.IntN(6) > 0,
		},
		expire: r.IntN(25) == 0, skip: r.IntN(2) == 0, thief: r.IntN(60) == 0,
	}
	p.bucket = r.IntN(4) == 0
	for range 1 + r.IntN(7) {
		p.lives = append(p.lives, newLifePlan(r, true, p.bucket))
	}
	p.lives = append(p.lives, newLifePlan(r, false, p.bucket))
	for i := range p.lives {
		p.lives[i].listed = pick(r, -1, 1, 2, 3, 16)
	}
	if r.IntN(15) == 0 || seed >= rewriteSeeds {
		p.expire, p.rewrite, p.skip, p.thief = true, true, false, false
		for i := range p.lives {
			l := &p.lives[i]
			if l.retain += 2; l.end.how == asZombie {
				l.end.how = byKill
			}
		}
	}
	return p
}

func newLifePlan(r *rand.Rand, disturbed, bucket bool) lifePlan {
	l := lifePlan{
		writers: 1 + r.IntN(4), batch: pick(r, 1, 1, 2, 5),
		partSize: 1<<10 + r.Int64N(7<<10), fileSize: pick[int64](r, 500, 2<<10, 10<<10, 40<<10) + r.Int64N(500),
		onCheckpoint: r.IntN(4) == 0, concurrency: 1 + r.IntN(4), commits: 1 + r.IntN(8), spare: r.Int64N(3),
		// No two durations are alike, or two things would happen at the same instant and chance decide what comes first.
		persistWait: pick(r, 0, 5300*time.Microsecond, 53*time.Millisecond, 1030*time.Millisecond),
		interval:    pick(r, 5*time.Millisecond, 20*time.Millisecond, 50*time.Millisecond, 100*time.Millisecond),
		timeout:     pick(r, 530*time.Millisecond, 5300*time.Millisecond, 67*time.Second),
		minPause:    pick(r, 0, 0, 11*time.Millisecond), deadline: pick(r, 0, 0, 900*time.Millisecond, 17*time.Second),
		backlog:   pick(r, 0, 0, 1, 3),
		tolerable: r.IntN(4), retain: 1 + r.IntN(3), retries: r.IntN(4),
		callTimeout: pick(r, 1100*time.Millisecond, 4700*time.Millisecond, 59*time.Second),
		weight:      weights{call: pick(r, 1, 2, 8), file: pick(r, 2, 4, 8), turn: pick(r, 1, 2, 6), time: pick(r, 0.05, 0.2, 0.4)},
	}
	if !disturbed {
		l.tolerable, l.retries, l.timeout, l.callTimeout = 0, 3, 67*time.Second, 59*time.Second
		return l
	}
	l.faults = faultPlan{calls: pick(r, 0, 0, 0.01, 0.03, 0.1, 0.3), publishing: pick(r, 0, 0, 0.2, 0.5), files: pick(r, 0, 0, 0, 0.01, 0.05)}
	if r.IntN(6) == 0 {
		l.faults.stormAfter, l.faults.storm = r.IntN(60), 5+r.IntN(60)
	}
	l.end = newEnding(r, bucket)
	return l
}

func newEnding(r *rand.Rand, bucket bool) ending {
	e := ending{how: pick(r, byKill, byKill, byKill, byPower, byPower, byPower, byPower, byStop, asZombie, asZombie)}
	if r.IntN(5) < 2 {
		e.nth = 1 + r.IntN(pick(r, 60, 200, 400))
	} else {
		all := slices.Concat(endings, fileEndings)
		if bucket {
			all = slices.Concat(endings, stateEndings)
		}
		e.what = all[r.IntN(len(all))]
		e.nth = 1 + r.IntN(pick(r, 2, 6, 20))
	}
	if e.how == asZombie {
		e.more = 1 + r.IntN(pick(r, 20, 100, 400))
	}
	return e
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// String describes the plan, one line for each life.
func (p plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d rows of %d bytes, checkpoints in a bucket: %t, store %+v, an upload expires: %t (skipped: %t, rewritten: %t), a foreign object: %t\n",
		p.seed, p.rows, p.length+1, p.bucket, p.store, p.expire, p.skip, p.rewrite, p.thief)
	for i, l := range p.lives {
		end := l.end.how.String()
		if l.end.how != byItself {
			end = fmt.Sprintf("%s after %q number %d", end, l.end.what, l.end.nth)
		}
		if l.end.how == asZombie {
			end += fmt.Sprintf(", killed after %d more", l.end.more)
		}
		faults, weight := l.faults, l.weight
		l.faults, l.weight, l.end = faultPlan{}, weights{}, ending{}
		fmt.Fprintf(&b, "  life %d: %+v\n    faults %+v, weights %+v, end: %s\n", i+1, l, faults, weight, end)
	}
	return b.String()
}
