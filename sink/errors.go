package sink

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed is returned by every method of a closed sink.
	ErrClosed = errors.New("sink is closed")
	// ErrRecord is returned for a commit record that cannot be read: damaged, of another format or version.
	ErrRecord = errors.New("unreadable commit record")
	// ErrState is returned by Restore for a state that this sink cannot take over: damaged, of another version, of
	// another path.
	ErrState = errors.New("unusable sink state")
	// ErrNewerRecord is returned by Restore when a commit record of a later checkpoint exists: going back would publish
	// its rows a second time.
	ErrNewerRecord = errors.New("a newer commit record exists")
	// ErrRecordConflict is returned by Commit when another run has already written a different record for the same
	// checkpoint: this run has been replaced and must publish nothing more.
	ErrRecordConflict = errors.New("another run has written this checkpoint's commit record")
)

// CommitError is one file that could not be published at a checkpoint. The file stays pending, with its bytes, and is
// tried again with the next checkpoint.
type CommitError struct {
	Key        string
	UploadID   string // empty for a file smaller than one part
	Checkpoint int64  // the checkpoint that staged the file
	Err        error
}

func (e *CommitError) Error() string {
	if e.UploadID == "" {
		return fmt.Sprintf("publish %s, staged by checkpoint %d: %v", e.Key, e.Checkpoint, e.Err)
	}
	return fmt.Sprintf("publish %s, staged by checkpoint %d, upload %s: %v", e.Key, e.Checkpoint, e.UploadID, e.Err)
}

func (e *CommitError) Unwrap() error { return e.Err }
