package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/sink"
)

// budgetOf returns the memory budget of a life.
func budgetOf(p lifePlan) int64 {
	return (int64(p.writers) + p.spare) * multipart.FileBudget(p.partSize)
}

// errDisk is an operation that the disk refuses.
var errDisk = errors.New("input/output error")

// fileOp is the hook of a life's process: every file operation waits for the scheduler.
func (l *life) fileOp(_ int, what, path string) error {
	text := what + " " + strings.TrimPrefix(path, chkDir+"/")
	return l.w.await(l.dead, &event{life: l, kind: file, what: what, text: text})
}

// diskFault decides whether the disk refuses an operation.
func (w *world) diskFault(e *event) error {
	if p := e.life.plan.faults.files; p == 0 || w.chance.Float64() >= p || e.what == "close" {
		return nil
	}
	w.stats.add("disk refuses: " + e.what)
	return errDisk
}

// orderedStore lets one blob after the other be written and read, and Save and Prune begin, in an order that the scheduler decides.
// Otherwise the place of a blob in its file, for one, would depend on which goroutine came first.
type orderedStore struct {
	checkpoint.RewindStore
	life *life
}

// Claim notes the epoch of the life.
func (s orderedStore) Claim(ctx context.Context) (int64, error) {
	epoch, err := s.RewindStore.Claim(ctx)
	if err == nil {
		s.life.epoch = epoch
	}
	return epoch, err
}

func (s orderedStore) Save(ctx context.Context, m checkpoint.Manifest) error {
	if err := s.life.ask(ctx, "save"); err != nil {
		return err
	}
	return s.RewindStore.Save(ctx, m)
}

func (s orderedStore) Prune(ctx context.Context, keep int) error {
	if err := s.life.ask(ctx, "prune"); err != nil {
		return err
	}
	return s.RewindStore.Prune(ctx, keep)
}

// orderedSink begins its commits when the scheduler says so: a commit behind others may begin in the moment in which the run fails.
type orderedSink struct {
	*sink.Sink[[]byte]
	life *life
}

func (s orderedSink) Commit(ctx context.Context, id checkpoint.ID) error {
	if err := s.life.ask(ctx, "commit"); err != nil {
		return err
	}
	return s.Sink.Commit(ctx, id)
}

// ask waits until the scheduler says that it is this goroutine's turn. Nothing is held.
func (l *life) ask(ctx context.Context, text string) error {
	return l.w.await(ctx, &event{life: l, kind: turn, what: "turn", text: "turn of " + text})
}

func (s orderedStore) Blobs(ctx context.Context, id checkpoint.ID) (checkpoint.BlobWriter, error) {
	b, err := s.RewindStore.Blobs(ctx, id)
	if err != nil {
		return nil, err
	}
	return orderedBlobs{b, s.life}, nil
}

func (s orderedStore) OpenBlob(ctx context.Context, ref string) (io.ReadCloser, error) {
	release, err := s.life.hold(ctx, "blob "+ref)
	if err != nil {
		return nil, err
	}
	defer release()
	r, err := s.RewindStore.OpenBlob(ctx, ref)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err == nil {
		err = io.EOF
	}
	return io.NopCloser(io.MultiReader(bytes.NewReader(data), failing{err})), nil
}

// failing is a reader that has come to its end.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

type orderedBlobs struct {
	checkpoint.BlobWriter
	life *life
}

func (b orderedBlobs) Put(ctx context.Context, r io.Reader, size int64) (string, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return "", err
	}
	release, err := b.life.hold(ctx, fmt.Sprintf("put of %d bytes, checksum %08x", size, crc32.ChecksumIEEE(data)))
	if err != nil {
		return "", err
	}
	defer release()
	return b.BlobWriter.Put(ctx, bytes.NewReader(data), size)
}

// hold waits until nobody else holds, in the order that the scheduler decides.
func (l *life) hold(ctx context.Context, text string) (release func(), err error) {
	if err := l.w.await(ctx, &event{life: l, kind: hold, what: "hold", text: text}); err != nil {
		return nil, err
	}
	return func() {
		l.w.mu.Lock()
		l.held = false
		l.w.mu.Unlock()
		l.w.poke()
	}, nil
}
