package checkpoint

import (
	"context"
	"io"
)

// ID numbers the checkpoints of one job shard: 1, 2, 3 and so on, one line of history. 0 means none.
//
// A participant may see the same id more than once, if the earlier attempt was abandoned (its Snapshot was discarded); it
// never sees a smaller one than before, and never sees one again after a Commit of it except by another Commit.
type ID int64

// Blobs holds the larger pieces of one checkpoint's state, next to its manifest. A blob lives as long as a retained manifest
// names its ref. Safe for concurrent use.
type Blobs interface {
	// Put stores exactly size bytes of r and returns their ref, which is opaque. It fails with ErrSize when r gives fewer
	// or more. The bytes are durable once the checkpoint is; r is not read after Put returned.
	Put(ctx context.Context, r io.Reader, size int64) (ref string, err error)
	// Open reads a blob back. The reader returns a *DamagedError in place of io.EOF when the bytes are not those that were
	// put. Refs of older checkpoints work as long as a retained manifest names them.
	Open(ctx context.Context, ref string) (io.ReadCloser, error)
}

// Snapshot is the state of one participant at one barrier, not yet stored. Its methods are called by one goroutine, at most
// once each.
type Snapshot interface {
	// Store writes the larger pieces to b and returns the state. The data flow runs meanwhile. refs are the refs of
	// all blobs the state names, new ones and those carried over from older checkpoints: a blob that is not among them may be
	// deleted. Store must return soon after ctx has ended. The returned slices belong to the caller.
	Store(ctx context.Context, b Blobs) (state []byte, refs []string, err error)
	// Discard gives up: the checkpoint is abandoned and its work goes into the next one. It is called after Store has
	// returned, whatever Store returned, or instead of Store. It frees memory and undoes nothing outside of the process. It is
	// not called when the checkpoint became durable.
	Discard()
}

// Participant is a part of the data flow that has state, or output to publish, or both.
type Participant interface {
	// Name tells the participants of one job apart. It is stored, so it stays the same for ever.
	Name() string
	// Capture takes the state at the barrier. No step runs meanwhile. It is quick and does no I/O.
	Capture(id ID) (Snapshot, error)
	// Commit is called after checkpoint id is durable, and publishes everything that was staged up to it, older checkpoints
	// first. It is idempotent: after a restore it is called for the restored id again, in another process. On an
	// error, what was not published stays pending: it is part of later snapshots and is tried again by later commits.
	// Steps, and thus writes, run meanwhile.
	Commit(ctx context.Context, id ID) error
	// Restore is called once, before any Step, Capture or Commit.
	Restore(ctx context.Context, r Restored) error
}

// Restored is what a participant starts from.
type Restored struct {
	ID    ID     // the restored checkpoint, 0 when there is none
	Epoch int64  // the number of the run that begins now, greater than that of every earlier run
	State []byte // what Store returned; nil when the checkpoint has no state of this participant: a fresh start
	Blobs Blobs  // to open the blobs that State names; Put fails
}

// BarrierAware may be implemented by a participant that blocks writers inside a step (for memory, say) until something else
// makes progress.
type BarrierAware interface {
	// BarrierPending(true) is called when a barrier is waiting for running steps, so that the participant lets
	// them finish, and BarrierPending(false) after the barrier is over. Both return at once.
	BarrierPending(pending bool)
}
