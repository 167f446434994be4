package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"sync"
)

// world is what is outside of all processes: published files stay, whatever happens to machines.
type world struct {
	mu        sync.Mutex
	files     map[string]rows // by name
	durable   map[ID]bool     // a Save has returned, or a Restore has found it
	committed ID              // the newest checkpoint that published something
	order     map[string]ID   // per participant and epoch: the checkpoint of the last published file
	epochs    map[string]bool // per participant: names of files contain the epoch, so none may be given twice
	wrong     []error
}

// rows are numbers, from inclusive, to exclusive.
type rows struct{ From, To int }

func newWorld() *world {
	return &world{files: make(map[string]rows), durable: make(map[ID]bool), order: make(map[string]ID), epochs: make(map[string]bool)}
}

func (w *world) saved(id ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.durable[id] = true
}

func (w *world) begun(who string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.epochs[who] {
		w.wrong = append(w.wrong, fmt.Errorf("the epoch of %s was given twice", who))
	}
	w.epochs[who] = true
}

func (w *world) newest() (newest ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.durable {
		newest = max(newest, id)
	}
	return newest
}

// publish makes a file visible, idempotently, and notes what must not happen.
func (w *world) publish(who string, during ID, f pendingFile) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.durable[during] {
		w.wrong = append(w.wrong, fmt.Errorf("%s is published by checkpoint %d, which is not durable", f.Name, during))
	}
	if f.ID > during {
		w.wrong = append(w.wrong, fmt.Errorf("%s, staged at %d, is published by checkpoint %d", f.Name, f.ID, during))
	}
	if w.order[who] > f.ID {
		w.wrong = append(w.wrong, fmt.Errorf("%s, staged at %d, is published after a file of %d", f.Name, f.ID, w.order[who]))
	}
	w.order[who] = f.ID
	w.committed = max(w.committed, during)
	if old, ok := w.files[f.Name]; ok && old != f.Rows {
		w.wrong = append(w.wrong, fmt.Errorf("the name %s is used for %v and %v", f.Name, old, f.Rows))
	}
	w.files[f.Name] = f.Rows
}

// check returns everything that went wrong, and whether the rows [0, n) of the participant are published, each once.
func (w *world) check(participant string, n int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]string, 0, len(w.files))
	for name := range w.files {
		if strings.HasPrefix(name, participant+"-") {
			all = append(all, name)
		}
	}
	sort.Slice(all, func(i, j int) bool { return w.files[all[i]].From < w.files[all[j]].From })
	errs := slices.Clone(w.wrong)
	at := 0
	for _, name := range all {
		if r := w.files[name]; r.From != at {
			errs = append(errs, fmt.Errorf("%s has rows %v where row %d is next", name, r, at))
		}
		at = w.files[name].To
	}
	if at != n {
		errs = append(errs, fmt.Errorf("rows up to %d are published, not up to %d", at, n))
	}
	return errors.Join(errs...)
}

// flow is a source of numbered rows and a sink of files of them, as small as it can be: every second barrier closes the open file. A tail
// of rows that is not in a file yet, and the rows of files that are not published, are blobs of the checkpoint.
type flow struct {
	name  string
	world *world
	fail  func(what string, id ID) error // may be nil

	mu      sync.Mutex
	epoch   int64
	files   int
	state   flowState
	barrier int
	stored  map[string]string // refs that snapshot storedID has for pending files
	log     *[]string         // may be nil
}

type flowState struct {
	Open    rows          `json:"open"` // the open file's rows; To is the position of the source
	Tail    string        `json:"tail,omitempty"`
	Pending []pendingFile `json:"pending,omitempty"`
}

type pendingFile struct {
	Name string `json:"name"`
	Rows rows   `json:"rows"`
	ID   ID     `json:"id"` // the checkpoint it was staged in
	Ref  string `json:"ref,omitempty"`
}

func (r rows) text() string {
	var b strings.Builder
	for i := r.From; i < r.To; i++ {
		fmt.Fprintf(&b, "row %d\n", i)
	}
	return b.String()
}

func (f *flow) note(format string, args ...any) {
	if f.log != nil {
		*f.log = append(*f.log, f.name+" "+fmt.Sprintf(format, args...))
	}
}

