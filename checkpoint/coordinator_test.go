package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestNewCoordinator_ReportsAllProblemsTogether(t *testing.T) {
	_, err := NewCoordinator(nil, Options{Interval: -1, MinPause: -1, TolerableFailures: -1, Retain: -1},
		&stub{name: "a"}, &stub{name: "a"}, &stub{})
	for _, want := range []string{"no store", "interval", "min-pause", "tolerable", "retained", `named "a"`, "without a name"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

func TestTrigger_StoresEachParticipantInParallel_AndSavesOnlyWhenAllAreStored(t *testing.T) {
	s, p := newStore(t)
	var both sync.WaitGroup
	both.Add(2)
	meet := func(context.Context, Blobs) ([]byte, []string, error) {
		both.Done()
		both.Wait() // hangs if they are stored one after the other
		if slices.ContainsFunc(p.Disk().Paths(), func(name string) bool { return strings.Contains(name, "chk-") }) {
			t.Error("the manifest is there before the participants are stored")
		}
		return nil, nil, nil
	}
	c, err := NewCoordinator(s, Options{Config: map[string]string{"k": "v"}}, &stub{name: "a", store: meet}, &stub{name: "b", store: meet})
	must(t, err)
	_, err = c.Restore(t.Context())
	must(t, err)
	id, err := c.Trigger(t.Context())
	must(t, err)
	m, err := s.Load(t.Context(), id)
	must(t, err)
	if m.ID != 1 || m.Epoch != 1 || m.Job != "job" || m.Shard != "0-of-1" || !maps.Equal(m.Config, map[string]string{"k": "v"}) {
		t.Errorf("%+v", m)
	}
	if len(m.States) != 2 || m.States[0].Name != "a" || m.States[1].Name != "b" || m.States[0].State == nil {
		t.Errorf("%+v", m.States)
	}
}

func TestTrigger_Concurrently_IsOneAfterTheOther(t *testing.T) {
	running := 0
	p := &stub{name: "p"}
	p.store = func(context.Context, Blobs) ([]byte, []string, error) {
		running++ // the race detector watches
		if running != 1 {
			t.Error("two checkpoints at the same time")
		}
		running--
		return nil, nil, nil
	}
	c := restored(t, Options{}, p)
	ids := make([]ID, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			var err error
			ids[i], err = c.Trigger(t.Context())
			check(t, err)
		})
	}
	wg.Wait()
	slices.Sort(ids)
	if !slices.Equal(ids, []ID{1, 2, 3, 4, 5, 6, 7, 8}) {
		t.Errorf("%v", ids)
	}
}

func TestTrigger_AFailedStore_CancelsTheOthers_DiscardsAll_AndDeletesTheBlobs(t *testing.T) {
	s, p := newStore(t)
	put := make(chan struct{})
	a := &stub{name: "a", store: func(context.Context, Blobs) ([]byte, []string, error) {
		<-put
		return nil, nil, errInjected
	}}
	b := &stub{name: "b", store: func(ctx context.Context, blobs Blobs) ([]byte, []string, error) {
		_, err := blobs.Put(ctx, strings.NewReader("data"), 4)
		close(put)
		<-ctx.Done()
		return nil, nil, errors.Join(err, ctx.Err())
	}}
	c, err := NewCoordinator(s, Options{}, a, b)
	must(t, err)
	_, err = c.Restore(t.Context())
	must(t, err)
	id, err := c.Trigger(t.Context())
	e, ok := errors.AsType[*Error](err)
	if id != 0 || !ok || e.Participant != "a" || !errors.Is(err, errInjected) || errors.Is(err, context.Canceled) {
		t.Errorf("Trigger = %d, %v, want the first failure only", id, err)
	}
	if a.discarded != 1 || b.discarded != 1 {
		t.Errorf("discarded: %d and %d", a.discarded, b.discarded)
	}
	for _, name := range p.Disk().Paths() {
		if strings.HasSuffix(name, ".blob") || strings.Contains(name, "chk-") {
			t.Errorf("%s is left", name)
		}
	}
}

