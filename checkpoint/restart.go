package checkpoint

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// RestartStrategy decides whether and when a job that has failed is started again. It is pure: it keeps no clock and waits for
// nothing. A strategy belongs to one job and one goroutine.
type RestartStrategy interface {
	// Next is told that the job failed at now, and returns how long to wait before it is started again. ok is false when it
	// is not to be started again.
	Next(now time.Time) (delay time.Duration, ok bool)
	// Attempts returns how many restarts were granted in the current count, which the exponential delay starts over after a
	// long quiet time.
	Attempts() int
}

// RestartType names a restart strategy.
type RestartType uint8

// The restart strategies, as in Flink's restart-strategy.type.
const (
	RestartNone             RestartType = iota + 1 // a failure ends the job
	RestartFixedDelay                              // a number of restarts with the same delay
	RestartExponentialDelay                        // growing delays, starting over after a quiet time
)

// String returns Flink's spelling.
func (t RestartType) String() string {
	switch t {
	case RestartNone:
		return "none"
	case RestartFixedDelay:
		return "fixed-delay"
	case RestartExponentialDelay:
		return "exponential-delay"
	}
	return fmt.Sprintf("restart type %d", uint8(t))
}

// ParseRestartType reads Flink's spellings, the short ones included, in any case.
func ParseRestartType(s string) (RestartType, error) {
	switch strings.ToLower(s) {
	case "none", "off", "disable":
		return RestartNone, nil
	case "fixed-delay", "fixeddelay":
		return RestartFixedDelay, nil
	case "exponential-delay", "exponentialdelay":
		return RestartExponentialDelay, nil
	}
	return 0, fmt.Errorf("restart strategy %q: none, fixed-delay or exponential-delay expected", s)
}

// RestartOptions configures a RestartStrategy. Only the part of Type counts. DefaultRestartOptions has Flink's defaults.
type RestartOptions struct {
	Type        RestartType
	FixedDelay  FixedDelay
	Exponential ExponentialDelay
	// Jitter returns a number in [0, 1). nil means math/rand/v2.Float64.
	Jitter func() float64
}

// FixedDelay configures RestartFixedDelay.
type FixedDelay struct {
	Attempts int           // restarts until the job is given up
	Delay    time.Duration // before each
}

// ExponentialDelay configures RestartExponentialDelay. The n-th delay is InitialBackoff x BackoffMultiplier^(n-1), with
// jitter, within [InitialBackoff, MaxBackoff].
type ExponentialDelay struct {
	InitialBackoff        time.Duration
	MaxBackoff            time.Duration
	BackoffMultiplier     float64       // greater than 1
	ResetBackoffThreshold time.Duration // running this long after a restart makes the next failure count as the first
	JitterFactor          float64       // up to this share of the delay, 0 to 1, is added or subtracted
	// AttemptsBeforeReset is how many restarts there may be until a quiet time resets the count; 0 means any number.
	AttemptsBeforeReset int
}

// DefaultRestartOptions returns Flink's defaults for all strategies, with Type set to t.
func DefaultRestartOptions(t RestartType) RestartOptions {
	return RestartOptions{
		Type:       t,
		FixedDelay: FixedDelay{Attempts: 1, Delay: time.Second},
		Exponential: ExponentialDelay{
			InitialBackoff: time.Second, MaxBackoff: time.Minute, BackoffMultiplier: 1.5,
			ResetBackoffThreshold: time.Hour, JitterFactor: 0.1,
		},
	}
}

// Validate reports all problems of the chosen strategy together.
func (o RestartOptions) Validate() error {
	switch o.Type {
	case RestartNone:
		return nil
	case RestartFixedDelay:
		return o.FixedDelay.validate()
	case RestartExponentialDelay:
		return o.Exponential.validate()
	}
	return fmt.Errorf("restart strategy: unknown %v", o.Type)
}

