package lab

import (
	"math/rand/v2"
	"time"
)

// The stores of this file refuse some attempts without regard to the load, and hand the others to the store they are over.

// faulty asks hit about every attempt.
type faulty struct {
	*refuser
	over Store
	hit  func(now time.Duration, a Attempt) bool
}

func (f *faulty) Arrive(now time.Duration, a Attempt) Answer {
	if f.hit(now, a) {
		return f.refuse()
	}
	return f.over.Arrive(now, a)
}

// Fault is what the faulty stores have in common.
type Fault struct {
	Refusal Refusal
	Latency Latency // of refusals, and of all answers when Over is nil
	// Over takes the attempts that are not refused; nil = Calm.
	Over func(seed uint64) Store
}

func (f Fault) store(seed, salt uint64, hit func(now time.Duration, a Attempt) bool) Store {
	over := f.Over
	if over == nil {
		over = Calm(f.Latency)
	}
	return &faulty{refuser: newRefuser(f.Refusal, f.Latency, seed, salt), over: over(seed), hit: hit}
}

// Outage refuses everything from one time to another.
type Outage struct {
	From, To time.Duration
	Fault
}

// Store makes the store of one run.
func (o Outage) Store(seed uint64) Store {
	return o.store(seed, 7, func(now time.Duration, _ Attempt) bool { return now >= o.From && now < o.To })
}

// Drip refuses one attempt every so often, or some: the first after each tick.
type Drip struct {
	Every time.Duration
	N     int           // attempts refused after each tick; 0 = 1
	From  time.Duration // of the first tick; 0 = Every
	Fault
}

// Store makes the store of one run.
func (d Drip) Store(seed uint64) Store {
	next := d.From
	if next == 0 {
		next = d.Every
	}
	left := 0
	return d.store(seed, 8, func(now time.Duration, _ Attempt) bool {
		if now >= next {
			left = max(d.N, 1)
		}
		for next <= now {
			next += d.Every
		}
		if left == 0 {
			return false
		}
		left--
		return true
	})
}

// FirstAfter refuses the first N attempts after a time.
type FirstAfter struct {
	At time.Duration
	N  int
	// OnlyClient restricts it to the attempts of one client, counted from 1; 0 = of all.
	OnlyClient int
	Fault
}

// Store makes the store of one run.
func (f FirstAfter) Store(seed uint64) Store {
	left := f.N
	return f.store(seed, 9, func(now time.Duration, a Attempt) bool {
		if now < f.At || left == 0 || f.OnlyClient > 0 && a.Client != f.OnlyClient-1 {
			return false
		}
		left--
		return true
	})
}

// OncePerBurst refuses one attempt of every burst: the first one after a moment that is drawn anew for each burst. A burst begins with an
// attempt after a rest.
type OncePerBurst struct {
	Rest   time.Duration // without attempts, which ends a burst; 0 = 5 s
	Within time.Duration // of the start of the burst is the moment; 0 = at once
	Fault
}

const defaultRest = 5 * time.Second

// Store makes the store of one run.
func (o OncePerBurst) Store(seed uint64) Store {
	if o.Rest == 0 {
		o.Rest = defaultRest
	}
	rng := rand.New(rand.NewPCG(seed, 10))
	last := -o.Rest
	var due time.Duration
	armed := false
	return o.store(seed, 11, func(now time.Duration, _ Attempt) bool {
		if now-last >= o.Rest {
			armed = true
			due = now + time.Duration(rng.Float64()*float64(o.Within))
		}
		last = now
		if !armed || now < due {
			return false
		}
		armed = false
		return true
	})
}

// Random refuses a share of the attempts, by chance.
type Random struct {
	Share float64
	Fault
}

// Store makes the store of one run.
func (r Random) Store(seed uint64) Store {
	rng := rand.New(rand.NewPCG(seed, 12))
	return r.store(seed, 13, func(time.Duration, Attempt) bool { return rng.Float64() < r.Share })
}

// ByKey gives every key a store of its own: hot and cold prefixes, or buckets. Keys beyond the last have the last one's store.
type ByKey []func(seed uint64) Store

// Store makes the stores of one run.
func (b ByKey) Store(seed uint64) Store {
	var stores byKey
	for i, f := range b {
		stores = append(stores, f(seed+uint64(i)*0x9E3779B97F4A7C15))
	}
	return stores
}

type byKey []Store

func (b byKey) Arrive(now time.Duration, a Attempt) Answer {
	return b[min(a.Key, len(b)-1)].Arrive(now, a)
}
