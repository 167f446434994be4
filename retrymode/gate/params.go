package gate

import "time"

// Params are the constants of the law. What halving and doubling each of them does to the lab's figures is in docs/lab/sensitivity.md.
type Params struct {
	// Epoch is the length of an epoch in busy time, and at least EpochCalls times as long as a call takes. It must not be shorter than the window over which the
	// store counts; a longer one finds a risen limit later.
	Epoch      time.Duration
	EpochCalls float64
	// EpochAnswers is how many answers an epoch needs before it is judged, FreshAnswers the same for the first epoch after a cut, which is also the one
	// that shows the background: with fewer, many clients at one store take each other for background. An epoch that does not get them is judged after MaxEpochs.
	EpochAnswers, FreshAnswers int
	MaxEpochs                  float64
	// Tolerance is the share of refusals above the background at which an epoch ends in a cut.
	Tolerance float64
	// EnterRefusals turn the gate on, if they are also above Tolerance. With 1 a single 503 costs a fresh burst of 32 threads 0.8 s.
	EnterRefusals int
	// Gamma is what a cut keeps of the delivered rate. At 1 the queue inside the store is never drained.
	Gamma float64
	// TrustedAnswers is how many answers the last second must hold for its rate to be believed. DeliveredAnswers is over how many answers a slow client measures what is
	// delivered.
	TrustedAnswers, DeliveredAnswers float64
	// StepShare of the rate plus StepRoot times its root, per second, is the first epoch's step up after a cut; Acceleration multiplies the step with every
	// clean epoch. More of it finds a risen limit earlier and lets many clients share less fairly.
	StepShare, StepRoot, Acceleration float64
	// Beyond times the last rate that was too high, and BeyondRoot times its root, is where growth begins to Leap: by that share of the rate, every half epoch.
	Beyond, BeyondRoot, Leap float64
	// KeepUp is the share of what is permitted that the store must answer. With less there is a line inside it, which is drained at this share of what it answers.
	KeepUp float64
	// SurgeRefusals are enough for a cut before the end of the epoch, if they outnumber the rest.
	SurgeRefusals int
	// ShutRefusals without a single answer since the last cut shut the gate, or ShutStreak in a row if that is two for each call in hand.
	ShutRefusals, ShutStreak int
	// ProbeShare of the delivered rate goes on as probes while it is shut, half as much with every second. More finds a quota that is back earlier; most of them are
	// refused, and cost calls with few retries.
	ProbeShare float64
	// ReopenBurst seconds' worth of permissions are there when it opens again, as those in hand have waited and the store has rested.
	ReopenBurst float64
	// Outage is how long the gate must have been shut to double the rate up afterwards instead of believing what was delivered before: longer than a quota's rest.
	Outage time.Duration
	// Run answers in a row double the rate in slow start.
	Run int
	// Background: NoiseFactor times the smallest of the last NoiseSamples shares seen right after a cut, each counted up to NoiseCap, once there are so many. A higher
	// cap takes a store without a sharp limit for one with noise.
	NoiseFactor  float64
	NoiseSamples int
	NoiseCap     float64
	// MaxWait bounds the wait for a permission: never fewer permissions per second than attempts in hand / MaxWait. 5 s alone overloads a small store.
	MaxWait time.Duration
	// MinRate is the lowest rate per second after a cut.
	MinRate float64
	// Burst is how much time's worth of permissions may be saved up, at least one. 1 s costs three times the refusals and a slowest call of 8.7 s.
	Burst time.Duration
	// Quiet is how long the gate must have held nobody up and seen no refusal before it turns itself off.
	Quiet time.Duration
	// FirstHold, Hold and MaxHold bound the random holds before retries: the first one, and then Hold doubled with every retry.
	FirstHold, Hold, MaxHold time.Duration
}

// Defaults returns the constants that the lab's goals are met with, and holds that derive from the base delay of throttles and the cap of all backoffs: 1 s and 20 s
// give holds of 0.1 s, 0.5 s, 1 s, 2 s and so on.
func Defaults(throttleBase, maxBackoff time.Duration) Params {
	return Params{
		Epoch: time.Second, EpochCalls: 2, EpochAnswers: 40, FreshAnswers: 400, MaxEpochs: 12,
		Tolerance: 0.01, EnterRefusals: 3, Gamma: 0.99, TrustedAnswers: 10, DeliveredAnswers: 30,
		StepShare: 0.005, StepRoot: 0.15, Acceleration: 1.6, Beyond: 1.05, BeyondRoot: 1.5, Leap: 0.5, KeepUp: 0.8,
		SurgeRefusals: 8, ShutRefusals: 10, ShutStreak: 4, ProbeShare: 0.3, ReopenBurst: 0.15, Outage: 4 * time.Second, Run: 3,
		NoiseFactor: 2, NoiseSamples: 3, NoiseCap: 0.05,
		MaxWait: 20 * time.Second, MinRate: 0.5, Burst: 20 * time.Millisecond, Quiet: 30 * time.Second,
		FirstHold: throttleBase / 10, Hold: throttleBase / 2, MaxHold: maxBackoff,
	}
}

// HoldFor returns how long a call is held back after its refused attempt number n (1, 2, ...); u is uniform in [0,1).
func (p Params) HoldFor(n int, u float64) time.Duration {
	limit := p.FirstHold
	if n > 1 {
		limit = p.MaxHold
		if shift := n - 2; shift < 62 && p.Hold <= p.MaxHold>>shift {
			limit = p.Hold << shift
		}
	}
	return time.Duration(u * float64(limit))
}
