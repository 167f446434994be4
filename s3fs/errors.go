package s3fs

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/aws/smithy-go"
	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/retrymode"
)

// What a caller may branch on with errors.Is. Every one of them comes inside an
// *OpError, or inside a *multipart.Error from the adapter.
var (
	// ErrNotFound: there is no object at the key. It is fs.ErrNotExist as well.
	ErrNotFound = multipart.ErrNotFound

	// ErrExists: PutIfAbsent found an object at the key. It does not say whose: the
	// answer to an earlier attempt of the same call may have been lost, so look
	// before concluding. It is fs.ErrExist as well.
	ErrExists error = &sentinel{"an object is already at the key", fs.ErrExist}

	// ErrChanged: the object was replaced while it was being read.
	ErrChanged = errors.New("the object has changed since it was opened")

	// ErrChecksum: the bytes read are not those whose checksum the store keeps.
	ErrChecksum = errors.New("the content does not match its checksum")

	// ErrNoBucket: the bucket does not exist.
	ErrNoBucket error = &sentinel{"no such bucket", fs.ErrNotExist}

	// ErrAccessDenied: the credentials are known but not allowed to do this. It is
	// fs.ErrPermission as well.
	ErrAccessDenied error = &sentinel{"access denied", fs.ErrPermission}

	// ErrCredentials: the store does not know the access key, the secret does not
	// fit it, or the session has expired. It is fs.ErrPermission as well.
	ErrCredentials error = &sentinel{"the credentials are not accepted", fs.ErrPermission}

	// ErrRegion: the bucket lives in another region than s3.region names.
	ErrRegion = errors.New("wrong region")

	// ErrUnreachable: no connection to the endpoint could be made.
	ErrUnreachable = errors.New("the endpoint cannot be reached")

	// ErrMissingHeader: the store's success lacks what makes it one, for example the
	// ETag of an uploaded part.
	ErrMissingHeader = errors.New("incomplete answer")

	// ErrClosed: the file system was closed before or during the call.
	ErrClosed error = &sentinel{"the file system is closed", fs.ErrClosed}
)

// sentinel is an error that satisfies errors.Is with one more general error.
type sentinel struct {
	text string
	is   error
}

func (s *sentinel) Error() string        { return s.text }
func (s *sentinel) Is(target error) bool { return target == s.is }

// CallTimeoutError says that one call, its retries included, took longer than
// s3.call.timeout. A write that ended like this may have been carried out.
type CallTimeoutError struct{ After time.Duration }

// Error implements error.
func (e *CallTimeoutError) Error() string {
	return fmt.Sprintf("no result within the call timeout of %v", e.After.Round(time.Millisecond))
}

// OpError is a failed operation of the file system. Its text holds no secret,
// header or signed URL.
type OpError struct {
	Op       string          // "stat", "put", "upload part", ...
	Path     Path            // what it was done to
	UploadID string          // "" unless the operation belongs to a multipart upload
	Part     int32           // 0 unless it is about one part
	Attempts int             // attempts on the wire, 0 when nothing was sent or it is not known
	Class    retrymode.Class // what the error means for the next step
	Hint     string          // what an operator can do about it, "" when there is nothing to say
	Err      error           // the cause; for an answer of the store a smithy.APIError is inside

	kind  error // the sentinel that fits, or nil
	ended bool  // kind is why the call was ended from outside: it is the whole story
}

// Error writes one line such as
// "upload part 7 of s3://b/k: SlowDown after 4 attempts: please reduce your request rate".
func (e *OpError) Error() string {
	what := e.Op
	if e.Part > 0 {
		what = fmt.Sprintf("%s %d of", e.Op, e.Part)
	}
	return fmt.Sprintf("%s %s: %s%s", what, e.Path, e.reason(true), suffix(e.Hint))
}

// Unwrap returns the sentinel that fits, if any, and the cause.
func (e *OpError) Unwrap() []error {
	if e.kind == nil {
		return []error{e.Err}
	}
	return []error{e.kind, e.Err}
}

// reason is what went wrong without where.
func (e *OpError) reason(attempts bool) string {
	n := ""
	if attempts && e.Attempts > 1 {
		n = fmt.Sprintf(" after %d attempts", e.Attempts)
	}
	if e.ended {
		return e.kind.Error() + n
	}
	if e.kind == ErrNotFound { //nolint:errorlint // kind is one of our own sentinels
		return ErrNotFound.Error() + n
	}
	if code, text, where := answerOf(e.Err); code != "" {
		if text == "" && e.kind != nil {
			text = e.kind.Error()
		} else if text == "" {
			text = "the store gave no reason"
		}
		return code + n + ": " + text + where + e.late()
	}
	if n != "" {
		n = "no answer" + n + ": "
	}
	cause := plainText(e.Err)
	if e.kind != nil && !strings.Contains(cause, e.kind.Error()) {
		cause = e.kind.Error() + ": " + cause
	}
	return n + cause
}

// late explains a call that gave up before its retries were used.
func (e *OpError) late() string {
	if _, ok := errors.AsType[*retrymode.DeadlineError](e.Err); ok {
		return "; the deadline of the call leaves no time for another attempt"
	}
	return ""
}

func suffix(hint string) string {
	if hint == "" {
		return ""
	}
	return " (" + hint + ")"
}

// reasonError is the Err of a *multipart.Error: it gives the reason without the
// names that multipart.Error already has, and unwraps to the whole OpError.
type reasonError struct{ op *OpError }

func (e reasonError) Error() string { return e.op.reason(false) }
func (e reasonError) Unwrap() error { return e.op }

// answerOf returns the code and text of an error the store answered with, and
// how to find it in the store's logs; an empty code when there was no answer.
func answerOf(err error) (code, text, where string) {
	api, ok := errors.AsType[smithy.APIError](err)
	status := statusOf(err)
	if !ok {
		if status < 300 {
			return "", "", ""
		}
		return fmt.Sprintf("HTTP %d", status), plainText(err), ""
	}
	code, text = api.ErrorCode(), api.ErrorMessage()
	if code == "" || code == "UnknownError" {
		code = fmt.Sprintf("HTTP %d", status)
	}
	if text == code || text == "UnknownError" {
		text = ""
	}
	var more []string
	if status != 0 && !strings.HasPrefix(code, "HTTP ") {
		more = append(more, fmt.Sprintf("status %d", status))
	}
	if id := requestIDOf(err); id != "" {
		more = append(more, "request "+id)
	}
	if len(more) > 0 {
		where = " [" + strings.Join(more, ", ") + "]"
	}
	return code, text, where
}
