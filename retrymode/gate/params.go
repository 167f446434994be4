package gate

import "time"

// Params are the constants of the law. Sensitivities are what the lab shows when one constant alone is changed.
type Params struct {
	// Epoch is the length of an epoch in busy time, and at least EpochCalls times as long as a call takes. It must not be shorter than the window over which the
	// store counts: with half of a store's window goodput falls from 98 to 88 %. Twice the length finds a risen limit twice as late. Without EpochCalls calls of 1.5 s
	// see 10 % refusals instead of 6.5.
	Epoch      time.Duration
	EpochCalls float64
	// EpochAnswers is how many answers an epoch needs before it is judged, FreshAnswers the same for the first epoch after a cut, which is also the one
	// that shows the background. With 100 in it instead of 300, 16 clients see 6 % refusals instead of 5, and random 503s of 5 % are mistaken for a limit in some
	// runs (66 % goodput in the worst of 40). An epoch that does not get them is judged after MaxEpochs.
	EpochAnswers, FreshAnswers int
	MaxEpochs                  float64
	// Tolerance is the share of refusals above the background at which an epoch ends in a cut. 2 % buys 1 % goodput for four times the refusals.
	Tolerance float64
	// EnterRefusals turn the gate on, if they are also above Tolerance. With 1 a single 503 costs a fresh burst of 32 threads 0.8 s; 6 is as good as 3 in all
	// medians but lets more refusals through at the start.
	EnterRefusals int
	// CutRefusals is how many refusals an epoch must have for a cut; fewer, if they outnumber the rest.
	CutRefusals int
	// Gamma is what a cut keeps of the delivered rate. At 1 the queue inside the store is never drained (twice the refusals over minutes); 0.97 costs
	// 1.5 % goodput over five minutes.
	Gamma float64
	// TrustedAnswers is how many answers the last second must hold for its rate to be believed. DeliveredAnswers is over how many answers a slow client measures what is
	// delivered: without it a client on 10/s is 1 % slower.
	TrustedAnswers, DeliveredAnswers float64
	// StepShare of the rate plus StepRoot times its root, per second, is the first step up after a cut; Acceleration multiplies the step with every
	// clean epoch. 1.6 instead of 2 lets 16 clients share at a Jain index of 0.89 instead of 0.85; with less a risen limit is found late, at 1 never.
	StepShare, StepRoot, Acceleration float64
	// Beyond times the last rate that was too high, and its root, is where growth begins to Leap: by that share of the rate, every half epoch. Without it a limit that has
	// risen from 100 to 400/s is found in 7 s instead of 5.
	Beyond, Leap float64
	// SurgeRefusals are enough for a cut before the end of the epoch, if they outnumber the rest. Without it goodput is 94 % and 16 clients see twice the refusals.
	SurgeRefusals int
	// ShutRefusals without a single answer since the last cut shut the gate, or ShutStreak in a row if that is two for each call in hand. Without it a wall costs
	// twice the refusals in the first minute, 20 failed calls in 10,000 with 256 threads and 3 retries, and a fixed window of 5 s 15 % refusals.
	ShutRefusals, ShutStreak int
	// ProbeShare of the delivered rate goes on as probes while it is shut, half as much with every second. Twice the share finds a store that is back 10 ms earlier.
	ProbeShare float64
	// ReopenBurst seconds' worth of permissions are there when it opens again, as those in hand have waited and the store has rested: p99 at 256 threads is 2 % lower.
	ReopenBurst float64
	// Outage is how long the gate must have been shut to double the rate up afterwards instead of believing what was delivered before: longer than a quota's rest.
	Outage time.Duration
	// Run answers in a row double the rate in slow start. 2 is faster by 1 s after an outage; 5 slower by 3 s.
	Run int
	// Background: NoiseFactor times the smallest of the last NoiseSamples shares seen right after a cut, each counted up to NoiseCap, once there are so many. A factor of 1
	// falls to 26 % of the goodput when 2 % of the answers are random 503s; with fewer samples many clients take each other for background.
	NoiseFactor  float64
	NoiseSamples int
	NoiseCap     float64
	// MaxWait bounds the wait for a permission: never fewer permissions per second than attempts in hand / MaxWait. 5 s alone overloads a small store; 20 and 60 s are the same.
	MaxWait time.Duration
	// MinRate is the lowest rate per second after a cut.
	MinRate float64
	// Burst is how much time's worth of permissions may be saved up, at least one. 1 s costs three times the refusals and a slowest call of 8.7 s.
	Burst time.Duration
	// Quiet is how long the gate must have held nobody up and seen no refusal before it turns itself off.
	Quiet time.Duration
	// FirstHold, Hold and MaxHold bound the random holds before retries: the first one, and then Hold doubled with every retry. A Hold of 1 s doubles
	// the slowest call at a wall.
	FirstHold, Hold, MaxHold time.Duration
}

// Defaults returns the constants that the lab's goals are met with, and holds that derive from the base delay of throttles and the cap of all backoffs: 1 s and 20 s
// give holds of 0.1 s, 0.5 s, 1 s, 2 s and so on.
func Defaults(throttleBase, maxBackoff time.Duration) Params {
	return Params{
		Epoch: time.Second, EpochCalls: 2, EpochAnswers: 20, FreshAnswers: 300, MaxEpochs: 12,
		Tolerance: 0.01, EnterRefusals: 3, CutRefusals: 2, Gamma: 0.99, TrustedAnswers: 10, DeliveredAnswers: 30,
		StepShare: 0.005, StepRoot: 0.15, Acceleration: 1.6, Beyond: 1.05, Leap: 0.5,
		SurgeRefusals: 8, ShutRefusals: 10, ShutStreak: 4, ProbeShare: 0.1, ReopenBurst: 0.15, Outage: 4 * time.Second, Run: 3,
		NoiseFactor: 2, NoiseSamples: 3, NoiseCap: 0.1,
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
