package lab

import "time"

// Refusal says how a store refuses an attempt. The zero value is a plain 503 SlowDown.
type Refusal struct {
	// Closed is the share of refusals that close the connection instead of answering 503: 0 = none, 1 = all.
	Closed float64
	// RetryAfter is the header of the 503s, 0 = none.
	RetryAfter time.Duration
}

// refuser draws answers of both sorts.
type refuser struct {
	*clock
	r Refusal
}

func newRefuser(r Refusal, l Latency, seed, salt uint64) *refuser {
	return &refuser{clock: newClock(l, seed, salt), r: r}
}

func (r *refuser) refuse() Answer {
	if r.r.Closed > 0 && r.rng.Float64() < r.r.Closed {
		return r.answer(Closed)
	}
	a := r.answer(Throttle)
	a.RetryAfter = r.r.RetryAfter
	return a
}
