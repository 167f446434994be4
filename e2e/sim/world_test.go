package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-go/sluice/checkpoint/crashfs"
	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

const (
	bucket      = "data"
	stateBucket = "state" // of the checkpoints, when they are in a bucket
	jobName     = "main"
	shard       = "0-of-1"
	dirName     = "checkpoints"
	chkDir      = dirName + "/" + jobName + "/" + shard
)

// path is where the sink writes.
var path = s3fs.Path{Bucket: bucket, Key: "out"}

// world is what outlives every life: the store, the disk, and the knowledge of what has happened.
type world struct {
	plan   plan
	source datagen.Options
	store  *s3test.Server
	disk   *crashfs.Disk
	stats  *stats
	faults []fault
	began  time.Time

	schedule, chance *rand.Rand // of the scheduler; of faults and crashes

	// The scheduler's.
	steps    int
	reply    *s3test.Reply // to the call that is being served
	uploads  ledger
	outcome  result
	manifest map[string]*manifest // durable ones, by path
	newest   *manifest

	wake chan struct{}

	mu      sync.Mutex
	waiting []*event
	lives   []*life
	log     []string
	ended   bool
	reap    bool   // zombies are to be killed
	failure string // the first one
}

// result is how a run ended that has not failed.
type result uint8

const (
	proven   result = iota // every row is there, exactly once
	expired                // an upload was taken away, and the job says which
	poisoned               // a zombie wrote over parts of its successor or the other way round, and the job says so
	stolen                 // somebody else's object is at a key of ours, and the job says so
)

func (r result) String() string {
	return [...]string{"proven", "expired upload", "parts fought over", "foreign object"}[r]
}

func newWorld(p plan, s *stats) *world {
	w := &world{
		plan: p, stats: s, faults: faults(), began: time.Now(), wake: make(chan struct{}, 1),
		schedule: rand.New(rand.NewPCG(p.seed, 2)), chance: rand.New(rand.NewPCG(p.seed, 3)),
		disk: crashfs.New(dirName), manifest: map[string]*manifest{}, uploads: newLedger(),
		source: datagen.Options{
			NumberOfRows: p.rows, Seed: int64(p.seed >> 1), Fields: []datagen.Field{datagen.RandomField("f", p.length)},
		},
		store: s3test.New(s3test.Options{
			Buckets: []string{bucket, stateBucket}, MinPartSize: 1, PageSize: p.store.pageSize,
			Quirks: s3test.Quirks{IgnoreChecksums: p.store.ignoresChecksums, CompleteRepeat404: p.store.repeat404},
		}),
	}
	w.store.Control(s3test.Match{}, func(s3test.Request) *s3test.Reply { return w.reply })
	return w
}

// run simulates the whole plan and returns what was wrong, "" if nothing was.
func (w *world) run() string {
	defer w.store.Close()
	go w.drive()
	w.loop()
	return w.failure
}

// over reports whether the last life has been verified.
func (w *world) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

// drive starts one life after the other.
func (w *world) drive() {
	defer func() {
		w.mu.Lock()
		w.ended = true
		w.mu.Unlock()
		w.poke()
	}()
	last := len(w.plan.lives) - 1
	for i := 0; i <= last && !w.failed(); i++ {
		if i == last {
			w.endZombies()
		}
		if w.plan.expire && len(w.zombies()) == 0 {
			w.expireUpload()
		}
		l := w.newLife(i+1, w.plan.lives[i])
		go l.run()
		<-l.over
		if l.isZombie() {
			continue
		}
		<-l.gone
		w.checkEnd(l)
		if l.finished && i < last { // what is left to show is that it stays finished
			i = last - 1
		}
	}
	w.endZombies()
	if !w.failed() {
		w.verify()
	}
}

// end ends a life as planned. Called by the scheduler, when everything is blocked.
func (w *world) end(l *life, e *event) {
	w.stats.add(fmt.Sprintf("life ended by %s after %s", l.plan.end.how, e.what))
	switch l.plan.end.how {
	case byStop:
		w.logf("life %d is told to stop", l.number)
		close(l.stop)
	case asZombie:
		w.logf("life %d has lost its lock", l.number)
		w.disk.LoseLocks()
		l.haunt()
	default:
		w.kill(l, l.plan.end.how)
	}
}

// kill ends a life at once. Called by the scheduler.
func (w *world) kill(l *life, by how) {
	w.logf("life %d ends: %s", l.number, by)
	w.land(l)
	l.proc.Kill()
	if by == byPower && len(w.zombies()) == 0 {
		w.disk.Crash(pick(w.chance, nil, w.chance))
		w.manifest, w.newest = map[string]*manifest{}, nil
		w.scanManifests()
	}
	l.die(errKilled) // last: the next life may begin from here on
}

// land removes what a life that ends still wants. Store calls that were on their way arrive now, or never.
func (w *world) land(l *life) {
	w.mu.Lock()
	var flying []*event
	w.waiting = slices.DeleteFunc(w.waiting, func(e *event) bool {
		if e.life == l && e.kind == call {
			flying = append(flying, e)
		}
		return e.life == l
	})
	w.mu.Unlock()
	slices.SortStableFunc(flying, func(a, b *event) int { return strings.Compare(a.text, b.text) })
	for _, e := range flying {
		if w.chance.IntN(3) == 0 {
			w.stats.add("in flight at the end of a life, arrived: " + e.what)
			w.serveLate(e)
		}
	}
}

// zombies returns those that are not dead.
func (w *world) zombies() (alive []*life) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.lives {
		if l.isZombie() && l.dead.Err() == nil {
			alive = append(alive, l)
		}
	}
	return alive
}

// haunted reports whether there was any zombie.
func (w *world) haunted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.lives, (*life).isZombie)
}

// endZombies has the scheduler kill what still haunts, and waits for it.
func (w *world) endZombies() {
	w.mu.Lock()
	w.reap = true
	lives := slices.Clone(w.lives)
	w.mu.Unlock()
	w.poke()
	for _, l := range lives {
		if l.isZombie() {
			<-l.gone
		}
	}
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure != ""
}

// endings tells how lives have ended so far.
func (w *world) endings() string {
	var b strings.Builder
	for _, l := range w.lives {
		select {
		case <-l.gone:
			fmt.Fprintf(&b, "  life %d has ended: %v\n", l.number, l.err)
		default:
		}
	}
	return b.String()
}

// fail notes why the run is not what it should be, with everything that helps to find out why, and ends it. The first reason stays.
func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	if w.failure == "" {
		tail := w.log[max(0, len(w.log)-120):]
		trace := strings.Split(strings.TrimSpace(w.store.Trace()), "\n")
		trace = trace[max(0, len(trace)-60):]
		w.failure = fmt.Sprintf("%s\n%s%s\nthe last events:\n%s\nthe last store calls:\n%s\nreplay: go test ./e2e/sim -run 'TestSimulation$' -seed %d",
			fmt.Sprintf(format, args...), w.plan, w.endings(), strings.Join(tail, "\n"), strings.Join(trace, "\n"), w.plan.seed)
	}
	w.mu.Unlock()
	w.poke()
}
