package checkpoint

import (
	"errors"
	"testing"
)

func TestRewind_TheOlderStatesBecomeTheNewestCheckpointUnderTheNextNumber(t *testing.T) {
	dir := t.TempDir()
	s, epoch := claimed(t, dir)
	for id := range ID(3) {
		must(t, s.Save(t.Context(), manifest(id+1, epoch)))
	}
	must(t, s.Close())

	s, err := OpenDir(dir, "job", "0-of-1")
	must(t, err)
	defer s.Close()
	unchanged := func(older, newest Manifest) ([]NamedState, error) { return older.States, nil }
	for i, to := range []ID{3, 4, 9} {
		if _, err := Rewind(t.Context(), s, epoch+int64(i), to, unchanged); err == nil {
			t.Errorf("went back to checkpoint %d from 3", to)
		}
	}
	failure := errors.New("no")
	if _, err := Rewind(t.Context(), s, epoch+3, 1, func(Manifest, Manifest) ([]NamedState, error) { return nil, failure }); err != failure {
		t.Errorf("Rewind = %v", err)
	}
	ids, err := s.List(t.Context())
	must(t, err)
	if len(ids) != 3 {
		t.Errorf("%d checkpoints after refusals", len(ids))
	}

	id, err := Rewind(t.Context(), s, epoch+4, 1, func(older, newest Manifest) ([]NamedState, error) {
		if older.ID != 1 || newest.ID != 3 {
			t.Errorf("given checkpoints %d and %d", older.ID, newest.ID)
		}
		return []NamedState{{Name: "p", State: []byte("back")}}, nil
	})
	must(t, err)
	m, err := s.Latest(t.Context())
	must(t, err)
	if id != 4 || m.ID != 4 || m.Epoch <= epoch || len(m.States) != 1 || string(m.States[0].State) != "back" {
		t.Errorf("checkpoint %d: %+v", id, m)
	}
	if _, err := s.Load(t.Context(), 1); err != nil {
		t.Errorf("the older checkpoint: %v", err)
	}
}

func TestRewind_WithoutAnyCheckpointOrBesideALiveRun_IsRefused(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenDir(dir, "job", "0-of-1")
	must(t, err)
	if _, err := Rewind(t.Context(), s, 0, 1, nil); !errors.Is(err, ErrNoCheckpoint) {
		t.Errorf("Rewind = %v", err)
	}
	other, err := OpenDir(dir, "job", "0-of-1")
	must(t, err)
	if _, err := Rewind(t.Context(), other, 1, 1, nil); !errors.Is(err, ErrEpochTaken) {
		t.Errorf("Rewind = %v", err)
	}
	must(t, s.Close())
	must(t, other.Close())
}

// A run that was paused, and replaced meanwhile, finds that an upload is gone: the other one has finished it.
func TestRewind_OfARunThatWasReplaced_ChangesNothingAndFencesNobody(t *testing.T) {
	dir := t.TempDir()
	s, before := claimed(t, dir)
	must(t, s.Save(t.Context(), manifest(1, before)))
	must(t, s.Save(t.Context(), manifest(2, before)))
	must(t, s.Close())
	other, epoch := claimed(t, dir)
	must(t, other.Close()) // its lock is lost; it goes on all the same

	s, err := OpenDir(dir, "job", "0-of-1")
	must(t, err)
	defer s.Close()
	_, err = Rewind(t.Context(), s, before, 1, func(older, _ Manifest) ([]NamedState, error) { return older.States, nil })
	if !errors.Is(err, ErrFenced) {
		t.Errorf("Rewind = %v", err)
	}
	now, err := s.NewestEpoch(t.Context())
	must(t, err)
	m, err := s.Latest(t.Context())
	must(t, err)
	if now != epoch || m.ID != 2 {
		t.Errorf("epoch %d, was %d; newest checkpoint %d", now, epoch, m.ID)
	}
}

// silent is a source that declares nothing.
type silent struct{ Participant }

func (silent) Name() string { return "rows" }

// telling declares what it is told to.
type telling struct {
	silent
	rewindable bool
}

func (s telling) Rewindable() bool { return s.rewindable }

func TestRequireRewindable_TakesNothingForGranted(t *testing.T) {
	for _, p := range []Participant{silent{}, telling{}} {
		if err := RequireRewindable(p); !errors.Is(err, ErrNotRewindable) || err.Error() != "rows: the source cannot give its rows again" {
			t.Errorf("%v", err)
		}
	}
	must(t, RequireRewindable(telling{rewindable: true}))
}