func (f *flow) failing(what string, id ID) error {
	if f.fail == nil {
		return nil
	}
	return f.fail(what, id)
}

func (f *flow) Name() string { return f.name }

// write is a step of the data flow: one row.
func (f *flow) write() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.Open.To++
	return nil
}

func (f *flow) position() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.Open.To
}

func (f *flow) Capture(id ID) (Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("capture %d", id)
	if err := f.failing("capture", id); err != nil {
		return nil, err
	}
	if f.barrier++; f.barrier%2 == 0 && f.state.Open.To > f.state.Open.From {
		f.files++
		name := fmt.Sprintf("%s-%d-%d", f.name, f.epoch, f.files)
		f.state.Pending = append(f.state.Pending, pendingFile{Name: name, Rows: f.state.Open, ID: id})
		f.state.Open.From = f.state.Open.To
	}
	s := f.state
	s.Pending = slices.Clone(s.Pending)
	return &flowSnapshot{f: f, id: id, state: s}, nil
}

type flowSnapshot struct {
	f     *flow
	id    ID
	state flowState
}

func (s *flowSnapshot) Store(ctx context.Context, b Blobs) ([]byte, []string, error) {
	s.f.note("store %d", s.id)
	if err := s.f.failing("store", s.id); err != nil {
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

func (s *flowSnapshot) Discard() {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.f.stored = nil
	s.f.note("discard %d", s.id)
}

func (f *flow) Commit(_ context.Context, id ID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("commit %d", id)
	for i, p := range f.state.Pending { // the checkpoint is durable, and so are its blobs
		if ref := f.stored[p.Name]; ref != "" {
			f.state.Pending[i].Ref = ref
		}
	}
	f.stored = nil
	for len(f.state.Pending) > 0 && f.state.Pending[0].ID <= id {
		if err := f.failing("commit", id); err != nil {
			return err
		}
		f.world.publish(fmt.Sprintf("%s-%d", f.name, f.epoch), id, f.state.Pending[0])
		f.state.Pending = f.state.Pending[1:]
	}
	return nil
}

func (f *flow) Restore(ctx context.Context, r Restored) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("restore %d", r.ID)
	f.epoch = r.Epoch
	f.world.begun(fmt.Sprintf("%s-%d", f.name, f.epoch))
	if r.ID != 0 {
		f.world.saved(r.ID)
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

func readRows(ctx context.Context, b Blobs, ref string, want rows) error {
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

// watchedStore tells the world which checkpoints are durable.
type watchedStore struct {
	Store
	w *world
}

func (s watchedStore) Save(ctx context.Context, m Manifest) error {
	err := s.Store.Save(ctx, m)
	if err == nil {
		s.w.saved(m.ID)
	}
	return err
}

// job is one process that runs two flows.
type job struct {
	c     *Coordinator
	store *DirStore
	flows []*flow
}

// startJob restores a new run on the file system of p.
func startJob(ctx context.Context, p files, w *world, o Options, fail func(what string, id ID) error) (*job, ID, error) {
	store, err := openDir(p, "base", "job-1", "0-of-1")
	if err != nil {
		return nil, 0, err
	}
	j := &job{store: store}
	var ps []Participant
	for _, name := range []string{"left", "right"} {
		f := &flow{name: name, world: w, fail: fail}
		j.flows = append(j.flows, f)
		ps = append(ps, f)
	}
	if j.c, err = NewCoordinator(watchedStore{store, w}, o, ps...); err != nil {
		return nil, 0, err
	}
	id, err := j.c.Restore(ctx)
	return j, id, err
}

// write lets each flow produce n rows.
func (j *job) write(ctx context.Context, n int) error {
	for range n {
		for _, f := range j.flows {
			if err := j.c.Step(ctx, f.write); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish takes checkpoints until everything is published, and closes.
func (j *job) finish(ctx context.Context) error {
	for range 2 { // every second barrier closes the open file
		if _, err := j.c.Trigger(ctx); err != nil {
			return err
		}
	}
	return errors.Join(j.c.Close(ctx), j.store.Close())
}

// check says whether exactly the rows that were produced are published.
func (j *job) check(w *world) error {
	var errs []error
	for _, f := range j.flows {
		errs = append(errs, w.check(f.name, f.position()))
	}
	return errors.Join(errs...)
}