func (o FixedDelay) validate() error {
	var errs []error
	if o.Attempts < 0 {
		errs = append(errs, fmt.Errorf("restart strategy fixed-delay: attempts %d is negative", o.Attempts))
	}
	if o.Delay < 0 {
		errs = append(errs, fmt.Errorf("restart strategy fixed-delay: delay %v is negative", o.Delay))
	}
	return errors.Join(errs...)
}

func (o ExponentialDelay) validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("restart strategy exponential-delay: "+format, args...))
	}
	if o.InitialBackoff < time.Millisecond {
		bad("initial-backoff %v is less than 1 ms", o.InitialBackoff)
	}
	if o.MaxBackoff < o.InitialBackoff {
		bad("max-backoff %v is less than initial-backoff %v", o.MaxBackoff, o.InitialBackoff)
	}
	if !(o.BackoffMultiplier > 1) || math.IsInf(o.BackoffMultiplier, 0) {
		bad("backoff-multiplier %v is not greater than 1", o.BackoffMultiplier)
	}
	if o.ResetBackoffThreshold < time.Millisecond {
		bad("reset-backoff-threshold %v is less than 1 ms", o.ResetBackoffThreshold)
	}
	if !(o.JitterFactor >= 0 && o.JitterFactor <= 1) {
		bad("jitter-factor %v is not between 0 and 1", o.JitterFactor)
	}
	if o.AttemptsBeforeReset < 0 {
		bad("attempts-before-reset-backoff %d is negative", o.AttemptsBeforeReset)
	}
	return errors.Join(errs...)
}

// NewRestartStrategy validates o and returns the strategy.
func NewRestartStrategy(o RestartOptions) (RestartStrategy, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	switch o.Type {
	case RestartFixedDelay:
		return &fixedDelay{o: o.FixedDelay}, nil
	case RestartExponentialDelay:
		jitter := o.Jitter
		if jitter == nil {
			jitter = rand.Float64
		}
		return &exponentialDelay{o: o.Exponential, jitter: jitter}, nil
	}
	return noRestart{}, nil
}

type noRestart struct{}

func (noRestart) Next(time.Time) (time.Duration, bool) { return 0, false }
func (noRestart) Attempts() int                        { return 0 }

type fixedDelay struct {
	o    FixedDelay
	used int
}

func (f *fixedDelay) Next(time.Time) (time.Duration, bool) {
	if f.used >= f.o.Attempts {
		return 0, false
	}
	f.used++
	return f.o.Delay, true
}

func (f *fixedDelay) Attempts() int { return f.used }

type exponentialDelay struct {
	o       ExponentialDelay
	jitter  func() float64
	used    int
	restart time.Time // when the last granted restart is, or was, due
}

// Next counts several failures before the restart is due as one, as Flink does: they belong together.
func (e *exponentialDelay) Next(now time.Time) (time.Duration, bool) {
	if e.used > 0 && now.Before(e.restart) {
		return e.restart.Sub(now), true
	}
	if e.used > 0 && now.Sub(e.restart) >= e.o.ResetBackoffThreshold {
		e.used = 0
	}
	if e.o.AttemptsBeforeReset > 0 && e.used >= e.o.AttemptsBeforeReset {
		return 0, false
	}
	delay := e.delay()
	e.used++
	e.restart = now.Add(delay)
	return delay, true
}

// delay computes in floating point, where a large power is infinite and not negative, and is cut to the bounds afterwards.
func (e *exponentialDelay) delay() time.Duration {
	base := float64(e.o.InitialBackoff) * math.Pow(e.o.BackoffMultiplier, float64(e.used))
	delay := base + (2*e.jitter()-1)*e.o.JitterFactor*base
	if !(delay < float64(e.o.MaxBackoff)) { // also when it is infinite, or infinite minus infinite
		return e.o.MaxBackoff
	}
	return max(e.o.InitialBackoff, time.Duration(delay))
}

func (e *exponentialDelay) Attempts() int { return e.used }
