package checkpoint

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// restart is the outcome of one failure.
type restart struct {
	delay time.Duration
	ok    bool
}

// failAfter lets a job fail the given times after each restart, and returns what the strategy says.
func failAfter(s RestartStrategy, running ...time.Duration) (got []restart) {
	now := time.Unix(1_000_000, 0)
	for _, d := range running {
		now = now.Add(d)
		delay, ok := s.Next(now)
		got = append(got, restart{delay, ok})
		now = now.Add(delay)
	}
	return got
}

func newStrategy(t *testing.T, o RestartOptions) RestartStrategy {
	t.Helper()
	s, err := NewRestartStrategy(o)
	must(t, err)
	return s
}

func TestRestart_None_NeverRestarts(t *testing.T) {
	got := failAfter(newStrategy(t, DefaultRestartOptions(RestartNone)), 0, time.Hour)
	if !slices.Equal(got, []restart{{0, false}, {0, false}}) {
		t.Errorf("%v", got)
	}
}

func TestRestart_FixedDelay_RestartsOnceAfterASecondByDefault(t *testing.T) {
	o := DefaultRestartOptions(RestartFixedDelay)
	if got := failAfter(newStrategy(t, o), 0, time.Hour); !slices.Equal(got, []restart{{time.Second, true}, {0, false}}) {
		t.Errorf("%v", got)
	}
	o.FixedDelay = FixedDelay{Attempts: 3, Delay: 5 * time.Second}
	s := newStrategy(t, o)
	want := []restart{{5 * time.Second, true}, {5 * time.Second, true}, {5 * time.Second, true}, {0, false}}
	if got := failAfter(s, 0, 0, time.Hour, 0); !slices.Equal(got, want) || s.Attempts() != 3 {
		t.Errorf("%v, %d attempts", got, s.Attempts())
	}
}

func TestRestart_ExponentialDelay_GrowsToItsMaximum_AndStartsOverAfterAQuietHour(t *testing.T) {
	o := DefaultRestartOptions(RestartExponentialDelay)
	o.Jitter = func() float64 { return 0.5 } // neither earlier nor later
	minute := time.Minute
	got := failAfter(newStrategy(t, o), 0, minute, minute, minute, minute, minute, minute, minute, minute, minute, minute, minute, minute,
		time.Hour-time.Nanosecond, time.Hour, minute)
	// 1.5^n seconds until a minute is reached; the 14th failure comes a nanosecond too early to count as the first again.
	want := []float64{1, 1.5, 2.25, 3.375, 5.0625, 7.59375, 11.390625, 17.0859375, 25.62890625, 38.443359375, 57.6650390625, 60, 60, 60, 1, 1.5}
	for i, w := range want {
		if !got[i].ok || math.Abs(got[i].delay.Seconds()-w) > 1e-6 {
			t.Errorf("failure %d: %v, want %v s", i+1, got[i], w)
		}
	}
}

func TestRestart_ExponentialDelay_CountsAttemptsUntilAQuietTime(t *testing.T) {
	o := DefaultRestartOptions(RestartExponentialDelay)
	o.Exponential.AttemptsBeforeReset = 2
	o.Jitter = func() float64 { return 0.5 }
	got := failAfter(newStrategy(t, o), 0, time.Minute, time.Hour, time.Minute, time.Minute)
	var oks []bool
	for _, r := range got {
		oks = append(oks, r.ok)
	}
	if !slices.Equal(oks, []bool{true, true, true, true, false}) {
		t.Errorf("%v", got)
	}
}

func TestRestart_ExponentialDelay_FailuresBeforeTheRestartAreOne(t *testing.T) {
	o := DefaultRestartOptions(RestartExponentialDelay)
	o.Exponential.InitialBackoff = 10 * time.Second
	o.Jitter = func() float64 { return 0.5 }
	s := newStrategy(t, o)
	now := time.Unix(0, 0)
	first, _ := s.Next(now)
	again, ok := s.Next(now.Add(4 * time.Second))
	if first != 10*time.Second || again != 6*time.Second || !ok || s.Attempts() != 1 {
		t.Errorf("%v, then %v, %d attempts", first, again, s.Attempts())
	}
}

