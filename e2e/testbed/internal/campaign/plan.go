package campaign

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/sluice-go/sluice/config"
)

// Places where the job is struck, as the plan aims and as its log tells afterwards.
type place string

const (
	starting   place = "starting"            // before it runs: claim, restore, commit of what is restored
	storing    place = "inside a checkpoint" // begun, not durable
	completing place = "inside a Complete"   // the server is completing an upload
	committing place = "inside a commit"     // durable, not committed
	cleaning   place = "behind a commit"     // just committed: old checkpoints are deleted
	between    place = "between checkpoints"
	finishing  place = "in the last checkpoint" // the source has ended
	stopping   place = "while stopping"         // SIGTERM has been sent
)

var places = []place{starting, storing, completing, committing, cleaning, between, finishing, stopping}

// mishap is what happens between two processes of a job.
type mishap string

const (
	noMishap      mishap = ""
	serverRestart mishap = "the server is killed and started"
	startFull     mishap = "start on a full disk"
	startReadOnly mishap = "start on a read-only disk"
	cutManifest   mishap = "a truncated manifest"
	flipManifest  mishap = "a flipped bit in a manifest"
	cutBlob       mishap = "a truncated blob"
	flipBlob      mishap = "a flipped bit in a blob"
	cutEpoch      mishap = "a truncated epoch file"
	flipEpoch     mishap = "a flipped bit in the epoch file"
	cutLock       mishap = "a truncated lock file"
	flipLock      mishap = "a flipped bit in the lock file"
)

var damages = []mishap{cutManifest, flipManifest, cutBlob, flipBlob, cutManifest, flipManifest, cutBlob, flipBlob, cutEpoch, flipEpoch, cutLock, flipLock}

// trouble is what happens to the world of a running process.
type trouble string

const (
	noTrouble      trouble = ""
	serverUploads  trouble = "the server is killed during uploads"
	serverComplete trouble = "the server is killed inside its Complete"
	diskFull       trouble = "the disk fills up"
	diskReadOnly   trouble = "the disk becomes read-only"
)

// lifePlan is one process of a job.
type lifePlan struct {
	mishap  mishap
	trouble trouble
	down    time.Duration // how long the server is away
	both    bool          // the job dies while it is

	end      place
	term     bool    // end by SIGTERM instead, at that place
	after    int     // checkpoints that the process commits before
	fraction float64 // of the expected length of the place, in [0, 1)

	writers int  // 0: as the job file says
	sweep   bool // a sweep runs beside the process
}

// jobPlan is one job.
type jobPlan struct {
	seed   uint64
	number int

	writers      int
	file         config.MemorySize
	onCheckpoint bool
	interval     time.Duration
	row          int64 // bytes, line feed included
	rows         int64
	pace         int64 // rows a second until the last process
	mode         string
	retained     int
	tolerable    int
	retries      int
	restarts     bool // the process restarts the job itself
	disk         bool // the checkpoints are on a disk of their own
	again        bool // it runs once more after its end

	lives []lifePlan // those that are disturbed; one follows that is not
}

// partSize is the part size of every job, the smallest one that S3 takes.
const partSize config.MemorySize = 5 << 20

// newJobPlan draws job number of seed.
func newJobPlan(seed uint64, number int) jobPlan {
	r := rand.New(rand.NewPCG(seed, uint64(number)))
	p := jobPlan{
		seed: seed, number: number,
		writers: 2 + r.IntN(5), onCheckpoint: r.IntN(2) == 0,
		interval: time.Duration(pick(r, 200, 300, 500, 700, 1000)) * time.Millisecond,
		mode:     pick(r, "adaptive", "standard"),
		retained: 1 + r.IntN(3), tolerable: pick(r, 0, 0, 3), retries: pick(r, 3, 8),
		restarts: r.IntN(3) == 0, again: r.IntN(4) == 0,
		disk: number%3 == 1,
	}
	if p.disk { // what it holds has to fit
		p.writers, p.retained = min(p.writers, 3), 1
	}
	for range 4 + r.IntN(4) {
		p.lives = append(p.lives, newLifePlan(r, p))
	}
	if r.IntN(3) == 0 {
		p.lives = append(p.lives, lifePlan{end: finishing, fraction: r.Float64()})
	}
	p.size(r)
	return p
}