func TestTrigger_AFailedCapture_DiscardsThoseBefore_AndLetsStepsGoOn(t *testing.T) {
	a := &stub{name: "a"}
	b := &stub{name: "b", capture: func(ID) (Snapshot, error) { return nil, errInjected }}
	c := restored(t, Options{}, a, b)
	if _, err := c.Trigger(t.Context()); !errors.Is(err, errInjected) {
		t.Errorf("%v", err)
	}
	if a.discarded != 1 {
		t.Errorf("discarded: %d", a.discarded)
	}
	must(t, c.Step(t.Context(), func() error { return nil }))
	b.capture = func(ID) (Snapshot, error) { return nil, nil }
	if _, err := c.Trigger(t.Context()); err == nil || !strings.Contains(err.Error(), "no snapshot") {
		t.Errorf("%v", err)
	}
}

func TestTrigger_ACommitFailure_ComesWithTheDurableId_AndDoesNotKeepOthersFromTheirCommit(t *testing.T) {
	var committed []ID
	a := &stub{name: "a", commit: func(context.Context, ID) error { return errInjected }}
	b := &stub{name: "b", commit: func(_ context.Context, id ID) error { committed = append(committed, id); return nil }}
	c := restored(t, Options{}, a, b)
	id, err := c.Trigger(t.Context())
	commit, ok := errors.AsType[*CommitError](err)
	if id != 1 || !ok || commit.ID != 1 || commit.Participant != "a" {
		t.Errorf("Trigger = %d, %v", id, err)
	}
	if a.discarded != 0 {
		t.Error("the snapshot of a durable checkpoint was discarded")
	}
	a.commit = nil
	if id, err := c.Trigger(t.Context()); id != 2 || err != nil {
		t.Errorf("Trigger = %d, %v", id, err)
	}
	if !slices.Equal(committed, []ID{1, 2}) {
		t.Errorf("%v", committed)
	}
}

func TestRestore_GivesEachParticipantItsState_AndCommitsAgain(t *testing.T) {
	s, p := newStore(t)
	big := strings.Repeat("0123456789", 100_000)
	store := func(ctx context.Context, b Blobs) ([]byte, []string, error) {
		ref, err := b.Put(ctx, strings.NewReader(big), int64(len(big)))
		return []byte(ref), []string{ref}, err
	}
	c, err := NewCoordinator(s, Options{}, &stub{name: "a", store: store}, &stub{name: "b"})
	must(t, err)
	_, err = c.Restore(t.Context())
	must(t, err)
	_, err = c.Trigger(t.Context())
	must(t, err)
	must(t, c.Close(t.Context()))
	must(t, s.Close())

	var log []string
	a := &stub{name: "a", commit: func(_ context.Context, id ID) error { log = append(log, fmt.Sprint("commit ", id)); return nil }}
	a.restore = func(ctx context.Context, r Restored) error {
		log = append(log, fmt.Sprintf("restore %d in epoch %d", r.ID, r.Epoch))
		in, err := r.Blobs.Open(ctx, string(r.State))
		if err != nil {
			return err
		}
		defer in.Close()
		data, err := io.ReadAll(in)
		if string(data) != big {
			return errors.New("other data")
		}
		if _, err := r.Blobs.Put(ctx, strings.NewReader(""), 0); err == nil {
			return errors.New("a blob was put that no checkpoint names")
		}
		return err
	}
	b := &stub{name: "b", restore: func(_ context.Context, r Restored) error {
		log = append(log, "b: "+string(r.State))
		return nil
	}}
	fresh := &stub{name: "new", restore: func(_ context.Context, r Restored) error {
		log = append(log, fmt.Sprintf("new: nil %v", r.State == nil))
		return nil
	}}
	s2, err := openDir(p, "base", "job", "0-of-1")
	must(t, err)
	c, err = NewCoordinator(s2, Options{}, a, b, fresh)
	must(t, err)
	id, err := c.Restore(t.Context())
	if id != 1 || err != nil {
		t.Fatalf("Restore = %d, %v", id, err)
	}
	want := []string{"restore 1 in epoch 2", "b: state of b", "new: nil true", "commit 1"}
	if !slices.Equal(log, want) {
		t.Errorf("%q, want %q", log, want)
	}
	if _, err := c.Restore(t.Context()); err == nil {
		t.Error("restored twice")
	}
}

