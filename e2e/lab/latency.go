package lab

import (
	"math/rand/v2"
	"time"
)

// Latency is how long a store takes to answer.
type Latency struct {
	// Mean of an answer; 0 = 100 ms.
	Mean time.Duration
	// Spread as a share of Mean, to both sides and even; 0 = 0.02, negative = none.
	Spread float64
	// Refused is the mean of an answer that refuses; 0 = Mean.
	Refused time.Duration
}

const (
	defaultLatency = 100 * time.Millisecond
	defaultSpread  = 0.02
)

// clock draws latencies.
type clock struct {
	l   Latency
	rng *rand.Rand
}

func newClock(l Latency, seed, salt uint64) *clock {
	if l.Mean == 0 {
		l.Mean = defaultLatency
	}
	if l.Refused == 0 {
		l.Refused = l.Mean
	}
	switch {
	case l.Spread == 0:
		l.Spread = defaultSpread
	case l.Spread < 0:
		l.Spread = 0
	}
	return &clock{l: l, rng: rand.New(rand.NewPCG(seed, salt))}
}

func (c *clock) draw(mean time.Duration) time.Duration {
	return time.Duration(float64(mean) * (1 + c.l.Spread*(2*c.rng.Float64()-1)))
}

// answer is the answer of kind k after the usual time.
func (c *clock) answer(k Kind) Answer {
	mean := c.l.Mean
	if k != OK {
		mean = c.l.Refused
	}
	return Answer{Kind: k, After: c.draw(mean)}
}

// Calm is a store that answers every attempt with OK after its latency.
func Calm(l Latency) func(seed uint64) Store {
	return func(seed uint64) Store { return calm{newClock(l, seed, 1)} }
}

type calm struct{ *clock }

func (c calm) Arrive(time.Duration, Attempt) Answer { return c.answer(OK) }