// newLifePlan draws one process. What kind of trouble a job gets goes by its number, so that a few jobs have some of each.
func newLifePlan(r *rand.Rand, p jobPlan) lifePlan {
	l := lifePlan{
		end: pick(r, starting, starting, storing, storing, storing, completing, completing, completing, committing, committing, committing,
			cleaning, between, stopping, stopping),
		after: pick(r, 0, 0, 1), fraction: r.Float64(), down: time.Duration(r.IntN(600)) * time.Millisecond,
		sweep: r.IntN(4) == 0,
	}
	if p.interval <= 500*time.Millisecond {
		l.after = r.IntN(3)
	}
	if l.term = r.IntN(6) == 0; l.term {
		l.end = pick(r, storing, committing, between)
	}
	if r.IntN(5) == 0 {
		l.writers = 2 + r.IntN(min(5, p.writers))
	}
	switch draw := r.IntN(100); {
	case p.number%2 == 0 && draw < 40:
		l.trouble, l.both = pick(r, serverUploads, serverComplete, serverComplete), r.IntN(3) == 0
	case p.number%2 == 0 && draw < 55:
		l.mishap = serverRestart
	case p.disk && draw < 25:
		l.trouble = pick(r, diskFull, diskFull, diskReadOnly)
	case p.disk && draw < 45:
		l.mishap = pick(r, startFull, startReadOnly)
	case p.number%2 == 1 && draw < 85:
		l.mishap = damages[r.IntN(len(damages))]
	}
	return l
}

// size chooses files and rows so that the job lasts for all its processes. The last one writes what is left without a limit.
func (p *jobPlan) size(r *rand.Rand) {
	var bytesPerSecond float64
	if r.IntN(5) < 3 { // files of two parts
		p.file, p.row = 8<<20, 1<<10
		bytesPerSecond = min(float64(p.writers)*float64(p.file)/(0.6+0.8*r.Float64()), 32<<20)
	} else { // files smaller than a part
		p.file, p.row = config.MemorySize(64<<10+r.IntN(3<<20)), int64(100+r.IntN(300))
		bytesPerSecond = float64(1<<20 + r.IntN(4<<20))
	}
	seconds := 1.0
	for _, l := range p.lives {
		seconds += 0.3 + (float64(l.after)+1)*p.interval.Seconds()
	}
	bytes := min(bytesPerSecond*seconds*1.3, 192<<20)
	p.pace = max(1, int64(bytesPerSecond)/p.row)
	p.rows = max(100, int64(bytes)/p.row)
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func (p jobPlan) name() string { return fmt.Sprintf("job-%d", p.number) }

// String describes the plan, a line for each process.
func (p jobPlan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, job %d: %d rows of %d bytes at %d/s, %d writers, files of %s, roll on checkpoint: %t, checkpoints every %s, %d retained, "+
		"%d failures tolerated, %d retries, mode %s, restarts itself: %t, own disk: %t, runs again at the end: %t\n",
		p.seed, p.number, p.rows, p.row, p.pace, p.writers, p.file, p.onCheckpoint, p.interval, p.retained,
		p.tolerable, p.retries, p.mode, p.restarts, p.disk, p.again)
	for i, l := range p.lives {
		fmt.Fprintf(&b, "  process %d: %s\n", i+1, l)
	}
	return b.String()
}

func (l lifePlan) String() string {
	text := fmt.Sprintf("%s after %d checkpoints", l.end, l.after)
	if l.term {
		text = "SIGTERM " + text
	} else {
		text = "SIGKILL " + text
	}
	if l.mishap != noMishap {
		text += "; before: " + string(l.mishap)
	}
	if l.trouble != noTrouble {
		text += "; " + string(l.trouble)
	}
	if l.both {
		text += ", and the job with it"
	}
	if l.writers > 0 {
		text += fmt.Sprintf("; %d writers", l.writers)
	}
	if l.sweep {
		text += "; a sweep beside it"
	}
	return text
}