func TestRestore_StateOfAMissingParticipant_IsAnErrorAndNotLost(t *testing.T) {
	s, _ := newStore(t)
	c, err := NewCoordinator(s, Options{}, &stub{name: "a"}, &stub{name: "gone"})
	must(t, err)
	_, err = c.Restore(t.Context())
	must(t, err)
	_, err = c.Trigger(t.Context())
	must(t, err)
	a := &stub{name: "a", restore: func(context.Context, Restored) error { t.Error("touched"); return nil }}
	c, err = NewCoordinator(s, Options{}, a)
	must(t, err)
	if _, err := c.Restore(t.Context()); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("Restore = %v", err)
	}
}

func TestRestore_ThatFailsBeforeItTouchedAnything_MayBeTriedAgain(t *testing.T) {
	s, p := newStore(t)
	other, err := openDir(p.Disk().Process(), "base", "job", "0-of-1")
	must(t, err)
	_, err = other.Claim(t.Context())
	must(t, err)
	c, err := NewCoordinator(s, Options{}, &stub{name: "p"})
	must(t, err)
	if _, err := c.Restore(t.Context()); !errors.Is(err, ErrEpochTaken) {
		t.Fatalf("Restore = %v", err)
	}
	must(t, other.Close())
	if id, err := c.Restore(t.Context()); id != 0 || err != nil {
		t.Fatalf("Restore = %d, %v", id, err)
	}
}

func TestRestore_ThatFailsInAParticipant_IsFinal(t *testing.T) {
	s, _ := newStore(t)
	c, err := NewCoordinator(s, Options{}, &stub{name: "p", restore: func(context.Context, Restored) error { return errInjected }})
	must(t, err)
	if _, err := c.Restore(t.Context()); !errors.Is(err, errInjected) {
		t.Errorf("Restore = %v", err)
	}
	if err := c.Step(t.Context(), func() error { return nil }); !errors.Is(err, errInjected) {
		t.Errorf("Step = %v", err)
	}
}

func TestRestore_WhoseCommitFails_IsRestoredAllTheSame(t *testing.T) {
	s, _ := newStore(t)
	p := &stub{name: "p"}
	c, err := NewCoordinator(s, Options{}, p)
	must(t, err)
	_, err = c.Restore(t.Context())
	must(t, err)
	_, err = c.Trigger(t.Context())
	must(t, err)
	p.commit = func(context.Context, ID) error { return errInjected }
	c, err = NewCoordinator(s, Options{}, p)
	must(t, err)
	id, err := c.Restore(t.Context())
	if _, ok := errors.AsType[*CommitError](err); !ok || id != 1 {
		t.Errorf("Restore = %d, %v", id, err)
	}
	must(t, c.Step(t.Context(), func() error { return nil }))
	p.commit = nil
	if id, err := c.Trigger(t.Context()); id != 2 || err != nil {
		t.Errorf("Trigger = %d, %v", id, err)
	}
}

// The same store serves an in-process restart: the run before is fenced off by the claim of the next.
func TestRestore_InTheSameProcess_FencesTheRunBefore(t *testing.T) {
	s, _ := newStore(t)
	before, err := NewCoordinator(s, Options{}, &stub{name: "p"})
	must(t, err)
	_, err = before.Restore(t.Context())
	must(t, err)
	after, err := NewCoordinator(s, Options{}, &stub{name: "p"})
	must(t, err)
	_, err = after.Restore(t.Context())
	must(t, err)
	if _, err := before.Trigger(t.Context()); !errors.Is(err, ErrFenced) {
		t.Errorf("Trigger of the run before = %v", err)
	}
	if id, err := after.Trigger(t.Context()); id != 1 || err != nil {
		t.Errorf("Trigger = %d, %v", id, err)
	}
	if e := after.Stats().Epoch; e != 2 {
		t.Errorf("epoch %d", e)
	}
}

