package checkpoint

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sluice-go/sluice/checkpoint/crashfs"
)

var errInjected = errors.New("injected")

// stub is a participant that does nothing, except what its fields say.
type stub struct {
	name    string
	capture func(id ID) (Snapshot, error)
	store   func(ctx context.Context, b Blobs) ([]byte, []string, error)
	commit  func(ctx context.Context, id ID) error
	restore func(ctx context.Context, r Restored) error
	pending func(bool)

	discarded int
}

func (s *stub) Name() string { return s.name }

func (s *stub) Capture(id ID) (Snapshot, error) {
	if s.capture != nil {
		return s.capture(id)
	}
	return &stubSnapshot{s}, nil
}

func (s *stub) Commit(ctx context.Context, id ID) error {
	if s.commit != nil {
		return s.commit(ctx, id)
	}
	return nil
}

func (s *stub) Restore(ctx context.Context, r Restored) error {
	if s.restore != nil {
		return s.restore(ctx, r)
	}
	return nil
}

func (s *stub) BarrierPending(pending bool) {
	if s.pending != nil {
		s.pending(pending)
	}
}

type stubSnapshot struct{ s *stub }

func (s *stubSnapshot) Store(ctx context.Context, b Blobs) ([]byte, []string, error) {
	if s.s.store != nil {
		return s.s.store(ctx, b)
	}
	return []byte("state of " + s.s.name), nil, nil
}

func (s *stubSnapshot) Discard() { s.s.discarded++ }

// newStore returns a store in a file system of its own.
func newStore(t testing.TB) (*DirStore, *crashfs.Process) {
	t.Helper()
	p := crashfs.New("base").Process()
	s, err := openDir(p, "base", "job", "0-of-1")
	must(t, err)
	return s, p
}

// restored returns a coordinator that has begun.
func restored(t testing.TB, o Options, ps ...Participant) *Coordinator {
	t.Helper()
	s, _ := newStore(t)
	c, err := NewCoordinator(s, o, ps...)
	must(t, err)
	_, err = c.Restore(context.Background())
	must(t, err)
	return c
}

// sleepFor sleeps in virtual time, or less if ctx ends.
func sleepFor(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// times records when checkpoints begin, relative to the first call.
func times(starts *[]time.Duration) Observer {
	zero := time.Now()
	return Observer{Begun: func(i Info) { *starts = append(*starts, i.Started.Sub(zero)) }}
}

func sameTimes(t *testing.T, got []time.Duration, want ...time.Duration) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("checkpoints began after %v, want %v", got, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// check is must for other goroutines than the test's.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
