package retrymode

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/retrymode/gate"
)

var (
	reads  = scope{bucket: "b", kind: kindRead}
	writes = scope{bucket: "b", kind: kindWrite}
)

// pace turns the gate of a scope on: the store has served ten times perSecond in tenths of a second and then refused. What follows goes at
// about that rate. It takes a little more than a second.
func pace(t *testing.T, r *Retryer, s scope, perSecond int) {
	t.Helper()
	wait := func() permit {
		p, err := r.limiter.Wait(t.Context(), attempt{scope: s, first: true})
		require.NoError(t, err)
		return p
	}
	const rounds = 10
	for range rounds {
		all := make([]permit, perSecond/rounds)
		for i := range all {
			all[i] = wait()
		}
		time.Sleep(time.Second / rounds)
		for _, p := range all {
			p.Done(outcome{sent: true, served: true})
		}
	}
	all := make([]permit, 5)
	for i := range all {
		all[i] = wait()
	}
	time.Sleep(10 * time.Millisecond)
	for i, p := range all {
		if i < 3 {
			p.Done(outcome{sent: true, class: Throttle})
		} else {
			p.Done(outcome{sent: true, served: true})
		}
	}
	g := gateOf(r, s)
	require.True(t, g.On)
	require.InDelta(t, perSecond, g.Rate, 0.3*float64(perSecond))
}

// gateOf is the state of one gate.
func gateOf(r *Retryer, s scope) gate.State {
	for _, g := range r.Stats().Gates {
		if g.Scope == s.String() {
			return g.State
		}
	}
	return gate.State{}
}

// nothingLeft checks that no gate and no slot is in use.
func nothingLeft(t *testing.T, r *Retryer) {
	t.Helper()
	s := r.Stats()
	assert.Zero(t, s.InFlight)
	assert.Zero(t, s.WaitingLimiter)
	assert.Zero(t, s.WaitingSlot)
	for _, g := range s.Gates {
		assert.Zero(t, g.Waiting+g.Held+g.InFlight, "%+v", g)
	}
	if r.gates == nil {
		return
	}
	for s, p := range r.gates.gates {
		assert.Zero(t, p.users.Load(), "%s", s)
	}
}

// wall lets limit attempts through in any second and refuses the rest.
func wall(latency time.Duration, limit func() int, refuse func(*http.Request) (*http.Response, error)) *wire {
	var mu sync.Mutex
	var passed []time.Time
	w := &wire{latency: latency}
	w.answer = func(_ int, req *http.Request, _ []byte) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		for len(passed) > 0 && now.Sub(passed[0]) >= time.Second {
			passed = passed[1:]
		}
		if len(passed) >= limit() {
			return refuse(req)
		}
		passed = append(passed, now)
		return success(req), nil
	}
	return w
}

func slowDown(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodHead {
		return reply(503, ""), nil
	}
	return reply(503, xmlError("SlowDown")), nil
}

func constant(n int) func() int { return func() int { return n } }
