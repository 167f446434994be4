package lab

import "math"

// sdkRate is the arithmetic of the SDKs' adaptive mode, the same in Go and Java: a token bucket whose rate is cut to 0.7 of what was
// measured at every throttle and grows along a cubic curve at every other answer. Times are seconds of a wall clock, because the
// measurement counts answers in half seconds of it.
type sdkRate struct {
	on bool // from the first throttle on, for ever

	measured float64 // answers per second, smoothed
	slot     float64 // half second that counted belongs to
	counted  int

	lastMax      float64
	lastThrottle float64

	fill     float64 // tokens per second
	tokens   float64
	capacity float64
	filled   float64 // when tokens were brought up to date; negative = never
}

const (
	sdkSmooth  = 0.8
	sdkBeta    = 0.7
	sdkScale   = 0.4
	sdkMinRate = 0.5
	sdkMinCap  = 1
)

func newSDKRate(now float64) sdkRate {
	return sdkRate{slot: math.Floor(now), lastThrottle: now, filled: -1}
}

// refill brings the tokens up to date.
func (r *sdkRate) refill(now float64) {
	if r.filled >= 0 {
		r.tokens = min(r.tokens+(now-r.filled)*r.fill, r.capacity)
	}
	r.filled = now
}

// take takes a token when there is one.
func (r *sdkRate) take(now float64) bool {
	r.refill(now)
	if r.tokens < 1 {
		return false
	}
	r.tokens--
	return true
}

// lack is how long it takes, in seconds and at the rate of this moment, until there is a token.
func (r *sdkRate) lack() float64 { return (1 - r.tokens) / r.fill }

// update takes an answer.
func (r *sdkRate) update(now float64, throttled bool) {
	r.measure(now)
	var rate float64
	if throttled {
		r.lastMax = r.measured
		if r.on {
			r.lastMax = min(r.measured, r.fill)
		}
		r.lastThrottle = now
		r.on = true
		rate = sdkBeta * r.lastMax
	} else {
		window := math.Cbrt(r.lastMax * (1 - sdkBeta) / sdkScale)
		rate = sdkScale*math.Pow(now-r.lastThrottle-window, 3) + r.lastMax
	}
	rate = min(rate, 2*r.measured)
	r.refill(now)
	r.fill = max(rate, sdkMinRate)
	r.capacity = max(rate, sdkMinCap)
	r.tokens = min(r.tokens, r.capacity)
}

// measure counts an answer. The first one of a later half second closes the slot, itself included.
func (r *sdkRate) measure(now float64) {
	r.counted++
	slot := math.Floor(now*2) / 2
	if slot <= r.slot {
		return
	}
	r.measured = sdkSmooth*float64(r.counted)/(slot-r.slot) + (1-sdkSmooth)*r.measured
	r.counted, r.slot = 0, slot
}
