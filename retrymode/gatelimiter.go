package retrymode

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/retrymode/gate"
)

// maxGates bounds the gates of one client. Beyond it, gates that are off and idle are forgotten, and if there is none all further scopes share one.
const maxGates = 1024

// gateLimiter keeps one gate for each scope.
type gateLimiter struct {
	params gate.Params
	origin time.Time

	mu    sync.RWMutex
	gates map[scope]*pacer
	full  time.Duration // when there was nothing to forget the last time
}

// fullFor is for how long a search for gates to forget that found none is not repeated: it looks at every gate.
const fullFor = time.Second

var _ limiter = (*gateLimiter)(nil)

func newGateLimiter(p gate.Params) *gateLimiter {
	return &gateLimiter{params: p, origin: time.Now(), gates: make(map[scope]*pacer)}
}

// Wait queues at the gate of the attempt's scope.
func (l *gateLimiter) Wait(ctx context.Context, a attempt) (permit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := l.gate(a.scope)
	w := &waiter{pacer: p}
	w.ticket = gate.Ticket{Retry: !a.first, Priority: a.priority, Hold: a.hold, NotBefore: a.notBefore, Owner: w}
	now := p.now()
	w.joined = now
	if a.hold == 0 && a.notBefore == 0 && p.calm.enter(now, &w.ticket) {
		return w, nil
	}
	p.lock()
	p.core.Join(now, &w.ticket)
	p.pump(now)
	return w.wait(ctx)
}

// Holds implements limiter.
func (l *gateLimiter) Holds() bool { return true }

// gate returns the gate of a scope and counts one more user of it.
func (l *gateLimiter) gate(s scope) *pacer {
	l.mu.RLock()
	p := l.gates[s]
	if p != nil {
		p.users.Add(1) // under the lock, so that forget sees it
	}
	l.mu.RUnlock()
	if p != nil {
		return p
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gates[s] == nil && len(l.gates) >= maxGates && !l.forget() {
		s = scope{} // shared by all that come too late
	}
	if p = l.gates[s]; p == nil {
		p = &pacer{core: gate.New(l.params), origin: l.origin}
		p.timer = time.AfterFunc(time.Hour, p.tick)
		p.timer.Stop()
		l.gates[s] = p
	}
	p.users.Add(1)
	return p
}

// forget drops the gates that hold nothing and know nothing of a limit, and reports whether there is room for another one now. Called with the lock held.
func (l *gateLimiter) forget() bool {
	now := time.Since(l.origin)
	if l.full > 0 && now-l.full < fullFor {
		return false
	}
	for s, p := range l.gates {
		if p.users.Load() > 0 {
			continue
		}
		p.lock()
		idle := p.core.Idle(p.now())
		p.unlock()
		if idle {
			delete(l.gates, s)
		}
	}
	l.full = 0
	if len(l.gates) < maxGates {
		return true
	}
	l.full = max(now, 1)
	return false
}

// stats lists the gates, by scope.
func (l *gateLimiter) stats() []GateStats {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := make([]GateStats, 0, len(l.gates))
	for s, p := range l.gates {
		p.lock()
		all = append(all, GateStats{Scope: s.String(), State: p.core.State()})
		p.unlock()
	}
	slices.SortFunc(all, func(a, b GateStats) int { return strings.Compare(a.Scope, b.Scope) })
	return all
}

// pacer is one gate with a lock and a clock.
type pacer struct {
	users  atomic.Int64
	origin time.Time
	calm   calm

	mu    sync.Mutex // taken by lock and given back by unlock only
	core  *gate.Gate
	timer *time.Timer
	due   time.Duration // when the timer fires, 0 = it does not
}

func (p *pacer) now() time.Duration { return time.Since(p.origin) }

// lock takes the gate: from here to unlock all attempts are counted in it. Nothing else touches core.
func (p *pacer) lock() {
	p.mu.Lock()
	p.calm.close(p.core)
}

// unlock gives the gate back.
func (p *pacer) unlock() {
	p.calm.open(p.core)
	p.mu.Unlock()
}

// pump hands out what the gate grants and sets the timer for the rest. Called with the lock held.
func (p *pacer) pump(now time.Duration) {
	for {
		t, again := p.core.Next(now)
		if t == nil {
			p.arm(now, again)
			return
		}
		w := t.Owner.(*waiter)
		w.granted = true
		if w.ready != nil {
			close(w.ready)
			w.ready = nil
		}
	}
}

// arm sets the timer. Waits are rounded up: under a virtual clock one that was cut to nothing would come back at the same moment for ever.
func (p *pacer) arm(now, again time.Duration) {
	due := time.Duration(0)
	if again > 0 {
		due = now + again.Truncate(time.Microsecond) + time.Microsecond
	}
	if due == p.due {
		return
	}
	p.due = due
	if due == 0 {
		p.timer.Stop()
		return
	}
	p.timer.Reset(due - now)
}

func (p *pacer) tick() {
	now := p.now()
	p.lock()
	defer p.unlock()
	p.due = 0
	p.pump(now)
}

// waiter is an attempt at a gate, and its permit.
type waiter struct {
	pacer  *pacer
	ticket gate.Ticket
	joined time.Duration

	granted bool          // guarded by the pacer's lock
	ready   chan struct{} // closed by the grant; nil when nobody waits for it
}

var _ permit = (*waiter)(nil)

// wait blocks until the grant. It is called with the pacer's lock held and gives it back.
func (w *waiter) wait(ctx context.Context) (permit, error) {
	p := w.pacer
	if w.granted {
		p.unlock()
		return w, nil
	}
	if err := w.hopeless(ctx); err != nil {
		p.leave(w)
		return nil, err
	}
	ready := make(chan struct{})
	w.ready = ready
	p.unlock()
	select {
	case <-ready:
		return w, nil
	case <-ctx.Done():
	}
	p.lock()
	p.leave(w) // also when the grant came at the same moment: the next one gets it
	return nil, ctx.Err()
}

// leave takes a waiter out of the gate. It is called with the lock held and gives it back.
func (p *pacer) leave(w *waiter) {
	now := p.now()
	p.core.Leave(now, &w.ticket)
	p.pump(now)
	p.unlock()
	p.users.Add(-1)
}

// patience is how many times as long as it has a caller may have to wait, at the present rate, and still be let into the queue: rates change.
const patience = 2

// hopeless refuses at once what could not be sent before the deadline of ctx, instead of letting it fail at the head of the queue.
func (w *waiter) hopeless(ctx context.Context) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		return nil
	}
	left := time.Until(deadline)
	if ahead := w.pacer.core.Ahead(&w.ticket); ahead > patience*left {
		return &queueError{ahead: ahead, left: left}
	}
	return nil
}

