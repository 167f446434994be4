package lab

import (
	"math"
	"math/rand/v2"
	"time"
)

// The stores of this file are kept apart: no policy is tuned on them, they are run last. Each depends on the load in a way of its own.

// HeldOut is the scenarios on these stores.
func HeldOut() []Scenario {
	slow := Latency{Mean: 150 * time.Millisecond, Spread: 0.2}
	quick := Latency{Mean: 60 * time.Millisecond, Spread: 0.3}
	usual := Latency{Spread: 0.1}
	return []Scenario{
		{
			Name:     "held out: a limit that wanders between 100 and 500",
			Workload: Workload{Threads: 80, Duration: 5 * time.Minute},
			Store:    Wandering{Low: 100, High: 500, Every: 5 * time.Second, Stride: 0.15, Latency: usual}.Store,
			Latency:  usual,
		},
		{
			Name:     "held out: 24 at once, slower when crowded",
			Workload: Workload{Clients: 2, Threads: 40, Duration: 3 * time.Minute},
			Store:    Crowd{Slots: 24, Slowdown: 1, Latency: quick}.Store,
			Latency:  quick,
		},
		{
			Name:     "held out: 400 a second and 3,000 in ten seconds",
			Workload: Workload{Threads: 96, Duration: 3 * time.Minute},
			Store:    Tiers{{Limit: 400, Window: time.Second}, {Limit: 3000, Window: 10 * time.Second}}.Store,
			Best:     300,
		},
		{
			Name:     "held out: a soft limit with tides, 120 to 360",
			Workload: Workload{Clients: 3, Threads: 32, Duration: 5 * time.Minute},
			Store:    Tides{Low: 120, High: 360, Period: 150 * time.Second, Softness: 0.15, Latency: slow}.Store,
			Latency:  slow,
		},
	}
}

// Wandering is a token bucket of a tenth of a second's depth whose rate takes a random step every so often, between two bounds.
type Wandering struct {
	Low, High float64 // attempts per second
	Every     time.Duration
	Stride    float64 // largest step as a share of the rate, up or down
	Refusal   Refusal
	Latency   Latency
}

// Store makes the store of one run.
func (w Wandering) Store(seed uint64) Store {
	rng := rand.New(rand.NewPCG(seed, 20))
	rate := w.Low + rng.Float64()*(w.High-w.Low)
	b := Bucket{Rate: rate, Burst: rate / 10, Refusal: w.Refusal, Latency: w.Latency}
	return &wandering{Wandering: w, rng: rng, next: w.Every, bucket: b.Store(seed).(*bucket)}
}

type wandering struct {
	Wandering
	rng    *rand.Rand
	next   time.Duration
	bucket *bucket
}

func (w *wandering) Arrive(now time.Duration, a Attempt) Answer {
	for ; w.next <= now; w.next += w.Every {
		rate := w.bucket.Rate * math.Exp(w.Stride*(2*w.rng.Float64()-1))
		w.bucket.Rate = min(max(rate, w.Low), w.High)
		w.bucket.Burst = max(w.bucket.Rate/10, 1)
	}
	return w.bucket.Arrive(now, a)
}

// Crowd is a store with so many slots. An attempt that finds none is refused; the others take the longer the more slots are taken.
type Crowd struct {
	Slots    int
	Slowdown float64 // with all slots taken an answer takes 1 + Slowdown times as long as alone
	Refusal  Refusal
	Latency  Latency
}

// Store makes the store of one run.
func (c Crowd) Store(seed uint64) Store {
	return &crowd{Crowd: c, refuser: newRefuser(c.Refusal, c.Latency, seed, 21)}
}

type crowd struct {
	Crowd
	*refuser
	ends []time.Duration // of the attempts that hold a slot, in no order
}

func (c *crowd) Arrive(now time.Duration, _ Attempt) Answer {
	for i := 0; i < len(c.ends); {
		if c.ends[i] > now {
			i++
			continue
		}
		last := len(c.ends) - 1
		c.ends[i] = c.ends[last]
		c.ends = c.ends[:last]
	}
	if len(c.ends) >= c.Slots {
		return c.refuse()
	}
	a := c.answer(OK)
	a.After = time.Duration(float64(a.After) * (1 + c.Slowdown*float64(len(c.ends))/float64(c.Slots)))
	c.ends = append(c.ends, now+a.After)
	return a
}

// Tiers is a store with several rolling limits at once; an attempt must fit into all of them.
type Tiers []Tier

// Tier is one of the limits.
type Tier struct {
	Limit  int
	Window time.Duration
}

// Store makes the store of one run. Its latency and its refusals are the usual ones.
func (t Tiers) Store(seed uint64) Store {
	return &tiers{refuser: newRefuser(Refusal{}, Latency{}, seed, 22), limits: t}
}

type tiers struct {
	*refuser
	limits   Tiers
	admitted []time.Duration // as many as the largest limit looks back
}

func (t *tiers) Arrive(now time.Duration, _ Attempt) Answer {
	longest := 0
	for _, l := range t.limits {
		longest = max(longest, l.Limit)
		if n := len(t.admitted); n >= l.Limit && t.admitted[n-l.Limit] > now-l.Window {
			return t.refuse()
		}
	}
	t.admitted = append(t.admitted, now)
	if len(t.admitted) > 2*longest {
		t.admitted = append(t.admitted[:0], t.admitted[longest:]...)
	}
	return t.answer(OK)
}

// Tides is a store whose limit follows a sine, and which has no edge: within Softness of the limit the chance of a refusal grows from 0
// to 1 with the number of attempts that were let through in the last second.
type Tides struct {
	Low, High float64 // attempts per second at ebb and flood
	Period    time.Duration
	Softness  float64 // as a share of the limit, to both sides
	Refusal   Refusal
	Latency   Latency
}

// Store makes the store of one run. It begins at a moment of the period that the seed says.
func (t Tides) Store(seed uint64) Store {
	r := newRefuser(t.Refusal, t.Latency, seed, 23)
	return &tides{Tides: t, refuser: r, phase: r.rng.Float64()}
}

type tides struct {
	Tides
	*refuser
	phase    float64
	admitted []time.Duration // of the last second, oldest first
}

func (t *tides) Arrive(now time.Duration, _ Attempt) Answer {
	for len(t.admitted) > 0 && t.admitted[0] <= now-time.Second {
		t.admitted = t.admitted[1:]
	}
	turn := 2 * math.Pi * (t.phase + now.Seconds()/t.Period.Seconds())
	limit := (t.High+t.Low)/2 + (t.High-t.Low)/2*math.Sin(turn)
	load := float64(len(t.admitted)) / limit // 1 = at the limit
	if t.rng.Float64()*2*t.Softness < load-(1-t.Softness) {
		return t.refuse()
	}
	t.admitted = append(t.admitted, now)
	return t.answer(OK)
}