func TestTrigger_APruneThatFails_IsNoFailureOfTheCheckpoint(t *testing.T) {
	s, p := newStore(t)
	var cleanup []Info
	c, err := NewCoordinator(s, Options{Observer: Observer{Cleanup: func(i Info) { cleanup = append(cleanup, i) }}}, &stub{name: "p"})
	must(t, err)
	_, err = c.Restore(t.Context())
	must(t, err)
	_, err = c.Trigger(t.Context())
	must(t, err)
	p.Hook = func(_ int, what, path string) error {
		if what == "remove" && strings.Contains(path, "chk-") {
			return syscall.EACCES
		}
		return nil
	}
	if id, err := c.Trigger(t.Context()); id != 2 || err != nil {
		t.Errorf("Trigger = %d, %v", id, err)
	}
	if len(cleanup) != 1 || !errors.Is(cleanup[0].Err, syscall.EACCES) || c.Stats().CleanupFailures != 1 {
		t.Errorf("%+v", cleanup)
	}
	p.Hook = nil
	_, err = c.Trigger(t.Context())
	must(t, err)
	if ids, err := s.List(t.Context()); err != nil || !slices.Equal(ids, []ID{3}) {
		t.Errorf("%v, %v: the next prune makes up for it", ids, err)
	}
}

func TestObserver_SeesEachPhaseWithItsFigures(t *testing.T) {
	var log []string
	note := func(name string) func(Info) {
		return func(i Info) {
			log = append(log, fmt.Sprintf("%s %d: %d blob bytes, %d state bytes", name, i.ID, i.BlobBytes, i.StateBytes))
		}
	}
	p := &stub{name: "p", store: func(ctx context.Context, b Blobs) ([]byte, []string, error) {
		ref, err := b.Put(ctx, strings.NewReader("12345"), 5)
		return []byte("abc"), []string{ref}, err
	}}
	s, _ := newStore(t)
	c, err := NewCoordinator(s, Options{Observer: Observer{
		Restored: note("restored"), Begun: note("begun"), Captured: note("captured"), Durable: note("durable"),
		Committed: note("committed"), Failed: note("failed"), Cleanup: note("cleanup"),
	}}, p)
	must(t, err)
	_, err = c.Restore(t.Context())
	must(t, err)
	_, err = c.Trigger(t.Context())
	must(t, err)
	p.store = func(context.Context, Blobs) ([]byte, []string, error) { return nil, nil, errInjected }
	_, err = c.Trigger(t.Context())
	if !errors.Is(err, errInjected) {
		t.Error(err)
	}
	want := []string{
		"restored 0: 0 blob bytes, 0 state bytes",
		"begun 1: 0 blob bytes, 0 state bytes",
		"captured 1: 0 blob bytes, 0 state bytes",
		"durable 1: 5 blob bytes, 3 state bytes",
		"committed 1: 5 blob bytes, 3 state bytes",
		"begun 2: 0 blob bytes, 0 state bytes",
		"captured 2: 0 blob bytes, 0 state bytes",
		"failed 2: 0 blob bytes, 0 state bytes",
	}
	if !slices.Equal(log, want) {
		t.Errorf("%q", log)
	}
	st := c.Stats()
	if st.Durable != 1 || st.Committed != 1 || st.Abandoned != 1 || st.BlobBytes != 5 || st.StateBytes != 3 || st.Last.ID != 1 || st.Last.Started.After(time.Now()) {
		t.Errorf("%+v", st)
	}
}