// Stale implements permit.
func (w *waiter) Stale() bool {
	p := w.pacer
	if p.calm.isOpen() {
		return false
	}
	p.lock()
	defer p.unlock()
	return p.core.Stale(&w.ticket)
}

// Again implements permit.
func (w *waiter) Again(ctx context.Context) error {
	p := w.pacer
	now := p.now()
	p.lock()
	w.granted = false
	p.core.Rejoin(now, &w.ticket)
	p.pump(now)
	_, err := w.wait(ctx)
	return err
}

// Held implements permit.
func (w *waiter) Held() time.Duration {
	if w.ticket.Hold == 0 && w.ticket.NotBefore == 0 {
		return 0
	}
	w.pacer.lock()
	defer w.pacer.unlock()
	return w.ticket.QueuedAt() - w.joined
}

// Done implements permit.
func (w *waiter) Done(o outcome) {
	p := w.pacer
	defer p.users.Add(-1)
	now := p.now()
	if o.sent && o.served && !o.refused() && p.calm.served(now) {
		return
	}
	p.lock()
	defer p.unlock()
	switch {
	case !o.sent:
		p.core.Leave(now, &w.ticket)
	case o.refused():
		p.core.Done(now, &w.ticket, gate.Refused)
	case o.served:
		p.core.Done(now, &w.ticket, gate.Served)
	default:
		p.core.Done(now, &w.ticket, gate.Nothing)
	}
	p.pump(now)
}

// queueError says that the queue of a gate is too long for a caller's deadline.
type queueError struct {
	ahead, left time.Duration
}

func (e *queueError) Error() string {
	return fmt.Sprintf("%s of attempts are queued at the rate that the store delivers, deadline in %s",
		e.ahead.Round(time.Millisecond), e.left.Round(time.Millisecond))
}

// Is matches [context.DeadlineExceeded].
func (e *queueError) Is(target error) bool { return target == context.DeadlineExceeded }
