package sink

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/multipart"
)

var (
	// ErrClosed is returned by every method of a closed sink.
	ErrClosed = errors.New("sink is closed")
	// ErrRecord is returned for a commit record that cannot be read: damaged, of another format or version.
	ErrRecord = errors.New("unreadable commit record")
	// ErrState is returned by Restore for a state that this sink cannot take over: damaged, of another version, of
	// another path.
	ErrState = errors.New("unusable sink state")
	// ErrOtherStore is returned when the checkpoint was written at another endpoint, and what it needs is not at this one: another
	// store, and not another name of the same.
	ErrOtherStore = errors.New("the checkpoint belongs to another store")
	// ErrNewerRecord is returned by Restore when a commit record of a later checkpoint exists: going back would publish
	// its rows a second time.
	ErrNewerRecord = errors.New("a newer commit record exists")
	// ErrRecordConflict is returned by Commit when another run has already written a different record for the same
	// checkpoint: this run has been replaced and must publish nothing more.
	ErrRecordConflict = errors.New("another run has written this checkpoint's commit record")
)

// CommitError is one file that could not be published at a checkpoint. The file stays pending, with its bytes, and is
// tried again with the next checkpoint. Err says what the look found: it is multipart.ErrForeign, ErrMissing or ErrUnknown,
// or an error from before anything was published.
type CommitError struct {
	Key        string
	UploadID   string        // empty for a file smaller than one part
	Checkpoint int64         // the checkpoint that staged the file
	Tries      int           // within the deadline
	Tried      time.Duration // from the first try to the last
	Err        error         // names operation, object and upload
}

func (e *CommitError) Error() string {
	return fmt.Sprintf("publish a file staged by checkpoint %d, tries: %d in %v: %v", e.Checkpoint, e.Tries, e.Tried.Round(time.Millisecond), e.Err)
}

func (e *CommitError) Unwrap() error { return e.Err }

// Verdict is what the look at the key found, for people: "foreign", "missing", "unknown", or "not published" when nothing
// was tried.
func (e *CommitError) Verdict() string {
	switch {
	case errors.Is(e.Err, multipart.ErrForeign):
		return "foreign"
	case errors.Is(e.Err, multipart.ErrMissing):
		return "missing"
	case errors.Is(e.Err, multipart.ErrUnknown):
		return "unknown"
	}
	return "not published"
}
