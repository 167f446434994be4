package lab

import "time"

// noProbe marks a call that belongs to a burst.
const noProbe = -1

// simCall is one call under way.
type simCall struct {
	Call
	client     *simClient
	bytes      int64
	probe      int // index among the probes, or noProbe
	stage      stage
	kind       Kind // of the answer that is on its way
	retryAfter time.Duration
	grant      func()
	tries      int // so far, by the layers above the client
}

// stage says what a call is doing.
type stage uint8

const (
	stageWaits  stage = iota + 1 // for the policy's permission
	stageFlies                   // has an attempt under way
	stageSleeps                  // until its next attempt
	stageEnded
)

// begin starts a call of cl.
func (m *sim) begin(cl *simClient, probe int) {
	c := &simCall{client: cl, probe: probe}
	c.Start, c.Key, c.bytes = m.now, m.key(), m.w.Bytes
	if m.w.SmallShare > 0 && m.rng.Float64() < m.w.SmallShare {
		c.bytes /= 10
	}
	c.grant = func() { m.send(c) }
	m.open++
	if m.w.CallTimeout > 0 {
		m.cal.put(event{at: m.now + m.w.CallTimeout, call: c, step: stepDeadline})
	}
	m.ask(c)
}

// key draws the key of a call by the shares.
func (m *sim) key() int {
	if len(m.w.Shares) < 2 {
		return 0
	}
	u := m.rng.Float64()
	for i, share := range m.w.Shares {
		if u < share {
			return i
		}
		u -= share
	}
	return len(m.w.Shares) - 1
}

func (m *sim) step(c *simCall, s step) {
	switch {
	case s == stepAnswer && c.stage == stageFlies:
		m.answered(c)
	case s == stepRetry && c.stage == stageSleeps:
		m.ask(c)
	case s == stepDeadline && c.stage != stageEnded:
		m.expire(c)
	}
}

// ask asks the policy for the next attempt of c.
func (m *sim) ask(c *simCall) {
	c.Number++
	c.First = c.Number == 1
	c.stage = stageWaits
	c.client.policy.Acquire(&c.Call, c.grant)
}

// send is what a policy calls when an attempt may go.
func (m *sim) send(c *simCall) {
	if c.stage != stageWaits {
		panic("lab: a policy granted an attempt that was not waiting")
	}
	c.stage = stageFlies
	m.res.Attempts++
	a := m.store.Arrive(m.now, Attempt{Client: c.client.id, Key: c.Key, Bytes: c.bytes, Number: c.Number})
	if t := m.w.AttemptTimeout; t > 0 && a.After > t {
		a = Answer{Kind: Lost, After: t}
	}
	c.kind, c.retryAfter = a.Kind, a.RetryAfter
	m.cal.put(event{at: m.now + a.After, call: c, step: stepAnswer})
}

// answered takes the answer of the attempt under way.
func (m *sim) answered(c *simCall) {
	k, p := c.kind, c.client.policy
	s := m.second()
	switch k {
	case OK:
		s.OK++
		s.PerClient[c.client.id]++
	case Throttle, Closed, Lost:
		s.Throttled++
		m.res.Throttled++
	}
	c.stage = stageSleeps
	p.Release(&c.Call, k, c.retryAfter)
	if k == OK {
		m.finish(c, true)
		return
	}
	wait, again := p.Retry(&c.Call, k, c.retryAfter)
	switch {
	case !again:
		m.finish(c, false)
	case wait <= 0:
		m.ask(c)
	default:
		m.cal.put(event{at: m.now + wait, call: c, step: stepRetry})
	}
}

// expire ends a call whose deadline has passed.
func (m *sim) expire(c *simCall) {
	switch c.stage {
	case stageWaits:
		c.client.policy.Abandon(&c.Call)
	case stageFlies:
		c.stage = stageSleeps
		c.client.policy.Release(&c.Call, Canceled, 0)
	}
	m.finish(c, false)
}

// finish notes the end of a call and lets its thread go on.
func (m *sim) finish(c *simCall, ok bool) {
	if c.tries++; !ok && c.tries < m.w.Tries {
		c.Number, c.State = 0, nil
		m.ask(c)
		return
	}
	c.stage = stageEnded
	m.open--
	m.res.Calls++
	m.res.End = m.now
	if ok {
		m.res.PerClient[c.client.id]++
	} else {
		m.res.Failed++
		m.second().Failed++
	}
	took := m.now - c.Start
	if c.probe != noProbe {
		m.res.Probes[c.probe] = took
		return
	}
	m.res.Durations = append(m.res.Durations, took)
	if len(m.w.Shares) > 1 {
		m.res.ByKey[c.Key] = append(m.res.ByKey[c.Key], took)
	}
	c.client.inHand--
	if m.w.Rate > 0 {
		m.rest(c.client)
		return
	}
	m.next(c.client)
}
