package lab

import (
	"math"
	"time"
)

// Goodput is the number of calls per second that succeeded within the span of the run.
func (r Result) Goodput() float64 {
	if r.Span <= 0 {
		return 0
	}
	return r.Between(0, r.Span) / r.Span.Seconds()
}

// Between is the number of successes from one time to another. Seconds at the ends count in proportion.
func (r Result) Between(from, to time.Duration) float64 {
	return r.sum(from, to, func(s Second) int { return s.OK })
}

// RefusedShare is the share of all attempts that were refused.
func (r Result) RefusedShare() float64 {
	return share(float64(r.Throttled), float64(r.Attempts))
}

// RefusedShareBetween is the share of the answers from one time to another that refused.
func (r Result) RefusedShareBetween(from, to time.Duration) float64 {
	refused := r.sum(from, to, func(s Second) int { return s.Throttled })
	return share(refused, refused+r.Between(from, to))
}

// FailedPer10k is the number of failed calls in 10,000.
func (r Result) FailedPer10k() float64 {
	return 1e4 * share(float64(r.Failed), float64(r.Calls))
}

// AttemptsPerSuccess is the price of a call that succeeds.
func (r Result) AttemptsPerSuccess() float64 {
	return share(float64(r.Attempts), float64(r.Calls-r.Failed))
}

// Percentile is the duration that p percent of the calls do not exceed, 0 without calls.
func (r Result) Percentile(p float64) time.Duration { return Percentile(r.Durations, p) }

// Percentile is the value of sorted durations that p percent of them do not exceed, 0 when there are none.
func Percentile(sorted []time.Duration, p float64) time.Duration {
	n := len(sorted)
	if n == 0 {
		return 0
	}
	i := int(math.Ceil(p/100*float64(n))) - 1
	return sorted[min(max(i, 0), n-1)]
}

// Slowest is the duration of the slowest call, 0 without calls.
func (r Result) Slowest() time.Duration { return r.Percentile(100) }

// MeanDuration is the mean duration of the calls.
func (r Result) MeanDuration() time.Duration { return mean(r.Durations) }

// MeanBurst is the mean duration of the bursts.
func (r Result) MeanBurst() time.Duration { return mean(r.Bursts) }

// WorstBurst is the duration of the longest burst.
func (r Result) WorstBurst() time.Duration {
	var worst time.Duration
	for _, b := range r.Bursts {
		worst = max(worst, b)
	}
	return worst
}

// Jain is Jain's index of the clients' successes: 1 when all have the same, 1/n when one has them all.
func (r Result) Jain() float64 {
	counts := make([]float64, len(r.PerClient))
	for i, n := range r.PerClient {
		counts[i] = float64(n)
	}
	return jain(counts)
}

// JainBetween is Jain's index of the clients' successes from one time to another.
func (r Result) JainBetween(from, to time.Duration) float64 {
	counts := make([]float64, len(r.PerClient))
	for i := range counts {
		counts[i] = r.ClientBetween(i, from, to)
	}
	return jain(counts)
}

// ClientBetween is the number of successes of one client from one time to another.
func (r Result) ClientBetween(client int, from, to time.Duration) float64 {
	return r.sum(from, to, func(s Second) int {
		if client >= len(s.PerClient) {
			return 0
		}
		return s.PerClient[client]
	})
}

// Never is what the times below are when the run ends without it.
const Never = time.Duration(math.MaxInt64)

// Reaches is the time from a moment on until a whole second begins that delivers at least rate: "after n seconds it was back at rate".
// The moment should be the start of a second.
func (r Result) Reaches(from time.Duration, rate float64) time.Duration {
	return r.first(from, func(s Second) bool { return float64(s.OK) >= rate })
}

// Calms is the time from a moment on until a whole second begins in which less than the share of the answers are refusals.
func (r Result) Calms(from time.Duration, refused float64) time.Duration {
	return r.first(from, func(s Second) bool {
		return s.OK > 0 && share(float64(s.Throttled), float64(s.OK+s.Throttled)) < refused
	})
}

func (r Result) first(from time.Duration, good func(Second) bool) time.Duration {
	for i := int((from + time.Second - 1) / time.Second); i < len(r.Seconds) && time.Duration(i+1)*time.Second <= r.Span; i++ {
		if good(r.Seconds[i]) {
			return max(time.Duration(i)*time.Second-from, 0)
		}
	}
	return Never
}

func (r Result) sum(from, to time.Duration, count func(Second) int) float64 {
	var total float64
	for i := max(int(from/time.Second), 0); i < len(r.Seconds); i++ {
		start := time.Duration(i) * time.Second
		if start >= to {
			break
		}
		inside := min(to, start+time.Second) - max(from, start)
		total += inside.Seconds() * float64(count(r.Seconds[i]))
	}
	return total
}

func share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

func mean(ds []time.Duration) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	var total time.Duration
	for _, d := range ds {
		total += d
	}
	return total / time.Duration(len(ds))
}

func jain(counts []float64) float64 {
	var sum, squares float64
	for _, c := range counts {
		sum += c
		squares += c * c
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(counts)) * squares)
}
