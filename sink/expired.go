package sink

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/multipart"
)

// ExpiredPolicy says what happens to a file whose upload the store has removed.
type ExpiredPolicy uint8

const (
	// ExpiredFail ends the run with an *ExpiredError.
	ExpiredFail ExpiredPolicy = iota + 1
	// ExpiredSkip gives the file up and lists it in the commit record as skipped.
	ExpiredSkip
	// ExpiredRewrite ends the run with an *ExpiredError like ExpiredFail; whoever runs the job then goes back to a retained
	// checkpoint from which the rows can be made again, by checkpoint.Rewind and Rewound.
	ExpiredRewrite
)

// String returns the value of the option.
func (p ExpiredPolicy) String() string {
	switch p {
	case ExpiredFail:
		return "fail"
	case ExpiredSkip:
		return "skip-and-record"
	case ExpiredRewrite:
		return "rewrite"
	}
	return fmt.Sprintf("expired policy %d", uint8(p))
}

// ExpiredError says that the store has removed an upload that the checkpoint names: the bytes of its parts are gone.
type ExpiredError struct {
	Key       string
	UploadID  string
	CreatedAt time.Time // of the upload
	Rows      int64     // of the file
	Bytes     int64
	Err       error
}

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("the upload of %s, created %s, is gone, and with it up to %d rows (%d bytes); %s decides what happens then: %v",
		e.Key, e.CreatedAt.Format(time.RFC3339), e.Rows, e.Bytes, KeyExpiredUpload.Name(), e.Err)
}

func (e *ExpiredError) Unwrap() error { return e.Err }

// expiredAtRestore says whether resuming an open file failed because its upload is gone.
func expiredAtRestore(err error) bool { return errors.Is(err, multipart.ErrNoSuchUpload) }

// expiredAtCommit says whether a commit failed for good: nothing is at the key, and the upload is gone. A lost answer to
// Complete looks the same for a moment, but then the object is there.
func expiredAtCommit(err error) bool {
	return errors.Is(err, multipart.ErrMissing) && errors.Is(err, multipart.ErrNoSuchUpload)
}

// reallyGone asks once more before a file is given up or written again: a store may answer NoSuchUpload once and be wrong. First the upload,
// then the object, since a Complete that is still on its way ends the one and makes the other. When neither answers, the file stays pending.
func (s *Sink[T]) reallyGone(ctx context.Context, p *part) bool {
	target := multipart.Target{Bucket: s.path.Bucket, Key: p.key}
	if id := p.upload.UploadID(); id != "" {
		if _, err := s.api.ListParts(ctx, target, id); !errors.Is(err, multipart.ErrNoSuchUpload) {
			return false
		}
	}
	_, err := s.api.Head(ctx, target)
	return errors.Is(err, multipart.ErrNotFound)
}

// giveUp moves a file from the pending ones to the skipped ones. The caller holds no lock.
func (s *Sink[T]) giveUp(p *part) {
	entry := FileEntry{
		Key: p.key, Bytes: p.upload.Offset(), Rows: p.rows, CRC64NVME: p.upload.Digest().String(), Checkpoint: p.staged,
	}
	p.upload.Abandon()
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.pending[:0:0]
	for _, q := range s.pending {
		if q != p {
			rest = append(rest, q)
		}
	}
	s.pending = rest
	s.skipped = append(s.skipped, entry)
}
