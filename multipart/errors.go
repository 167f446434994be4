package multipart

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Sentinels: what a caller may branch on with errors.Is.
var (
	// ErrNoSuchUpload means that the store does not know the upload id: aborted, expired, or already completed. It is
	// ambiguous by itself; Commit looks at the object before it decides.
	ErrNoSuchUpload = errors.New("no such upload")

	// ErrNotFound means that there is no object at the key. It satisfies errors.Is(err, fs.ErrNotExist).
	ErrNotFound error = notFound{}

	// ErrForeign is returned by Commit when the object at the key does not carry this upload's token. Nothing was
	// overwritten; trying again does not help.
	ErrForeign = errors.New("another object is at the key")

	// ErrUnproven is what ErrMissing and ErrUnknown have in common: it could not be shown that the object is published with
	// the right content. The upload keeps what it needs and Commit may be called again.
	ErrUnproven = errors.New("not proven")

	// ErrMissing is returned by Commit when nothing is at the key, whatever the store said to the attempt to publish.
	ErrMissing error = &unprovenError{"not proven: nothing is at the key"}

	// ErrUnknown is returned by Commit when the look failed or did not settle it: no permission, no answer, or an object
	// with our token whose size or content does not match.
	ErrUnknown error = &unprovenError{"not proven"}

	// ErrClosed is returned after Abandon, and for a capture of an upload that is abandoned or committed.
	ErrClosed = errors.New("upload is closed")

	// ErrSealed is returned by Write after Seal.
	ErrSealed = errors.New("upload is sealed")

	// ErrNotSealed is returned by Commit before Seal.
	ErrNotSealed = errors.New("upload is not sealed")

	// ErrBusy is returned by Commit while another Commit of the same upload runs.
	ErrBusy = errors.New("a commit of this upload is running")

	// ErrTooManyParts is returned by Write, before it takes a byte, when the bytes would not fit into the part limit.
	ErrTooManyParts = errors.New("too many parts")

	// ErrBudgetFull is returned by TryWrite when the bytes would have to wait for memory.
	ErrBudgetFull = errors.New("memory budget is full")

	// ErrHandle is returned for a handle that is damaged, of an unknown version, or contradicts itself.
	ErrHandle = errors.New("bad upload handle")
)

// unprovenError is one of the two ways not to be proven.
type unprovenError struct{ text string }

func (e *unprovenError) Error() string        { return e.text }
func (e *unprovenError) Is(target error) bool { return target == ErrUnproven }

type notFound struct{}

func (notFound) Error() string        { return "not found" }
func (notFound) Is(target error) bool { return target == fs.ErrNotExist }

// Error carries the facts of a failed operation; the reason is Err. Every error of an [Upload] that is about the store
// is or wraps one, and names the target exactly once.
type Error struct {
	Op       string // "write", "create upload", "upload part", "list parts", "complete", "put", "head", "commit", "store", "resume"
	Target   Target
	UploadID string // "" before the upload exists
	Part     int32  // 0 when the error is not about one part
	Attempts int    // attempts on the wire, 0 when unknown
	Hint     string // what an operator can do, "" when there is nothing to say
	Err      error
}

// Error returns one line without secrets.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Part != 0 {
		fmt.Fprintf(&b, " %d", e.Part)
	}
	fmt.Fprintf(&b, " of %s", e.Target)
	if e.UploadID != "" {
		fmt.Fprintf(&b, " (upload %s)", e.UploadID)
	}
	if e.Attempts > 0 {
		b.WriteString(" after " + attempts(e.Attempts))
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if e.Hint != "" {
		fmt.Fprintf(&b, " (%s)", e.Hint)
	}
	return b.String()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// PartMismatchError says that the store holds something else under a part number than the handle promises. The upload
// cannot be continued from this handle.
type PartMismatchError struct {
	Want Part
	Got  *Part // nil when the store has no such part
}

// Error describes both sides.
func (e *PartMismatchError) Error() string {
	if e.Got == nil {
		return fmt.Sprintf("part %d of %d bytes with etag %s is missing in the store", e.Want.Number, e.Want.Size, e.Want.ETag)
	}
	return fmt.Sprintf("part %d is %d bytes with etag %s in the store, the handle says %d bytes with etag %s",
		e.Want.Number, e.Got.Size, e.Got.ETag, e.Want.Size, e.Want.ETag)
}

// PieceError says that the bytes a checkpoint holds for a part cannot be used.
type PieceError struct {
	Number int32
	Ref    string
	Err    error
}

// Error names the reference.
func (e *PieceError) Error() string {
	return fmt.Sprintf("bytes of part %d in blob %q: %v", e.Number, e.Ref, e.Err)
}

// Unwrap returns the reason.
func (e *PieceError) Unwrap() error { return e.Err }

const hintUploadGone = "the upload was aborted or removed by a lifecycle rule; keep incomplete uploads longer than the oldest checkpoint"

// fault builds an *Error, or completes and passes on one that the API already made, so that no fact appears twice.
func fault(op string, t Target, uploadID string, part int32, err error) *Error {
	if made, ok := err.(*Error); ok { //nolint:errorlint // only an outermost *Error may be completed; a wrapped one is a reason
		e := *made
		if e.Op == "" {
			e.Op = op
		}
		if e.Target == (Target{}) {
			e.Target = t
		}
		if e.UploadID == "" {
			e.UploadID = uploadID
		}
		if e.Part == 0 {
			e.Part = part
		}
		if e.Hint == "" {
			e.Hint = hintFor(e.Err)
		}
		return &e
	}
	return &Error{Op: op, Target: t, UploadID: uploadID, Part: part, Hint: hintFor(err), Err: err}
}

// reason makes err the reason of an error that already names the target: its own target and upload id are left out.
func reason(op string, err error) error {
	if err == nil {
		return nil
	}
	if made, ok := err.(*Error); ok { //nolint:errorlint // as in fault
		if made.Attempts > 0 {
			return fmt.Errorf("%s after %s: %w", op, attempts(made.Attempts), made.Err)
		}
		err = made.Err
	}
	return fmt.Errorf("%s: %w", op, err)
}

// hintOf returns the hint of an error that becomes the reason of another one.
func hintOf(err error) string {
	if made, ok := err.(*Error); ok && made.Hint != "" { //nolint:errorlint // as in fault
		return made.Hint
	}
	return hintFor(err)
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

func hintFor(err error) string {
	if errors.Is(err, ErrNoSuchUpload) {
		return hintUploadGone
	}
	return ""
}
