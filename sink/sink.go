package sink

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/s3fs"
)

// Sink writes rows of type T to part files below one path and publishes them exactly once, checkpoint by checkpoint.
//
// It is a checkpoint.Participant: Capture notes what the writers hold, the returned snapshot's Store makes that durable,
// Commit publishes every finished file and writes the commit record, Restore takes a state over. It works under
// this module's Coordinator and, through Snapshot and RestoreSnapshot, under somebody else's checkpoints.
//
// Close never publishes and never aborts an upload.
type Sink[T any] struct {
	fs     *s3fs.FS
	api    multipart.API
	format Format[T]

	path     s3fs.Path
	job      string
	shard    string
	rolling  Rolling
	upload   multipart.Options
	parallel int
	deadline time.Duration
	expired  ExpiredPolicy
	rollback bool
	// listThreshold is the least number of files that are proven by listings; 0: never.
	listThreshold int

	budget  *multipart.Budget
	writers []*Writer[T]
	closed  atomic.Bool

	// Set by Restore, before the first row.
	epoch    int64
	restored int64  // rows accepted before this run
	moved    *moved // the restored checkpoint was written at another endpoint
	// carried holds the bytes that the last Snapshot stored for files that are still pending: under somebody else's
	// checkpoints each snapshot holds all its bytes, and none refers to an earlier one.
	carried map[string][]byte

	// mu guards what Capture (under the barrier) and Commit (behind it) share. It is never held across I/O.
	mu      sync.Mutex
	pending []*part     // sealed and captured, in the order they were staged; leaves only with a durable commit record
	skipped []FileEntry // given up, and in no commit record yet
	totals  Totals
	stored  map[checkpoint.ID]*snapshot[T] // stored, and durable once Commit is called for them
	oldest  time.Time                      // creation of the oldest upload at the last capture
	// accepted counts the rows taken before the barrier of the newest durable checkpoint.
	accepted int64

	// uncommitted are the checkpoints that were captured and whose commit has not ended, in order.
	uncommitted []checkpoint.ID

	// committing serialises Commit, which owns what follows.
	committing  sync.Mutex
	recorded    checkpoint.ID      // newest checkpoint with a commit record
	unconfirmed *unconfirmedRecord // its PUT ended in an error
	// fences are the restored checkpoint, when it has files to publish and no record yet, and those before it whose commits had not
	// ended, in order. They get a record in any case, be it empty: the run that was replaced might write one later.
	fences []checkpoint.ID
}

// Totals counts what a sink's shard has published since its first run, and what it has given up.
type Totals struct {
	Files, Rows, Bytes int64
	SkippedRows        int64 `json:",omitempty"` // of files whose uploads had expired
}

// Stats is a snapshot of a sink's counters.
type Stats struct {
	Committed    Totals
	DurableRows  int64 // rows that the newest durable checkpoint holds or its predecessors have published
	PendingFiles int   // finished, not yet published
	// OldestUpload is when the oldest multipart upload was created that is not published yet; zero when there is none. A store's
	// lifecycle rule removes uploads that are too old, and their bytes with them.
	OldestUpload time.Time
	Budget       multipart.BudgetStats
}

var (
	_ checkpoint.Participant  = (*Sink[[]byte])(nil)
	_ checkpoint.BarrierAware = (*Sink[[]byte])(nil)
)

// New returns a sink that writes through fs. It does no network; the sink takes rows after Restore.
func New[T any](fs *s3fs.FS, format Format[T], o Options) (*Sink[T], error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	s := &Sink[T]{
		fs: fs, api: fs.API(), format: format,
		path: o.Path, job: o.Job, shard: o.Shard.Dir(), rolling: o.Rolling,
		parallel: o.CommitParallelism, deadline: o.CommitDeadline, expired: o.Expired, rollback: o.Rollback,
		listThreshold: max(o.ListThreshold, 0), stored: map[checkpoint.ID]*snapshot[T]{},
		budget: multipart.NewBudget(o.MemoryBudget),
	}
	s.upload = multipart.Options{
		PartSize: o.PartSize, Concurrency: o.UploadConcurrency,
		Budget: s.budget, PersistWait: o.PersistWait,
	}
	for i := range o.Writers {
		s.writers = append(s.writers, &Writer[T]{sink: s, subtask: i})
	}
	return s, nil
}

// uploadOptions returns the options of an upload of this run.
func (s *Sink[T]) uploadOptions() multipart.Options {
	o := s.upload
	o.Epoch = s.epoch
	return o
}

// Name is the participant's name in a checkpoint.
func (s *Sink[T]) Name() string { return "sink" }

// Writers returns how many writers there are.
func (s *Sink[T]) Writers() int { return len(s.writers) }

// Writer returns the writer of one subtask, 0 <= subtask < Writers().
func (s *Sink[T]) Writer(subtask int) *Writer[T] { return s.writers[subtask] }

// BarrierPending lets writes that wait for the memory budget finish on credit while a barrier is pending, so that a slow
// store never delays a checkpoint.
func (s *Sink[T]) BarrierPending(pending bool) { s.budget.Credit(pending) }

// Seal ends every open part file, so that the next checkpoint publishes all rows. No Write may run beside it.
func (s *Sink[T]) Seal() error {
	for _, w := range s.writers {
		if err := w.seal(); err != nil {
			return err
		}
	}
	return nil
}

// Stats returns the current counters. Safe for concurrent use.
func (s *Sink[T]) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{
		Committed: s.totals, DurableRows: s.accepted, PendingFiles: len(s.pending), OldestUpload: s.oldest, Budget: s.budget.Stats(),
	}
}

// Close forgets all files locally and waits for the parts in flight to end. It publishes nothing and aborts nothing: what a
// checkpoint names stays restorable. No other method may run beside it. It returns ErrClosed when called again.
func (s *Sink[T]) Close(context.Context) error {
	if s.closed.Swap(true) {
		return ErrClosed
	}
	for _, w := range s.writers {
		if w.open != nil {
			w.open.upload.Abandon()
		}
		for _, p := range w.sealed {
			p.upload.Abandon()
		}
	}
	s.mu.Lock()
	pending := s.pending
	s.pending = nil
	s.mu.Unlock()
	for _, p := range pending {
		p.upload.Abandon()
	}
	return nil
}

// rowsAccepted counts the rows of all runs. Only inside a barrier.
func (s *Sink[T]) rowsAccepted() int64 {
	n := s.restored
	for _, w := range s.writers {
		n += w.rows
	}
	return n
}

// endpoint is the address of the store, "" for Amazon's.
func (s *Sink[T]) endpoint() string { return s.fs.Settings().Endpoint }

// location is the sink's path as text, which a state must match.
func (s *Sink[T]) location() string { return fmt.Sprintf("s3://%s/%s", s.path.Bucket, s.path.Key) }
