package sink

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"sync"

	"github.com/sluice-go/sluice/checkpoint"
)

const packedVersion = 1

// packed is a snapshot with its bytes inside, for a host that stores one opaque value.
type packed struct {
	Version int               `json:"version"`
	ID      checkpoint.ID     `json:"id"`
	State   []byte            `json:"state"`
	Blobs   map[string][]byte `json:"blobs"`
}

// Snapshot returns everything needed to go on from here as one opaque, versioned value, the bytes of open files included
// (up to a part size for each). It is for a host with checkpoints of its own: store the value under id, then call Commit(id)
// once it is durable. ids only grow. No Write may run beside it.
func (s *Sink[T]) Snapshot(ctx context.Context, id checkpoint.ID) ([]byte, error) {
	snap, err := s.Capture(id)
	if err != nil {
		return nil, err
	}
	blobs := &memoryBlobs{prefix: fmt.Sprintf("%d-", id), blobs: maps.Clone(s.carried)}
	text, refs, err := snap.Store(ctx, blobs)
	if err != nil {
		snap.Discard()
		return nil, err
	}
	all := make(map[string][]byte, len(refs))
	for _, ref := range refs {
		all[ref] = blobs.blobs[ref]
	}
	s.carried = map[string][]byte{}
	for _, ref := range snap.(*snapshot[T]).pendingRefs() {
		s.carried[ref] = all[ref]
	}
	out, err := json.Marshal(packed{Version: packedVersion, ID: id, State: text, Blobs: all})
	if err != nil {
		return nil, fmt.Errorf("encode the sink's snapshot %d: %w", id, err)
	}
	return out, nil
}

// RestoreSnapshot takes over a value that Snapshot returned; nil is a fresh start. epoch must be larger than that of every
// earlier run of this job and shard: it is what keeps file names from repeating, and the host must see to it.
// It publishes what the snapshot staged, so that the host need not know whether its last Commit was reached.
func (s *Sink[T]) RestoreSnapshot(ctx context.Context, epoch int64, value []byte) error {
	if value == nil {
		return s.Restore(ctx, checkpoint.Restored{Epoch: epoch})
	}
	var p packed
	if err := json.Unmarshal(value, &p); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	if p.Version != packedVersion {
		return fmt.Errorf("%w: snapshot version %d, this program reads version %d", ErrState, p.Version, packedVersion)
	}
	s.carried = p.Blobs // the pending files among them; the next Snapshot drops the rest
	err := s.Restore(ctx, checkpoint.Restored{ID: p.ID, Epoch: epoch, State: p.State, Blobs: &memoryBlobs{blobs: p.Blobs}})
	if err != nil {
		return err
	}
	return s.Commit(ctx, p.ID)
}

// memoryBlobs holds a snapshot's bytes.
type memoryBlobs struct {
	prefix string // of new references, never used before

	mu    sync.Mutex
	count int
	blobs map[string][]byte
}

func (m *memoryBlobs) Put(_ context.Context, r io.Reader, size int64) (string, error) {
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return "", fmt.Errorf("read %d bytes of an open file: %w", size, err)
	}
	if n, err := r.Read(make([]byte, 1)); n > 0 || err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("an open file has more than the %d bytes announced: %w", size, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.blobs == nil {
		m.blobs = map[string][]byte{}
	}
	m.count++
	ref := m.prefix + strconv.Itoa(m.count)
	m.blobs[ref] = body
	return ref, nil
}

func (m *memoryBlobs) Open(_ context.Context, ref string) (io.ReadCloser, error) {
	body, ok := m.blobs[ref]
	if !ok {
		return nil, fmt.Errorf("%w: bytes %q are not in the snapshot", ErrState, ref)
	}
	return io.NopCloser(bytes.NewReader(body)), nil
}
