package checkpoint

import "time"

// Info tells how far one checkpoint has come. Fields are filled as the phases end.
type Info struct {
	ID      ID
	Epoch   int64
	Started time.Time

	Barrier time.Duration // waiting for running steps; new steps wait meanwhile and during Capture
	Capture time.Duration
	Store   time.Duration // all participants in parallel, blobs synced
	Save    time.Duration // the manifest
	Commit  time.Duration
	Total   time.Duration // from Started until now

	BlobBytes  int64 // bytes put into blobs, this checkpoint's own
	StateBytes int64 // bytes of state in the manifest

	Err error // Failed and Cleanup only
}

// Observer is told how checkpoints go. Any field may be nil. The functions are called one after the other by the goroutine that
// takes the checkpoint, so they return quickly and do not call the Coordinator, except Stats. With Options.CommitBacklog, what
// happens in a commit is told by another goroutine, one commit after the other.
type Observer struct {
	Restored  func(Info) // ID 0: a fresh start
	Begun     func(Info)
	Captured  func(Info) // the barrier is over
	Durable   func(Info)
	Committed func(Info)
	Failed    func(Info) // Err is a *CommitError: durable, not committed. Anything else: abandoned
	Cleanup   func(Info) // Err: old checkpoints, or the remains of an abandoned one, could not be deleted; tried again later
}

// Stats counts since NewCoordinator.
type Stats struct {
	Epoch              int64
	Restored           ID // the checkpoint this run started from, 0 when there was none
	LastDurable        ID
	LastCommitted      ID // by all participants
	Durable            int64
	Committed          int64
	Abandoned          int64
	CommitFailures     int64
	CleanupFailures    int64
	ConsecutiveFailure int // checkpoints of Run that failed in a row
	BlobBytes          int64
	StateBytes         int64
	Last               Info // the last durable checkpoint
}

func tell(f func(Info), i Info) {
	if f != nil {
		f(i)
	}
}
