package lab

import (
	"time"

	"github.com/sluice-go/sluice/retrymode/gate"
)

// Gate paces attempts by the gate: one for each client, or one for each key of each client.
func Gate(p gate.Params, scope Scope) NewPolicy {
	return func(env Env, retries int) Policy {
		return &gatePolicy{standard: *newStandard(env, retries), params: p, scope: scope, gates: map[int]*simGate{}}
	}
}

// GateDefaults are the constants that a client has with the defaults of s3.retry.*.
func GateDefaults() gate.Params { return gate.Defaults(throttleBase, maxBackoff) }

// gatePolicy drives the core of the gate as package retrymode does.
type gatePolicy struct {
	standard // waits after errors that are no refusals
	params   gate.Params
	scope    Scope
	gates    map[int]*simGate
}

type simGate struct {
	core   *gate.Gate
	cancel func() // of the timer
}

// gateCall is what the policy keeps with a call.
type gateCall struct {
	gate   *simGate
	ticket *gate.Ticket
	grant  func()
	hold   time.Duration // before the next attempt
	hint   time.Duration
}

func (p *gatePolicy) of(key int) *simGate {
	if p.scope == PerClient {
		key = 0
	}
	g := p.gates[key]
	if g == nil {
		g = &simGate{core: gate.New(p.params)}
		p.gates[key] = g
	}
	return g
}

// Acquire implements Policy.
func (p *gatePolicy) Acquire(c *Call, grant func()) {
	s, _ := c.State.(*gateCall)
	if s == nil {
		s = &gateCall{gate: p.of(c.Key)}
		c.State = s
	}
	s.grant = grant
	s.ticket = &gate.Ticket{Retry: !c.First, Hold: s.hold, NotBefore: s.hint, Owner: s}
	s.hold, s.hint = 0, 0
	s.gate.core.Join(p.env.Now(), s.ticket)
	p.pump(s.gate)
}

// Abandon implements Policy.
func (p *gatePolicy) Abandon(c *Call) {
	s := c.State.(*gateCall)
	s.gate.core.Leave(p.env.Now(), s.ticket)
	p.pump(s.gate)
}

// Release implements Policy.
func (p *gatePolicy) Release(c *Call, k Kind, _ time.Duration) {
	s := c.State.(*gateCall)
	o := gate.Nothing
	switch k {
	case OK:
		o = gate.Served
	case Throttle, Closed, Lost:
		o = gate.Refused
	}
	s.gate.core.Done(p.env.Now(), s.ticket, o)
	p.pump(s.gate)
}

// Retry implements Policy: what was refused is held back in the gate.
func (p *gatePolicy) Retry(c *Call, k Kind, retryAfter time.Duration) (time.Duration, bool) {
	if k != Throttle && k != Closed && k != Lost {
		return p.standard.Retry(c, k, retryAfter)
	}
	if c.Number > p.retries {
		return 0, false
	}
	s := c.State.(*gateCall)
	s.hold = p.params.HoldFor(c.Number, p.env.Rand().Float64())
	if retryAfter > 0 {
		s.hint = p.spread(retryAfter, p.backoff.Throttle)
	}
	return 0, true
}

// Rate implements Policy: of the slowest gate.
func (p *gatePolicy) Rate() float64 {
	rate := 0.0
	for _, g := range p.gates {
		if r := g.core.State().Rate; r > 0 && (rate == 0 || r < rate) {
			rate = r
		}
	}
	return rate
}

// Waiting implements Policy.
func (p *gatePolicy) Waiting() int {
	n := 0
	for _, g := range p.gates {
		s := g.core.State()
		n += s.Waiting + s.Held
	}
	return n
}

// pump hands out what the gate grants and comes back when it says so.
func (p *gatePolicy) pump(g *simGate) {
	if g.cancel != nil {
		g.cancel()
		g.cancel = nil
	}
	for {
		t, again := g.core.Next(p.env.Now())
		if t == nil {
			if again > 0 {
				g.cancel = p.env.After(again, func() { p.pump(g) })
			}
			return
		}
		t.Owner.(*gateCall).grant()
	}
}
