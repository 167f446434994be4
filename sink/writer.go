package sink

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/sluice-go/sluice/multipart"
)

// Writer turns the rows of one subtask into part files. One goroutine at a time; different writers are independent.
// Under a checkpoint.Coordinator every Write happens inside a Step.
type Writer[T any] struct {
	sink    *Sink[T]
	subtask int
	counter int64

	open   *part
	sealed []*part // not yet captured by a checkpoint

	rows int64 // rows accepted by this run
	row  []byte
}

// Write adds one row. It blocks while the memory budget is used up and ctx is not done, but not while a barrier is
// pending: then it finishes on credit. A row is taken whole or not at all; after an error the writer is of no more use and
// the job goes back to its last checkpoint.
func (w *Writer[T]) Write(ctx context.Context, row T) error {
	if w.sink.closed.Load() {
		return ErrClosed
	}
	text, err := w.sink.format.AppendRow(w.row[:0], row)
	if err != nil {
		return fmt.Errorf("format row %d of writer %d: %w", w.rows, w.subtask, err)
	}
	w.row = text
	if w.open != nil && w.sink.rolling.rollBefore(w.open.upload.Offset(), int64(len(text))) {
		if err := w.seal(); err != nil {
			return err
		}
	}
	if w.open == nil {
		if err := w.start(); err != nil {
			return err
		}
	}
	_, err = w.open.upload.TryWrite(text)
	if errors.Is(err, multipart.ErrBudgetFull) {
		if err := w.spill(); err != nil {
			return err
		}
		_, err = w.open.upload.Write(ctx, text)
	}
	if err != nil {
		return err
	}
	w.open.rows++
	w.rows++
	return nil
}

// start opens the next part file. No network: the upload is created with its first full part.
func (w *Writer[T]) start() error {
	target, token := w.nextName()
	u, err := multipart.Start(w.sink.api, target, token, w.sink.uploadOptions())
	if err != nil {
		return err
	}
	w.open = &part{upload: u, key: target.Key}
	return nil
}

// nextName returns a name that was never used before, and the token that makes an object provably this upload's: drawn once, kept in the
// handle and in the object's metadata.
func (w *Writer[T]) nextName() (multipart.Target, string) {
	s := w.sink
	name := FileName(s.job, s.shard, s.epoch, w.subtask, w.counter, s.format.Extension())
	w.counter++
	return multipart.Target{Bucket: s.path.Bucket, Key: joinKey(s.path.Key, name)},
		fmt.Sprintf("%s.%s.%d.%s", s.job, s.shard, s.epoch, rand.Text())
}

// seal ends the open file. Its last part goes up in the background.
func (w *Writer[T]) seal() error {
	if w.open == nil {
		return nil
	}
	if err := w.open.upload.Seal(); err != nil {
		return err
	}
	w.sealed = append(w.sealed, w.open)
	w.open = nil
	return nil
}

// spill frees the bytes of this writer's finished files that are smaller than a part and wait for their checkpoint to be
// published by one PUT: they go up now, as the only part of an upload.
func (w *Writer[T]) spill() error {
	for _, p := range w.sealed {
		if p.spilled {
			continue
		}
		p.spilled = true
		if err := p.upload.Spill(); err != nil {
			return err
		}
	}
	return nil
}
