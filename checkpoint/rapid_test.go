package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/checkpoint/crashfs"
	"github.com/sluice-go/sluice/checkpoint/internal/flow"
)

var errInjected = errors.New("injected")

// machine is a random history of one job: steps, checkpoints with failures in any phase, crashes of the process and of the machine,
// and zombies that come back after their successor has begun.
type machine struct {
	fs     *crashfs.Disk
	w      *flow.Output
	cur    *job
	proc   *crashfs.Process
	zombie *job
	seed   uint64

	mu       sync.Mutex     // participants store in parallel
	failing  map[string]int // phase -> how many calls from now on
	failFile int            // file operations until one fails, 0 = none
}

func (m *machine) fail(what string, _ checkpoint.ID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failing[what] > 0 {
		if m.failing[what]--; m.failing[what] == 0 {
			return fmt.Errorf("%s: %w", what, errInjected)
		}
	}
	return nil
}

// start begins a run, as often as a planned fault makes it fail.
func (m *machine) start(t *rapid.T) {
	for m.cur == nil {
		p := m.fs.Process()
		p.Hook = func(int, string, string) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.failFile > 0 {
				if m.failFile--; m.failFile == 0 {
					return syscall.EIO
				}
			}
			return nil
		}
		newest, published := m.w.Newest()
		j, id, err := startJob(t.Context(), p, m.w, checkpoint.Options{Retain: 1 + int(newest)%3}, m.fail)
		_, onlyCommit := errors.AsType[*checkpoint.CommitError](err)
		switch {
		case err != nil && !onlyCommit:
			if !errors.Is(err, syscall.EIO) {
				t.Fatalf("restore: %v", err)
			}
			p.Kill()
			continue
		case id < newest || id < published:
			t.Fatalf("restored %d where %d was saved and %d was published", id, newest, published)
		}
		m.cur, m.proc = j, p
	}
}

func (m *machine) end() {
	if m.cur != nil {
		m.proc.Kill()
	}
	m.cur = nil
}

func (m *machine) trigger(t *rapid.T, j *job) {
	before, _ := m.w.Newest()
	id, err := j.c.Trigger(t.Context())
	_, isCommit := errors.AsType[*checkpoint.CommitError](err)
	switch {
	case err == nil || isCommit:
		if id <= before {
			t.Fatalf("checkpoint %d is saved after %d", id, before)
		}
	case errors.Is(err, checkpoint.ErrFenced) || errors.Is(err, checkpoint.ErrAmbiguous):
		if j == m.cur {
			m.end()
		}
	case errors.Is(err, errInjected) || errors.Is(err, syscall.EIO):
		if id != 0 {
			t.Fatalf("abandoned checkpoint has id %d", id)
		}
	default:
		t.Fatalf("trigger: %v", err)
	}
}

func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"write": func(t *rapid.T) {
			m.start(t)
			if err := m.cur.write(t.Context(), rapid.IntRange(1, 4).Draw(t, "rows")); err != nil {
				t.Fatal(err)
			}
		},
		"checkpoint": func(t *rapid.T) {
			m.start(t)
			m.trigger(t, m.cur)
		},
		"failure": func(t *rapid.T) {
			m.failing[rapid.SampledFrom([]string{"capture", "store", "commit"}).Draw(t, "phase")] = rapid.IntRange(1, 3).Draw(t, "call")
		},
		"file fault":   func(t *rapid.T) { m.failFile = rapid.IntRange(1, 60).Draw(t, "operation") },
		"kill process": func(*rapid.T) { m.end() },
		"crash machine": func(t *rapid.T) {
			m.end()
			m.zombie = nil
			m.seed = rapid.Uint64().Draw(t, "what survives")
			m.fs.Crash(rand.New(rand.NewPCG(m.seed, 0)))
		},
		"leave a zombie": func(t *rapid.T) {
			m.start(t)
			m.fs.LockBroken = true
			m.zombie, m.cur = m.cur, nil
			m.start(t)
		},
		"zombie writes and checkpoints": func(t *rapid.T) {
			if m.zombie == nil {
				t.Skip()
			}
			if err := m.zombie.write(t.Context(), 2); err == nil {
				m.trigger(t, m.zombie)
			}
		},
	}
}

func TestProperty_WhateverHappens_EveryRowIsPublishedOnceAndInOrderAfterItIsDurable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{fs: crashfs.New("base"), w: flow.NewOutput(), failing: make(map[string]int)}
		t.Repeat(m.actions())
		clear(m.failing)
		m.failFile = 0
		m.end()
		m.start(t)
		if err := m.cur.finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := m.cur.check(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestCoordinator_CallsParticipantsInOrder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	m, w := crashfs.New("base"), flow.NewOutput()
	run := func(steps func(c *checkpoint.Coordinator)) (log []string) {
		store, err := openStore(m.Process())
		must(t, err)
		defer store.Close()
		// The phase Store runs in parallel: only one participant makes its order in the log certain.
		f := flow.New("left", w)
		f.Log = func(line string) { log = append(log, line) }
		c, err := checkpoint.NewCoordinator(w.Watch(store), checkpoint.Options{}, f)
		must(t, err)
		_, err = c.Restore(ctx)
		must(t, err)
		steps(c)
		must(t, c.Close(ctx))
		return log
	}
	trigger := func(c *checkpoint.Coordinator) {
		if _, err := c.Trigger(ctx); err != nil {
			t.Error(err)
		}
	}
	got := run(func(c *checkpoint.Coordinator) { trigger(c); trigger(c) })
	want := []string{"left restore 0", "left capture 1", "left store 1", "left commit 1", "left capture 2", "left store 2", "left commit 2"}
	if !slices.Equal(got, want) {
		t.Errorf("first run: %q, want %q", got, want)
	}
	got = run(trigger)
	want = []string{"left restore 2", "left commit 2", "left capture 3", "left store 3", "left commit 3"}
	if !slices.Equal(got, want) {
		t.Errorf("second run: %q, want %q", got, want)
	}
}
