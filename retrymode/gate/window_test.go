package gate

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// answer is one entry of the list that the window is compared with.
type answer struct {
	at      time.Duration
	refused bool
}

// count is how many answers of either kind came in (from, to].
func count(all []answer, from, to time.Duration) (ok, refused float64) {
	for _, a := range all {
		switch {
		case a.at <= from || a.at > to:
		case a.refused:
			refused++
		default:
			ok++
		}
	}
	return ok, refused
}

// A window is exact but for the slot of a tenth of a second that it begins in.
func TestWindowAgreesWithAListOfAllAnswers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var w window
		var all []answer
		busy := time.Duration(0)
		step := rapid.OneOf(
			rapid.Int64Range(0, int64(10*ms)), rapid.Int64Range(0, int64(300*ms)), rapid.Int64Range(0, int64(30*time.Second)),
		)
		for range rapid.IntRange(1, 200).Draw(rt, "answers") {
			busy += time.Duration(step.Draw(rt, "step"))
			refused := rapid.Bool().Draw(rt, "refused")
			w.add(busy, refused)
			all = append(all, answer{busy, refused})
			if rapid.IntRange(0, 4).Draw(rt, "look") > 0 {
				continue
			}
			later := busy + time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(rt, "later"))
			span := time.Duration(rapid.Int64Range(1, int64(15*time.Second)).Draw(rt, "span"))
			ok, no, seconds := w.sum(later, span)
			busy = later

			covered := min(span, 10*time.Second, max(later, ms))
			assert.InDelta(rt, max(covered, ms).Seconds(), seconds, 1e-9)
			span = time.Duration(seconds * float64(time.Second))
			leastOK, leastNo := count(all, later-span+100*ms, later)
			mostOK, mostNo := count(all, later-span-100*ms-time.Nanosecond, later)
			const rounding = 1e-6
			assert.GreaterOrEqual(rt, ok, leastOK-rounding)
			assert.LessOrEqual(rt, ok, mostOK+rounding)
			assert.GreaterOrEqual(rt, no, leastNo-rounding)
			assert.LessOrEqual(rt, no, mostNo+rounding)
		}
	})
}

// What leaves a window leaves it evenly: with answers at an even pace the sum is right to within one of them, wherever the window begins.
func TestWindowOfAnEvenPaceIsExact(t *testing.T) {
	for _, pace := range []time.Duration{ms, 3 * ms, 7 * ms, 30 * ms} {
		var w window
		random := rand.New(rand.NewPCG(1, uint64(pace)))
		for busy := pace; busy < 20*time.Second; busy += pace {
			w.add(busy, false)
			if random.IntN(20) > 0 || busy < 3*time.Second {
				continue
			}
			span := 200*ms + time.Duration(random.Int64N(int64(2*time.Second)))
			ok, refused, seconds := w.sum(busy, span)
			assert.Zero(t, refused)
			assert.InDelta(t, span.Seconds(), seconds, 1e-9)
			assert.InDelta(t, span.Seconds()/pace.Seconds(), ok, 2, "%s at %s", span, busy)
		}
	}
}

func TestWindowForgetsAfterTenSeconds(t *testing.T) {
	var w window
	for range 1000 {
		w.add(time.Second, true)
		w.add(time.Second, false)
	}
	ok, refused, _ := w.sum(time.Second, time.Second)
	assert.Equal(t, 2000.0, ok+refused)
	ok, refused, _ = w.sum(12*time.Second, time.Minute)
	assert.Zero(t, ok+refused)
	w.add(24*time.Hour, false)
	ok, refused, seconds := w.sum(24*time.Hour, time.Hour)
	assert.Equal(t, 1.0, ok)
	assert.Zero(t, refused)
	assert.Equal(t, 10.0, seconds)
}

// Of a window that is longer than the whole life of the gate only that life counts.
func TestWindowIsNoLongerThanThereHasBeenTime(t *testing.T) {
	var w window
	w.add(100*ms, false)
	w.add(200*ms, false)
	ok, _, seconds := w.sum(250*ms, time.Second)
	assert.Equal(t, 2.0, ok)
	assert.InDelta(t, 0.25, seconds, 1e-9)

	var empty window
	ok, refused, seconds := empty.sum(0, time.Second)
	assert.Zero(t, ok+refused)
	assert.Positive(t, seconds, "it is divided by")
}
