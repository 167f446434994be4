package lab

import "time"

// Bucket is a store with a token bucket: Rate attempts per second on average, and Burst at once after a rest. It starts full. Refused
// attempts cost nothing.
type Bucket struct {
	Rate    float64
	Burst   float64 // at least 1
	Refusal Refusal
	Latency Latency
}

// Store makes the bucket of one run.
func (b Bucket) Store(seed uint64) Store {
	b.Burst = max(b.Burst, 1)
	return &bucket{Bucket: b, refuser: newRefuser(b.Refusal, b.Latency, seed, 3), tokens: b.Burst}
}

type bucket struct {
	Bucket
	*refuser
	tokens float64
	filled time.Duration
}

func (b *bucket) Arrive(now time.Duration, _ Attempt) Answer {
	b.tokens = min(b.Burst, b.tokens+(now-b.filled).Seconds()*b.Rate)
	b.filled = now
	if b.tokens < 1 {
		return b.refuse()
	}
	b.tokens--
	return b.answer(OK)
}

// FixedWindow is a quota: Limit attempts in every window, which begins at a multiple of Window, and nothing more until the next begins.
type FixedWindow struct {
	Limit   int
	Window  time.Duration
	Refusal Refusal
	Latency Latency
}

// Store makes the quota of one run.
func (f FixedWindow) Store(seed uint64) Store {
	return &fixedWindow{FixedWindow: f, refuser: newRefuser(f.Refusal, f.Latency, seed, 4)}
}

type fixedWindow struct {
	FixedWindow
	*refuser
	window   time.Duration // number of the one that used belongs to
	admitted int
}

func (f *fixedWindow) Arrive(now time.Duration, _ Attempt) Answer {
	if w := now / f.Window; w != f.window {
		f.window, f.admitted = w, 0
	}
	if f.admitted >= f.Limit {
		return f.refuse()
	}
	f.admitted++
	return f.answer(OK)
}

// ByteWall is a store that takes at most so many bytes in any rolling window. Refused attempts do not count.
type ByteWall struct {
	Limit   int64         // bytes per window
	Window  time.Duration // 0 = 1 s
	Refusal Refusal
	Latency Latency
}

// Store makes the wall of one run.
func (b ByteWall) Store(seed uint64) Store {
	if b.Window == 0 {
		b.Window = time.Second
	}
	return &byteWall{ByteWall: b, refuser: newRefuser(b.Refusal, b.Latency, seed, 5)}
}

type byteWall struct {
	ByteWall
	*refuser
	admitted []taken // of the window, oldest first
	inside   int64   // their sum
}

type taken struct {
	at    time.Duration
	bytes int64
}

func (b *byteWall) Arrive(now time.Duration, a Attempt) Answer {
	for len(b.admitted) > 0 && b.admitted[0].at <= now-b.Window {
		b.inside -= b.admitted[0].bytes
		b.admitted = b.admitted[1:]
	}
	if b.inside+a.Bytes > b.Limit {
		return b.refuse()
	}
	b.inside += a.Bytes
	b.admitted = append(b.admitted, taken{now, a.Bytes})
	return b.answer(OK)
}
