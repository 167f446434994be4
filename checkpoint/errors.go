package checkpoint

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrClosed is returned by everything that is called after Close, and to steps that wait for a barrier when Close comes.
	ErrClosed = errors.New("closed")
	// ErrNotRestored is returned by Step and Trigger before Restore has succeeded, and by Restore when it is called again
	// after participants were already restored.
	ErrNotRestored = errors.New("not restored")
	// ErrFenced is returned when another run has taken over, or has won the number of the checkpoint that this run wanted
	// to save. The run that gets it must stop and publishes nothing more.
	ErrFenced = errors.New("fenced off by another run")
	// ErrEpochTaken is returned by Store.Claim while another live run holds the store. See TakenError.
	ErrEpochTaken = errors.New("epoch taken by a live run")
	// ErrUnclaimed is returned by the writing methods of a Store before Claim.
	ErrUnclaimed = errors.New("store not claimed")
	// ErrNoCheckpoint is returned by Store.Latest when there is none, and by Store.Load when there is no such checkpoint.
	ErrNoCheckpoint = errors.New("no checkpoint")
	// ErrAmbiguous is returned by Store.Save when the manifest may or may not have been saved. The run must stop: the next
	// Restore looks. Any other error of Save means that the manifest was not saved and never will be.
	ErrAmbiguous = errors.New("unknown whether the manifest was saved")
	// ErrTimeout is the cause of a checkpoint, or of a commit, that took too long. It matches context.DeadlineExceeded.
	ErrTimeout = fmt.Errorf("checkpoint timeout: %w", context.DeadlineExceeded)
	// ErrVersion is wrapped by the DamagedError of a manifest that a newer release wrote.
	ErrVersion = errors.New("unknown format version")
	// ErrSize is returned by Blobs.Put when the reader gives fewer or more bytes than announced.
	ErrSize = errors.New("blob size differs from the announced size")
)

// Error says which phase of which checkpoint did not work. The checkpoint was abandoned, unless Err is an ErrAmbiguous.
type Error struct {
	Op          string // "barrier", "capture", "store", "sync blobs", "save", "restore", ...
	ID          ID     // 0 when the error belongs to no checkpoint
	Participant string // empty when the error belongs to no participant
	Err         error
}

// Error implements error.
func (e *Error) Error() string {
	text := e.Op
	if e.Participant != "" {
		text += " of " + e.Participant
	}
	if e.ID != 0 {
		return fmt.Sprintf("checkpoint %d: %s: %v", e.ID, text, e.Err)
	}
	return fmt.Sprintf("%s: %v", text, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CommitError says that a checkpoint is durable but that a participant could not publish all of it. What is missing stays
// pending, is part of every later checkpoint, and is tried again by the next commit.
type CommitError struct {
	ID          ID
	Participant string
	Err         error
}

// Error implements error.
func (e *CommitError) Error() string {
	return fmt.Sprintf("checkpoint %d is durable but not committed by %s: %v", e.ID, e.Participant, e.Err)
}

// Unwrap returns the cause.
func (e *CommitError) Unwrap() error { return e.Err }

// DamagedError says that a stored file is there but not what was written: cut, changed, or missing although a manifest
// names it. The store never falls back to an older checkpoint by itself, because a newer one may have published output.
type DamagedError struct {
	File  string // path of the damaged file
	ID    ID     // checkpoint it belongs to, 0 if unknown
	Older ID     // newest older checkpoint that is intact, 0 if there is none or nobody looked
	Err   error
}

// Error implements error.
func (e *DamagedError) Error() string {
	text := fmt.Sprintf("%s is damaged: %v", e.File, e.Err)
	if e.ID != 0 {
		text = fmt.Sprintf("checkpoint %d: %s", e.ID, text)
	}
	if e.Older != 0 {
		text += fmt.Sprintf(" (newest older intact checkpoint: %d)", e.Older)
	}
	return text
}

// Unwrap returns the cause.
func (e *DamagedError) Unwrap() error { return e.Err }

// TakenError is an ErrEpochTaken with its facts.
type TakenError struct {
	Dir    string // directory or address of the store
	Holder string // what the holder says about itself: process id and start time
}

// Error implements error.
func (e *TakenError) Error() string {
	return fmt.Sprintf("%s: %v (%s)", e.Dir, ErrEpochTaken, e.Holder)
}

// Unwrap returns ErrEpochTaken.
func (e *TakenError) Unwrap() error { return ErrEpochTaken }

// StepError says that a step of the data flow failed, so that no consistent checkpoint can be taken any more. Every later
// Step and Trigger returns it; the way on is a Restore in a new Coordinator.
type StepError struct {
	Err error // what the step returned, or a description of its panic
}

// Error implements error.
func (e *StepError) Error() string {
	return fmt.Sprintf("a step of the data flow broke off: %v", e.Err)
}

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

// FailuresError is returned by Run when more checkpoints in a row have failed than are tolerable.
type FailuresError struct {
	Consecutive int // failed checkpoints and commits in a row, the last one included
	Tolerable   int // Options.TolerableFailures
	Err         error
}

// Error implements error.
func (e *FailuresError) Error() string {
	if e.Consecutive == 1 {
		return fmt.Sprintf("1 checkpoint failure (tolerable: %d): %v", e.Tolerable, e.Err)
	}
	return fmt.Sprintf("%d checkpoint failures in a row (tolerable: %d), the last one: %v", e.Consecutive, e.Tolerable, e.Err)
}

// Unwrap returns the last failure.
func (e *FailuresError) Unwrap() error { return e.Err }

// NoEffect marks the error of a step that failed before it did anything: nothing was read, written or counted. Step returns
// err itself and the Coordinator goes on. NoEffect(nil) is nil.
func NoEffect(err error) error {
	if err == nil {
		return nil
	}
	return &noEffect{err}
}

type noEffect struct{ err error }

func (e *noEffect) Error() string { return e.err.Error() }
func (e *noEffect) Unwrap() error { return e.err }
