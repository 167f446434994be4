package sink

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/s3fs"
)

// SweepFacts is what the decisions of a sweep follow from. The order in which the facts were gathered is part of the proof: first the
// uploads, then the newest epoch and whether a run is live, last what checkpoints name.
//
// Why that is enough. An upload of an epoch before the newest one belongs to a run that is fenced off: no checkpoint it saves counts
// any more. What it left behind and still matters is named by a retained checkpoint, since every checkpoint names all files
// that are not published and a newer one takes over what an older one names. The same holds for the newest epoch once
// its run was seen to be dead: what it saved, it had saved before the checkpoints were read. And a run that begins after the uploads
// were listed creates others.
//
// One thing a live run does under names of an earlier epoch: a restored file that has no upload yet, or lost an empty one, gets one
// when it grows. Its key is in the retained checkpoint, though, so beside a live run a key that is named there protects every upload of it.
type SweepFacts struct {
	Path  s3fs.Path // of the sink
	Job   string
	Shard checkpoint.Shard

	Now       time.Time
	OlderThan time.Duration // younger uploads are kept, whatever else is known

	Uploads     []s3fs.Upload // in progress
	NewestEpoch int64         // that any run of this shard has claimed
	Live        bool          // a run holds the checkpoint store, or nobody knows that none does
	Retained    []NamedUpload // by the checkpoints in the store
	Savepoints  []NamedUpload // by copies of checkpoints elsewhere

	// WithoutCheckpoints gives the proof up: epochs and Retained do not count.
	WithoutCheckpoints bool
}

// NamedUpload is a file that a checkpoint names.
type NamedUpload struct {
	Key      string
	UploadID string // empty when the file had no upload yet
	By       string // which checkpoint, for people
}

// SweepReason says why an upload is kept or aborted.
type SweepReason uint8

// The reasons. All but Abandoned and Unchecked keep the upload.
const (
	// Abandoned: its epoch is finished and nothing names it.
	Abandoned SweepReason = iota + 1
	// Unchecked: it is old enough, and nothing else was asked for.
	Unchecked
	// OtherName: its key is no part file of this job and shard.
	OtherName
	// Named: a checkpoint names the upload.
	Named
	// FileNamed: a checkpoint names the file with another upload or none, and somebody may be writing this one.
	FileNamed
	// LiveEpoch: it belongs to the newest epoch, whose run is live.
	LiveEpoch
	// UnknownEpoch: the checkpoint store has never seen its epoch, so the store says nothing about it.
	UnknownEpoch
	// Young: it is younger than the guard.
	Young
)

// reasonNames are stable: reports contain them.
var reasonNames = [...]string{
	Abandoned: "abandoned", Unchecked: "unchecked", OtherName: "other-name", Named: "named", FileNamed: "file-named",
	LiveEpoch: "live-epoch", UnknownEpoch: "unknown-epoch", Young: "young",
}

// String returns a stable name such as "live-epoch".
func (r SweepReason) String() string {
	if r == 0 || int(r) >= len(reasonNames) {
		return fmt.Sprintf("SweepReason(%d)", uint8(r))
	}
	return reasonNames[r]
}

