package retrymode

import "context"

// slots bounds the attempts in flight. Waiters of a lane are served in order of arrival, and a waiter costs nothing but its own goroutine.
type slots struct {
	main     chan struct{}
	priority chan struct{}
}

func newSlots(main, priority int) *slots {
	return &slots{main: make(chan struct{}, main), priority: make(chan struct{}, priority)}
}

// acquire takes a slot and returns the lane it belongs to, to be given back by release. A priority attempt may use any free slot, so that a
// burst of HEADs is not held to the few reserved ones while the main lane is idle; the main lane never touches the reserved ones.
func (s *slots) acquire(ctx context.Context, priority bool) (lane chan struct{}, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !priority {
		select {
		case s.main <- struct{}{}:
			return s.main, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	select {
	case s.priority <- struct{}{}:
		return s.priority, nil
	default:
	}
	select {
	case s.priority <- struct{}{}:
		return s.priority, nil
	case s.main <- struct{}{}:
		return s.main, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// free takes a slot if there is one at once and ctx has not ended; otherwise it returns nil.
func (s *slots) free(ctx context.Context, priority bool) (lane chan struct{}) {
	if ctx.Err() != nil {
		return nil
	}
	if priority {
		select {
		case s.priority <- struct{}{}:
			return s.priority
		default:
		}
	}
	select {
	case s.main <- struct{}{}:
		return s.main
	default:
		return nil
	}
}

// release gives a slot back. It never blocks.
func (s *slots) release(lane chan struct{}) { <-lane }

// inFlight is the number of slots taken.
func (s *slots) inFlight() int { return len(s.main) + len(s.priority) }

type priorityKey struct{}

// WithPriority marks calls made with the returned context, such as the PutObject of a checkpoint or of a commit record, for the priority lane of the
// in-flight limit. It has no effect on the limiter.
func WithPriority(ctx context.Context) context.Context {
	return context.WithValue(ctx, priorityKey{}, true)
}

// hasPriority reports whether an attempt uses the priority lane: the calls that publish or settle an upload, and whatever the caller marked.
func hasPriority(ctx context.Context, operation string) bool {
	switch operation {
	case opComplete, "HeadObject", "AbortMultipartUpload":
		return true
	}
	marked, _ := ctx.Value(priorityKey{}).(bool)
	return marked
}
