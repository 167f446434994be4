package lab

import "time"

// Queue is a store that refuses nobody at first: attempts wait in line for a server of Rate per second, and the latency grows with the
// line. An attempt whose client has given up keeps its place: its work is done all the same.
type Queue struct {
	Rate float64
	// RefuseAfter refuses attempts that would wait longer in line, when not 0. They do not take a place.
	RefuseAfter time.Duration
	Refusal     Refusal
	Latency     Latency // on top of the wait
}

// Store makes the queue of one run.
func (q Queue) Store(seed uint64) Store {
	return &queue{Queue: q, refuser: newRefuser(q.Refusal, q.Latency, seed, 6)}
}

type queue struct {
	Queue
	*refuser
	free time.Duration // when the server is through with the line
}

func (q *queue) Arrive(now time.Duration, _ Attempt) Answer {
	q.free = max(q.free, now)
	line := q.free - now
	if q.RefuseAfter > 0 && line > q.RefuseAfter {
		return q.refuse()
	}
	q.free += time.Duration(float64(time.Second) / q.Rate)
	a := q.answer(OK)
	a.After += q.free - now
	return a
}

// Slow makes a store Factor times as slow from one time to another.
type Slow struct {
	From, To time.Duration
	Factor   float64
	Over     func(seed uint64) Store
}

// Store makes the slow store of one run.
func (s Slow) Store(seed uint64) Store { return &slowed{Slow: s, over: s.Over(seed)} }

type slowed struct {
	Slow
	over Store
}

func (s *slowed) Arrive(now time.Duration, a Attempt) Answer {
	ans := s.over.Arrive(now, a)
	if now >= s.From && now < s.To {
		ans.After = time.Duration(float64(ans.After) * s.Factor)
	}
	return ans
}
