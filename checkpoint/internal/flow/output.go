// Package flow is a job as small as it can be, for tests of checkpoint stores: a source of numbered rows and a sink of files of them,
// and what a reader of those files sees, whatever dies.
package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/sluice-go/sluice/checkpoint"
)

// Output is what is outside of all processes: published files stay, whatever happens to processes and machines. It notes what must
// not happen. It is safe for concurrent use.
type Output struct {
	mu        sync.Mutex
	files     map[string]rows        // by name
	durable   map[checkpoint.ID]bool // a Save has returned, or a Restore has found it
	published checkpoint.ID          // the newest checkpoint that published something
	order     map[string]checkpoint.ID
	epochs    map[string]bool
	wrong     []error
}

// rows are numbers, from inclusive, to exclusive.
type rows struct{ From, To int }

// NewOutput returns an output in which nothing is published.
func NewOutput() *Output {
	return &Output{
		files: make(map[string]rows), durable: make(map[checkpoint.ID]bool),
		order: make(map[string]checkpoint.ID), epochs: make(map[string]bool),
	}
}

// Newest returns the newest checkpoint that is known to be durable, and the newest one that published something.
func (o *Output) Newest() (durable, published checkpoint.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id := range o.durable {
		durable = max(durable, id)
	}
	return durable, o.published
}

// Check returns everything that went wrong, and whether the rows [0, n) of the flow of this name are published, each once.
func (o *Output) Check(flow string, n int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []string
	for name := range o.files {
		if strings.HasPrefix(name, flow+"-") {
			all = append(all, name)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return o.files[a].From - o.files[b].From })
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

func (o *Output) saved(id checkpoint.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.durable[id] = true
}

// begun notes that a flow has an epoch. Names of files contain it, so none may be given twice.
func (o *Output) begun(run string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.epochs[run] {
		o.wrong = append(o.wrong, fmt.Errorf("the epoch of %s was given twice", run))
	}
	o.epochs[run] = true
}

// publish makes a file of a flow and epoch visible, idempotently.
func (o *Output) publish(run string, during checkpoint.ID, f pendingFile) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.durable[during] {
		o.wrong = append(o.wrong, fmt.Errorf("%s is published by checkpoint %d, which is not durable", f.Name, during))
	}
	if f.ID > during {
		o.wrong = append(o.wrong, fmt.Errorf("%s, staged at %d, is published by checkpoint %d", f.Name, f.ID, during))
	}
	if o.order[run] > f.ID {
		o.wrong = append(o.wrong, fmt.Errorf("%s, staged at %d, is published after a file of %d", f.Name, f.ID, o.order[run]))
	}
	o.order[run] = f.ID
	o.published = max(o.published, during)
	if old, ok := o.files[f.Name]; ok && old != f.Rows {
		o.wrong = append(o.wrong, fmt.Errorf("the name %s is used for %v and %v", f.Name, old, f.Rows))
	}
	o.files[f.Name] = f.Rows
}

// Watch returns a store that tells the output which checkpoints are durable.
func (o *Output) Watch(s checkpoint.Store) checkpoint.Store { return watchedStore{s, o} }

type watchedStore struct {
	checkpoint.Store
	output *Output
}

// Save implements checkpoint.Store.
func (s watchedStore) Save(ctx context.Context, m checkpoint.Manifest) error {
	err := s.Store.Save(ctx, m)
	if err == nil {
		s.output.saved(m.ID)
	}
	return err
}
