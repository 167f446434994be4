package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/sluice-go/sluice/checkpoint"
)

// Flow is a source of numbered rows and a sink of files of them: every second barrier closes the open file. A tail of rows that is not
// in a file yet, and the rows of files that are not published, are blobs of the checkpoint. One Flow belongs to one run.
type Flow struct {
	// Fail is asked before each phase ("capture", "store", "commit") whether it fails. It may be nil.
	Fail func(phase string, id checkpoint.ID) error
	// Log is told each call of the coordinator. It may be nil.
	Log func(line string)

	name   string
	output *Output

	mu      sync.Mutex
	epoch   int64
	files   int
	state   state
	barrier int
	stored  map[string]string // refs that the last snapshot has for pending files
}

type state struct {
	Open    rows          `json:"open"` // the open file's rows; To is the position of the source
	Tail    string        `json:"tail,omitempty"`
	Pending []pendingFile `json:"pending,omitempty"`
}

type pendingFile struct {
	Name string        `json:"name"`
	Rows rows          `json:"rows"`
	ID   checkpoint.ID `json:"id"` // the checkpoint it was staged in
	Ref  string        `json:"ref,omitempty"`
}

var _ checkpoint.Participant = (*Flow)(nil)

// New returns the flow of a name, without a hyphen, for a new run.
func New(name string, o *Output) *Flow { return &Flow{name: name, output: o} }

// Write is a step of the data flow: one row.
func (f *Flow) Write() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.Open.To++
	return nil
}

// Rows returns how many rows there have been since the very first run.
func (f *Flow) Rows() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.Open.To
}

// Epoch returns the epoch of the run, once it is restored.
func (f *Flow) Epoch() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.epoch
}

// Check says whether exactly the rows that were written are published.
func (f *Flow) Check() error { return f.output.Check(f.name, f.Rows()) }

// run is the name of the flow in its epoch.
func (f *Flow) run() string { return fmt.Sprintf("%s-%d", f.name, f.epoch) }

func (f *Flow) enter(phase string, id checkpoint.ID) error {
	f.note(phase, id)
	if f.Fail == nil {
		return nil
	}
	return f.Fail(phase, id)
}

func (f *Flow) note(what string, id checkpoint.ID) {
	if f.Log != nil {
		f.Log(fmt.Sprintf("%s %s %d", f.name, what, id))
	}
}

// Name implements checkpoint.Participant.
func (f *Flow) Name() string { return f.name }

// Capture implements checkpoint.Participant.
func (f *Flow) Capture(id checkpoint.ID) (checkpoint.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("capture", id); err != nil {
		return nil, err
	}
	if f.barrier++; f.barrier%2 == 0 && f.state.Open.To > f.state.Open.From {
		f.files++
		name := fmt.Sprintf("%s-%d", f.run(), f.files)
		f.state.Pending = append(f.state.Pending, pendingFile{Name: name, Rows: f.state.Open, ID: id})
		f.state.Open.From = f.state.Open.To
	}
	s := f.state
	s.Pending = slices.Clone(s.Pending)
	return &snapshot{f: f, id: id, state: s}, nil
}

// Commit implements checkpoint.Participant.
func (f *Flow) Commit(ctx context.Context, id checkpoint.ID) error {
	if ctx.Err() != nil {
		return ctx.Err() // a process that was killed publishes nothing
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("commit", id)
	for i, p := range f.state.Pending { // the checkpoint is durable, and so are its blobs
		if ref := f.stored[p.Name]; ref != "" {
			f.state.Pending[i].Ref = ref
		}
	}
	f.stored = nil
	for len(f.state.Pending) > 0 && f.state.Pending[0].ID <= id {
		if f.Fail != nil {
			if err := f.Fail("commit", id); err != nil {
				return err
			}
		}
		f.output.publish(f.run(), id, f.state.Pending[0])
		f.state.Pending = f.state.Pending[1:]
	}
	return nil
}

// Restore implements checkpoint.Participant.
func (f *Flow) Restore(ctx context.Context, r checkpoint.Restored) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("restore", r.ID)
	f.epoch = r.Epoch
	f.output.begun(f.run())
	if r.ID != 0 {
		f.output.saved(r.ID)
	}
	if r.State == nil {
		return nil
	}
	if err := json.Unmarshal(r.State, &f.state); err != nil {
		return err
	}
	if open := f.state.Open; open.To > open.From {
		if err := readRows(ctx, r.Blobs, f.state.Tail, open); err != nil {
			return err
		}
	}
	f.state.Tail = ""
	for _, p := range f.state.Pending {
		if err := readRows(ctx, r.Blobs, p.Ref, p.Rows); err != nil {
			return err
		}
	}
	return nil
}

type snapshot struct {
	f     *Flow
	id    checkpoint.ID
	state state
}

// Store implements checkpoint.Snapshot.
func (s *snapshot) Store(ctx context.Context, b checkpoint.Blobs) ([]byte, []string, error) {
	if err := s.f.enter("store", s.id); err != nil {
		return nil, nil, err
	}
	var refs []string
	put := func(r rows) (string, error) {
		text := r.text()
		ref, err := b.Put(ctx, strings.NewReader(text), int64(len(text)))
		refs = append(refs, ref)
		return ref, err
	}
	var err error
	if s.state.Open.To > s.state.Open.From {
		if s.state.Tail, err = put(s.state.Open); err != nil {
			return nil, nil, err
		}
	}
	stored := make(map[string]string)
	for i, p := range s.state.Pending {
		if p.Ref != "" {
			refs = append(refs, p.Ref) // carried over from an older checkpoint
		} else if p.Ref, err = put(p.Rows); err != nil {
			return nil, nil, err
		}
		s.state.Pending[i] = p
		stored[p.Name] = p.Ref
	}
	s.f.mu.Lock()
	s.f.stored = stored
	s.f.mu.Unlock()
	data, err := json.Marshal(s.state)
	return data, refs, err
}

// Discard implements checkpoint.Snapshot.
func (s *snapshot) Discard() {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.f.stored = nil
	s.f.note("discard", s.id)
}

func (r rows) text() string {
	var b strings.Builder
	for i := r.From; i < r.To; i++ {
		fmt.Fprintf(&b, "row %d\n", i)
	}
	return b.String()
}

func readRows(ctx context.Context, b checkpoint.Blobs, ref string, want rows) error {
	in, err := b.Open(ctx, ref)
	if err != nil {
		return err
	}
	defer in.Close()
	data, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if string(data) != want.text() {
		return fmt.Errorf("blob %s has %q, not rows %v", ref, data, want)
	}
	return nil
}
