package retrymode

import "context"

// limiter paces attempts. It is the seam behind which adaptive mode keeps its algorithm: the retryer knows nothing else about it.
// Implementations are safe for concurrent use.
type limiter interface {
	// Wait blocks until the attempt may be sent and returns the function that must be told, exactly once, what became of it.
	// When ctx ends first, Wait returns its error, has taken nothing, and done is nil.
	Wait(ctx context.Context, a attempt) (done func(outcome), err error)
}

// attempt describes one attempt that is about to be sent. ctx of Wait carries everything else that the SDK knows about the call.
type attempt struct {
	operation string // SDK name, "PutObject"
	first     bool   // not a retry
}

// outcome is what became of an attempt.
type outcome struct {
	sent  bool  // false: given up before it was sent (no slot in time, body not rewindable); nothing was learnt about the store
	class Class // 0 = success
	// lost: no answer came back (connection closed, reset or timed out). A store that sheds load this way never says 503.
	lost bool
}

// unlimited is the limiter of standard mode.
type unlimited struct{}

var _ limiter = unlimited{}

func (unlimited) Wait(ctx context.Context, _ attempt) (func(outcome), error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return func(outcome) {}, nil
}