func TestRestart_ExponentialDelay_JitterIsAShareOfTheDelayWithinTheBounds(t *testing.T) {
	for jitter, want := range map[float64][]float64{
		0:        {1, 1.35}, // 0.9 is less than the initial backoff
		0.999999: {1.1, 1.65},
		0.75:     {1.05, 1.575},
	} {
		o := DefaultRestartOptions(RestartExponentialDelay)
		o.Jitter = func() float64 { return jitter }
		got := failAfter(newStrategy(t, o), 0, time.Minute)
		for i, w := range want {
			if math.Abs(got[i].delay.Seconds()-w) > 1e-5 {
				t.Errorf("jitter %v, failure %d: %v, want %v s", jitter, i+1, got[i].delay, w)
			}
		}
	}
	// The default source is random, and the delay stays within its bounds however often the job fails.
	rapid.Check(t, func(t *rapid.T) {
		o := DefaultRestartOptions(RestartExponentialDelay)
		o.Exponential.InitialBackoff = time.Duration(rapid.Int64Range(1e6, 1e12).Draw(t, "initial"))
		o.Exponential.MaxBackoff = time.Duration(rapid.Int64Range(int64(o.Exponential.InitialBackoff), math.MaxInt64).Draw(t, "max"))
		o.Exponential.BackoffMultiplier = rapid.Float64Range(1.0001, 1e300).Draw(t, "multiplier")
		o.Exponential.JitterFactor = rapid.Float64Range(0, 1).Draw(t, "jitter")
		s, err := NewRestartStrategy(o)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(0, 0)
		for range 50 {
			delay, ok := s.Next(now)
			if !ok || delay < o.Exponential.InitialBackoff || delay > o.Exponential.MaxBackoff {
				t.Fatalf("%v, %v", delay, ok)
			}
			s.(*exponentialDelay).restart = now // a delay of centuries would leave the range of times
		}
	})
}

func TestRestartOptions_AreValidated(t *testing.T) {
	for _, typ := range []RestartType{RestartNone, RestartFixedDelay, RestartExponentialDelay} {
		must(t, DefaultRestartOptions(typ).Validate())
	}
	_, err := NewRestartStrategy(RestartOptions{})
	if err == nil {
		t.Error("no type, no error")
	}
	o := RestartOptions{Type: RestartExponentialDelay, Exponential: ExponentialDelay{
		MaxBackoff: -1, BackoffMultiplier: math.NaN(), JitterFactor: 2, AttemptsBeforeReset: -1,
	}}
	_, err = NewRestartStrategy(o)
	for _, key := range []string{"initial-backoff", "max-backoff", "backoff-multiplier", "reset-backoff-threshold", "jitter-factor", "attempts-before-reset-backoff"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s is not in: %v", key, err)
		}
	}
	_, err = NewRestartStrategy(RestartOptions{Type: RestartFixedDelay, FixedDelay: FixedDelay{Attempts: -1, Delay: -1}})
	if err == nil || !strings.Contains(err.Error(), "attempts") || !strings.Contains(err.Error(), "delay -1ns") {
		t.Errorf("%v", err)
	}
}

func TestParseRestartType_ReadsFlinksSpellings(t *testing.T) {
	for in, want := range map[string]RestartType{
		"none": RestartNone, "off": RestartNone, "disable": RestartNone, "NONE": RestartNone,
		"fixed-delay": RestartFixedDelay, "fixeddelay": RestartFixedDelay, "Fixed-Delay": RestartFixedDelay,
		"exponential-delay": RestartExponentialDelay, "exponentialdelay": RestartExponentialDelay,
	} {
		if got, err := ParseRestartType(in); err != nil || got != want {
			t.Errorf("%s: %v, %v", in, got, err)
		}
	}
	for _, typ := range []RestartType{RestartNone, RestartFixedDelay, RestartExponentialDelay} {
		if got, err := ParseRestartType(typ.String()); err != nil || got != typ {
			t.Errorf("%v: %v, %v", typ, got, err)
		}
	}
	if _, err := ParseRestartType("failure-rate"); err == nil {
		t.Error("failure-rate was accepted")
	}
	if s := RestartType(9).String(); s != "restart type 9" {
		t.Error(s)
	}
}
