package lab

import (
	"math"
	"time"
)

// sdkPolicy is what the SDKs' adaptive modes have in common: the standard waits and the rate. They differ in what a call does that
// finds no token.
type sdkPolicy struct {
	standard
	rate    sdkRate
	phase   float64 // of the wall clock within its second when the run begins
	waiting int
}

// newSDKPolicy makes the policy of a client that was built some seconds ago. The measurement begins then, and until its first half second
// ends it is what one answer in all that time makes.
func newSDKPolicy(env Env, retries int, age float64) sdkPolicy {
	phase := env.Rand().Float64()
	now := phase + env.Now().Seconds()
	return sdkPolicy{standard: *newStandard(env, retries), rate: newSDKRate(now - age), phase: phase}
}

// What the rigs of the measurements took to set up a client: Go's made it at the start, a Java client takes its time to load.
const (
	ageGo   = 0
	ageJava = 2
)

func (p *sdkPolicy) now() float64 { return p.phase + p.env.Now().Seconds() }

func (p *sdkPolicy) Release(_ *Call, k Kind, _ time.Duration) {
	if k != Canceled {
		p.rate.update(p.now(), k == Throttle)
	}
}

func (p *sdkPolicy) Rate() float64 {
	if !p.rate.on {
		return 0
	}
	return p.rate.fill
}

func (p *sdkPolicy) Waiting() int { return p.waiting }

// wait is a time of so many seconds, rounded up so that a token that is due is there when it ends.
func wait(seconds float64) time.Duration {
	return time.Duration(math.Ceil(seconds*1e6))*time.Microsecond + time.Microsecond
}

// SDKGo is the adaptive mode of the Go SDK. A call that finds no token sleeps until one could be there and then tries again, together
// with all others; nothing is reserved, and chance says who gets it.
func SDKGo(env Env, retries int) Policy {
	return &sdkGo{newSDKPolicy(env, retries, ageGo)}
}

type sdkGo struct{ sdkPolicy }

func (p *sdkGo) Acquire(c *Call, grant func()) {
	if p.free() {
		grant()
		return
	}
	p.waiting++
	var poll func()
	sleep := func() {
		// Sleepers that are due in the same instant wake in any order.
		d := wait(p.rate.lack()) + time.Duration(p.env.Rand().Int64N(int64(time.Microsecond)))
		c.State = p.env.After(d, poll)
	}
	poll = func() {
		if !p.free() {
			sleep()
			return
		}
		p.waiting--
		grant()
	}
	sleep()
}

func (p *sdkGo) free() bool { return !p.rate.on || p.rate.take(p.now()) }

func (p *sdkGo) Abandon(c *Call) {
	p.waiting--
	c.State.(func())()
}

// JavaOld is the adaptive mode of the Java SDK up to 2.51. A call that finds no token gets one wait, computed as it arrives from its
// place in the line and the rate of that moment, and never looked at again.
func JavaOld(env Env, retries int) Policy {
	return &javaOld{newSDKPolicy(env, retries, ageJava)}
}

type javaOld struct{ sdkPolicy }

func (p *javaOld) Acquire(c *Call, grant func()) {
	if !p.rate.on {
		grant()
		return
	}
	p.rate.refill(p.now())
	lack := p.rate.lack()
	p.rate.tokens-- // below zero: that is the line
	if lack <= 0 {
		grant()
		return
	}
	p.waiting++
	c.State = p.env.After(wait(lack), func() {
		p.waiting--
		grant()
	})
}

func (p *javaOld) Abandon(c *Call) {
	p.waiting--
	c.State.(func())()
}

// JavaNew is the adaptive mode of the Java SDK from 2.52 on. Calls wait in line; the first in line waits as long as a token takes at the
// rate of the moment in which it became first.
func JavaNew(env Env, retries int) Policy {
	return &javaNew{sdkPolicy: newSDKPolicy(env, retries, ageJava)}
}

type javaNew struct {
	sdkPolicy
	line   []lineEntry
	asleep bool // until the wait of the first in line ends
}

type lineEntry struct {
	call  *Call
	grant func()
}

func (p *javaNew) Acquire(c *Call, grant func()) {
	if !p.rate.on {
		grant()
		return
	}
	p.line = append(p.line, lineEntry{c, grant})
	p.serve()
}

func (p *javaNew) Abandon(c *Call) {
	for i, e := range p.line {
		if e.call == c {
			p.line = append(p.line[:i], p.line[i+1:]...)
			return
		}
	}
}

// serve lets go who can go, and wakes up when the next can. The first in line keeps the wait that it was given when it became first.
func (p *javaNew) serve() {
	for !p.asleep && len(p.line) > 0 {
		if !p.rate.take(p.now()) {
			p.asleep = true
			p.env.After(wait(p.rate.lack()), func() {
				p.asleep = false
				p.serve()
			})
			return
		}
		first := p.line[0]
		p.line = p.line[1:]
		first.grant()
	}
}

func (p *javaNew) Waiting() int { return len(p.line) }
