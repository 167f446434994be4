package multipart

import (
	"errors"
	"fmt"
	"time"
)

// Limits of S3 that hold on every store.
const (
	MaxParts    = 10_000  // parts of one upload
	MaxPartSize = 5 << 30 // bytes of one part, and of one PUT
)

const defaultConcurrency = 4

// Options are the settings of one upload. The 5 MiB that S3 demands of every part but the last are the business of the
// configuration, so that tests can use small parts.
type Options struct {
	// PartSize is the size in bytes of every part but the last, fixed for the life of an upload. Resume uses the
	// handle's. Required.
	PartSize int64

	// MaxParts is the most parts the file may have, 0 for [MaxParts].
	MaxParts int32

	// Concurrency is how many parts of one file are uploaded at a time, 0 for 4.
	Concurrency int

	// Budget is the memory that buffers come from, shared by all uploads of a process. Required, at least one part.
	Budget *Budget

	// PersistWait is how long Capture.Store waits, in all, for parts in flight before it stores their bytes itself. 0
	// does not wait.
	PersistWait time.Duration

	// Epoch is the run that starts the upload. It travels in the handle; Resume keeps the handle's.
	Epoch int64
}

// normalize fills the defaults in and reports all problems together.
func (o Options) normalize() (Options, error) {
	if o.MaxParts == 0 {
		o.MaxParts = MaxParts
	}
	if o.Concurrency == 0 {
		o.Concurrency = defaultConcurrency
	}
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if o.PartSize < 1 || o.PartSize > MaxPartSize {
		bad("part size %d: must be between 1 and %d bytes", o.PartSize, int64(MaxPartSize))
	}
	if o.MaxParts < 1 || o.MaxParts > MaxParts {
		bad("max parts %d: must be between 1 and %d", o.MaxParts, MaxParts)
	}
	if o.Concurrency < 1 {
		bad("concurrency %d: must be at least 1", o.Concurrency)
	}
	if o.PersistWait < 0 {
		bad("persist wait %v: must not be negative", o.PersistWait)
	}
	if o.Epoch < 0 {
		bad("epoch %d: must not be negative", o.Epoch)
	}
	if o.Budget == nil {
		bad("budget: required")
	} else if need := FileBudget(o.PartSize); o.PartSize > 0 && o.Budget.Stats().Limit < need {
		bad("budget of %d bytes: one part of %d bytes needs %d", o.Budget.Stats().Limit, o.PartSize, need)
	}
	return o, errors.Join(problems...)
}
