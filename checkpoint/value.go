package checkpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
)

// Value is a participant that keeps one value, such as the position of a source, in every checkpoint as JSON. Read and change it
// inside steps: then a checkpoint holds it together with the effects of the same step. Safe for concurrent use.
type Value[T any] struct {
	name string

	mu    sync.Mutex
	value T
}

var _ Participant = (*Value[int])(nil)

// NewValue returns a value that is initial until Restore finds another one. T must survive encoding/json.
func NewValue[T any](name string, initial T) *Value[T] {
	return &Value[T]{name: name, value: initial}
}

// Get returns the value.
func (v *Value[T]) Get() T {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.value
}

// Set replaces the value. What it refers to must not be changed afterwards.
func (v *Value[T]) Set(value T) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.value = value
}

// Name implements Participant.
func (v *Value[T]) Name() string { return v.name }

// Capture implements Participant.
func (v *Value[T]) Capture(ID) (Snapshot, error) { return valueSnapshot[T]{v.Get()}, nil }

// Commit implements Participant: there is nothing to publish.
func (v *Value[T]) Commit(context.Context, ID) error { return nil }

// Restore implements Participant.
func (v *Value[T]) Restore(_ context.Context, r Restored) error {
	if r.State == nil {
		return nil
	}
	var value T
	if err := json.Unmarshal(r.State, &value); err != nil {
		return fmt.Errorf("value %s: %w", v.name, err)
	}
	v.Set(value)
	return nil
}

// valueSnapshot is the value at the barrier.
type valueSnapshot[T any] struct{ value T }

func (s valueSnapshot[T]) Store(context.Context, Blobs) ([]byte, []string, error) {
	text, err := json.Marshal(s.value)
	return text, nil, err
}

func (s valueSnapshot[T]) Discard() {}
