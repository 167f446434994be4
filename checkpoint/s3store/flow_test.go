package s3store

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

	"github.com/sluice-go/sluice/checkpoint"
)

// output is what readers see: published files stay, whatever happens to processes.
type output struct {
	mu        sync.Mutex
	files     map[string]rows        // by name
	durable   map[checkpoint.ID]bool // a Save has returned, or a Restore has found it
	committed checkpoint.ID          // the newest checkpoint that published something
	wrong     []error
}

// rows are numbers, from inclusive, to exclusive.
type rows struct{ From, To int }

func newOutput() *output {
	return &output{files: make(map[string]rows), durable: make(map[checkpoint.ID]bool)}
}

func (o *output) saved(id checkpoint.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.durable[id] = true
}

// newest returns the newest checkpoint known to be durable and the newest one that published something.
func (o *output) newest() (durable, published checkpoint.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id := range o.durable {
		durable = max(durable, id)
	}
	return durable, o.committed
}

// publish makes a file visible, idempotently, and notes what must not happen.
func (o *output) publish(during checkpoint.ID, f pendingFile) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.durable[during] {
		o.wrong = append(o.wrong, fmt.Errorf("%s is published by checkpoint %d, which is not durable", f.Name, during))
	}
	if f.ID > during {
		o.wrong = append(o.wrong, fmt.Errorf("%s, staged at %d, is published by checkpoint %d", f.Name, f.ID, during))
	}
	o.committed = max(o.committed, during)
	if old, ok := o.files[f.Name]; ok && old != f.Rows {
		o.wrong = append(o.wrong, fmt.Errorf("the name %s is used for %v and %v", f.Name, old, f.Rows))
	}
	o.files[f.Name] = f.Rows
}

// check returns everything that went wrong, and whether the rows [0, n) are published, each once.
func (o *output) check(n int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make([]string, 0, len(o.files))
	for name := range o.files {
		all = append(all, name)
	}
	sort.Slice(all, func(i, j int) bool { return o.files[all[i]].From < o.files[all[j]].From })
	errs := slices.Clone(o.wrong)
	at := 0
	for _, name := range all {
		if r := o.files[name]; r.From != at {
			errs = append(errs, fmt.Errorf("%s has rows %v where row %d is next", name, r, at))
		}
		at = o.files[name].To
	}
	if at != n {
		errs = append(errs, fmt.Errorf("rows up to %d are published, not up to %d", at, n))
	}
	return errors.Join(errs...)
}

// flow is a source of numbered rows and a sink of files of them, as small as it can be: every second barrier closes the open file. The rows of
// the open file, and those of files that are not published, are blobs of the checkpoint.
type flow struct {
	out *output

	mu      sync.Mutex
	epoch   int64
	files   int
	state   flowState
	barrier int
	stored  map[string]string // refs that the last snapshot has for pending files
}

type flowState struct {
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

func (r rows) text() string {
	var b strings.Builder
	for i := r.From; i < r.To; i++ {
		fmt.Fprintf(&b, "row %d\n", i)
	}
	return b.String()
}

func (f *flow) Name() string { return "flow" }

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

func (f *flow) Capture(id checkpoint.ID) (checkpoint.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.barrier++; f.barrier%2 == 0 && f.state.Open.To > f.state.Open.From {
		f.files++
		name := fmt.Sprintf("file-%d-%d", f.epoch, f.files)
		f.state.Pending = append(f.state.Pending, pendingFile{Name: name, Rows: f.state.Open, ID: id})
		f.state.Open.From = f.state.Open.To
	}
	s := f.state
	s.Pending = slices.Clone(s.Pending)
	return &flowSnapshot{f: f, state: s}, nil
}

type flowSnapshot struct {
	f     *flow
	state flowState
}

func (s *flowSnapshot) Store(ctx context.Context, b checkpoint.Blobs) ([]byte, []string, error) {
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
}

func (f *flow) Commit(ctx context.Context, id checkpoint.ID) error {
	if ctx.Err() != nil {
		return ctx.Err() // a process that was killed publishes nothing
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, p := range f.state.Pending { // the checkpoint is durable, and so are its blobs
		if ref := f.stored[p.Name]; ref != "" {
			f.state.Pending[i].Ref = ref
		}
	}
	f.stored = nil
	for len(f.state.Pending) > 0 && f.state.Pending[0].ID <= id {
		f.out.publish(id, f.state.Pending[0])
		f.state.Pending = f.state.Pending[1:]
	}
	return nil
}

func (f *flow) Restore(ctx context.Context, r checkpoint.Restored) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.epoch = r.Epoch
	if r.State == nil {
		return nil
	}
	f.out.saved(r.ID)
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

// watchedStore tells the output which checkpoints are durable.
type watchedStore struct {
	checkpoint.Store
	out *output
}

func (s watchedStore) Save(ctx context.Context, m checkpoint.Manifest) error {
	err := s.Store.Save(ctx, m)
	if err == nil {
		s.out.saved(m.ID)
	}
	return err
}

// job is a run of the flow in a process.
type job struct {
	p     *proc
	c     *checkpoint.Coordinator
	store *Store
	flow  *flow
}

// run restores a job in a process.
func (p *proc) run(retain int) (*job, checkpoint.ID, error) {
	j := &job{p: p, store: p.open(), flow: &flow{out: p.w.out}}
	var err error
	j.c, err = checkpoint.NewCoordinator(watchedStore{j.store, p.w.out}, checkpoint.Options{Retain: retain}, j.flow)
	if err != nil {
		return nil, 0, err
	}
	id, err := j.c.Restore(p.ctx)
	return j, id, err
}

// write produces n rows.
func (j *job) write(n int) error {
	for range n {
		if err := j.c.Step(j.p.ctx, j.flow.write); err != nil {
			return err
		}
	}
	return nil
}

// checkpoints writes two rows and takes a checkpoint, n times.
func (j *job) checkpoints(n int) error {
	for range n {
		if err := j.write(2); err != nil {
			return err
		}
		if _, err := j.c.Trigger(j.p.ctx); err != nil {
			return err
		}
	}
	return nil
}

// close ends the run without a checkpoint.
func (j *job) close() error { return errors.Join(j.c.Close(context.Background()), j.store.Close()) }

// finish takes checkpoints until everything is published, closes, and checks the output.
func (j *job) finish() error {
	for range 2 { // every second barrier closes the open file
		if _, err := j.c.Trigger(j.p.ctx); err != nil {
			return err
		}
	}
	if err := j.close(); err != nil {
		return err
	}
	return j.p.w.out.check(j.flow.position())
}

// script is a run of n checkpoints. It returns at the first error.
func (p *proc) script(n int) error {
	j, _, err := p.run(2)
	if err == nil {
		err = j.checkpoints(n)
	}
	if err != nil {
		return err
	}
	return j.close()
}

// goOn restarts after a crash, runs on, and checks that every row was published once.
func (w *world) goOn() error {
	durable, published := w.out.newest()
	j, id, err := w.start().run(2)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if id < durable || id > durable+1 || id < published {
		return fmt.Errorf("restored checkpoint %d where %d was saved and %d was published", id, durable, published)
	}
	if err := j.write(2); err != nil {
		return err
	}
	return j.finish()
}
