package lab

import "time"

// Scaling is a wall that grows under load, as S3 does when it splits a partition: after enough busy seconds its limit doubles.
type Scaling struct {
	Limit int // attempts per rolling second at the start
	Max   int // that it grows to
	// After is how long the load must last; 0 = 2 min. A second counts as busy when at least 80 % of the limit was let through; every
	// other second takes a busy one back.
	After time.Duration
	// NeedsRefusals makes a second busy only when there was a refusal in it or in the ten seconds before it.
	NeedsRefusals bool
	Refusal       Refusal
	Latency       Latency
}

const (
	defaultScaleAfter = 2 * time.Minute
	busyShare         = 0.8
	refusalMemory     = 10 // seconds
)

// Store makes the scaling store of one run.
func (s Scaling) Store(seed uint64) Store {
	if s.After == 0 {
		s.After = defaultScaleAfter
	}
	return &scaling{
		Scaling: s,
		wall:    Wall{Limit: s.Limit, Refusal: s.Refusal, Latency: s.Latency}.Store(seed).(*wall),
		refused: -refusalMemory - 1,
	}
}

type scaling struct {
	Scaling
	wall     *wall
	second   int // that admitted belongs to
	admitted int
	refused  int // second of the last refusal
	busy     int // seconds
}

func (s *scaling) Arrive(now time.Duration, a Attempt) Answer {
	for s.second < int(now/time.Second) {
		s.close()
	}
	ans := s.wall.Arrive(now, a)
	if ans.Kind == OK {
		s.admitted++
	} else {
		s.refused = s.second
	}
	return ans
}

// close ends a second.
func (s *scaling) close() {
	busy := float64(s.admitted) >= busyShare*float64(s.wall.Limit)
	if s.NeedsRefusals && s.second-s.refused > refusalMemory {
		busy = false
	}
	if busy {
		s.busy++
	} else {
		s.busy = max(s.busy-1, 0)
	}
	if time.Duration(s.busy)*time.Second >= s.After {
		s.busy = 0
		s.wall.Limit = min(2*s.wall.Limit, max(s.Max, s.Limit))
	}
	s.admitted = 0
	s.second++
}