// MarshalText returns String.
func (r SweepReason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// SweepDecision is what becomes of one upload.
type SweepDecision struct {
	Upload s3fs.Upload
	Epoch  int64 // of the run that began the file; 0 when the key tells none
	Abort  bool
	Reason SweepReason
	By     string // the checkpoint that names the upload or its file
}

// Why is the reason in words.
func (d SweepDecision) Why() string {
	switch d.Reason {
	case Abandoned:
		return fmt.Sprintf("epoch %d is finished and no checkpoint names it", d.Epoch)
	case Unchecked:
		return "old enough; checkpoints were not asked"
	case OtherName:
		return "not a part file of this job and shard"
	case Named:
		return d.By + " names it"
	case FileNamed:
		return d.By + " names its file; it may be in use"
	case LiveEpoch:
		return fmt.Sprintf("epoch %d is the newest and its run is live", d.Epoch)
	case UnknownEpoch:
		return fmt.Sprintf("the checkpoint store does not know epoch %d yet", d.Epoch)
	case Young:
		return "younger than the guard"
	}
	return d.Reason.String()
}

// PlanSweep decides about every upload, in the order given. It is pure: the same facts give the same decisions.
func PlanSweep(f SweepFacts) []SweepDecision {
	p := newSweepPlan(f)
	out := make([]SweepDecision, len(f.Uploads))
	for i, u := range f.Uploads {
		out[i] = p.decide(u)
	}
	return out
}

// sweepPlan holds the facts in a form to look things up in.
type sweepPlan struct {
	SweepFacts
	ids       map[string]string // upload id -> who names it
	keys      map[string]string // key -> which retained checkpoint names it
	savedKeys map[string]string // key -> which savepoint names it
}

func newSweepPlan(f SweepFacts) sweepPlan {
	p := sweepPlan{SweepFacts: f, ids: map[string]string{}, keys: map[string]string{}, savedKeys: map[string]string{}}
	if !f.WithoutCheckpoints {
		p.note(f.Retained, p.keys)
	}
	p.note(f.Savepoints, p.savedKeys)
	return p
}

func (p sweepPlan) note(named []NamedUpload, keys map[string]string) {
	for _, n := range named {
		keys[n.Key] = n.By
		if n.UploadID != "" {
			p.ids[n.UploadID] = n.By
		}
	}
}

func (p sweepPlan) decide(u s3fs.Upload) SweepDecision {
	d := SweepDecision{Upload: u}
	epoch, ours := fileEpoch(p.Path, p.Job, p.Shard, u.Path)
	if !ours {
		d.Reason = OtherName
		return d
	}
	d.Epoch = epoch
	if d.By = p.ids[u.UploadID]; d.By != "" {
		d.Reason = Named
		return d
	}
	// A savepoint may be in use by a run that has its own copy of the store, of which nothing is known here.
	if d.By = p.savedKeys[u.Path.Key]; d.By == "" && p.Live {
		d.By = p.keys[u.Path.Key]
	}
	switch young := u.Initiated.After(p.Now.Add(-p.OlderThan)); {
	case d.By != "":
		d.Reason = FileNamed
	case !p.WithoutCheckpoints && epoch > p.NewestEpoch:
		d.Reason = UnknownEpoch
	case young:
		d.Reason = Young
	case !p.WithoutCheckpoints && epoch == p.NewestEpoch && p.Live:
		d.Reason = LiveEpoch
	case p.WithoutCheckpoints:
		d.Reason, d.Abort = Unchecked, true
	default:
		d.Reason, d.Abort = Abandoned, true
	}
	return d
}

// sweepPrefix is what the key of every part file of one shard of a job begins with.
func sweepPrefix(path s3fs.Path, job string, shard checkpoint.Shard) s3fs.Path {
	return s3fs.Path{Bucket: path.Bucket, Key: joinKey(path.Key, FilePrefix(job)+shard.Dir()+"_e")}
}

// fileEpoch returns the epoch in the name of a part file. ok is false for every name that FileName would not give a file of this job
// and shard directly below the path.
func fileEpoch(path s3fs.Path, job string, shard checkpoint.Shard, of s3fs.Path) (epoch int64, ok bool) {
	prefix := sweepPrefix(path, job, shard)
	rest, found := strings.CutPrefix(of.Key, prefix.Key)
	if !found || of.Bucket != path.Bucket || strings.Contains(rest, "/") {
		return 0, false
	}
	e, rest, _ := strings.Cut(rest, "_w")
	w, rest, _ := strings.Cut(rest, "_")
	end := strings.IndexByte(rest, '.')
	if end < 0 {
		end = len(rest)
	}
	epoch, errEpoch := strconv.ParseInt(e, 10, 64)
	subtask, errSubtask := strconv.Atoi(w)
	counter, errCounter := strconv.ParseInt(rest[:end], 10, 64)
	if errEpoch != nil || errSubtask != nil || errCounter != nil || epoch < 0 || subtask < 0 || counter < 0 {
		return 0, false
	}
	// Compared as a whole, so that there is one spelling only.
	return epoch, of.Key == joinKey(path.Key, FileName(job, shard.Dir(), epoch, subtask, counter, rest[end:]))
}
