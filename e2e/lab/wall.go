package lab

import "time"

// Wall is a store that lets at most so many attempts through in any rolling window. Refused attempts do not count.
type Wall struct {
	Limit  int           // attempts per window
	Window time.Duration // 0 = 1 s
	// Steps change the limit at times, in their order.
	Steps []Step
	// Refusal is how an attempt is refused.
	Refusal Refusal
	Latency Latency
}

// Step is a new limit from a time on.
type Step struct {
	At    time.Duration
	Limit int
}

// Store makes the wall of one run.
func (w Wall) Store(seed uint64) Store {
	if w.Window == 0 {
		w.Window = time.Second
	}
	return &wall{Wall: w, refuser: newRefuser(w.Refusal, w.Latency, seed, 2)}
}

type wall struct {
	Wall
	*refuser
	admitted []time.Duration // a queue: times of the window, oldest at head
	head     int
}

func (w *wall) Arrive(now time.Duration, _ Attempt) Answer {
	for len(w.Steps) > 0 && now >= w.Steps[0].At {
		w.Limit, w.Steps = w.Steps[0].Limit, w.Steps[1:]
	}
	for w.head < len(w.admitted) && w.admitted[w.head] <= now-w.Window {
		w.head++
	}
	if w.head > 4096 && w.head > len(w.admitted)/2 {
		w.admitted = append(w.admitted[:0], w.admitted[w.head:]...)
		w.head = 0
	}
	if len(w.admitted)-w.head >= w.Limit {
		return w.refuse()
	}
	w.admitted = append(w.admitted, now)
	return w.answer(OK)
}
