package retrymode

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/retrymode/gate"
)

// Stats is a snapshot of what a [Retryer] has seen since it was made. It marshals to JSON; durations are nanoseconds.
//
// An attempt is counted when it ends, so while calls are in flight the counts of one snapshot may differ by the attempts that end
// during it; when nothing is in flight, Attempts = Calls + RetriesAfterThrottle + RetriesAfterTransient.
type Stats struct {
	Mode           Mode                      `json:"mode"`
	Total          OperationStats            `json:"total"`      // sum over Operations
	Operations     map[string]OperationStats `json:"operations"` // by SDK name, such as "UploadPart"
	InFlight       int                       `json:"in_flight"`
	WaitingLimiter int                       `json:"waiting_limiter"` // attempts that wait for the limiter now
	WaitingSlot    int                       `json:"waiting_slot"`    // attempts that wait for an in-flight slot now
	Breaker        BreakerStats              `json:"breaker"`
	Gates          []GateStats               `json:"gates,omitempty"` // by scope; adaptive mode with the gate only
}

// GateStats is the state of one gate.
type GateStats struct {
	Scope string `json:"scope"` // "bucket/prefix write"
	gate.State
}

// OperationStats are the counts of one operation.
type OperationStats struct {
	Calls     int64 `json:"calls"`    // calls with at least one attempt; a repeated call counts once
	Attempts  int64 `json:"attempts"` // attempts on the wire, retries included
	Throttles int64 `json:"throttles"`
	// CutOff counts attempts that ended without an answer: the connection was refused, closed or reset, or nothing came in time. A gate takes
	// them for refusals, like throttles. Not among them are contexts that ended, names that cannot be resolved and certificates that are not trusted.
	CutOff                int64 `json:"cut_off"`
	RetriesAfterThrottle  int64 `json:"retries_after_throttle"`
	RetriesAfterTransient int64 `json:"retries_after_transient"`
	// Abandoned counts attempts that were given up before they were sent: the context ended in a wait, the breaker was open, or the body could not be rewound.
	Abandoned int64 `json:"abandoned"`
	// BreakerRefusals counts calls that the breaker ended, before their first attempt or before a retry.
	BreakerRefusals int64 `json:"breaker_refusals"`

	LimiterWait time.Duration `json:"limiter_wait_ns"`
	SlotWait    time.Duration `json:"slot_wait_ns"`
	BackoffWait time.Duration `json:"backoff_wait_ns"` // needs Retryer.Middleware, 0 without it
	Wire        time.Duration `json:"wire_ns"`         // from the grant of the slot to the headers of the answer, signing included
}

// BreakerStats is the state of the circuit breaker, which each scope (see [Scope]) has one of.
type BreakerStats struct {
	Enabled    bool     `json:"enabled"`
	Open       bool     `json:"open"`                  // of at least one scope: only probes of it go
	OpenScopes []string `json:"open_scopes,omitempty"` // which, such as "bucket/prefix write", sorted
	Quota      uint     `json:"quota"`                 // tokens left in the scope that has the fewest; 0 when not enabled
}

// counters are the running counts of one operation.
type counters struct {
	calls, attempts, throttles, cutOff, afterThrottle, afterTransient, abandoned, refusals atomic.Int64
	limiterWait, slotWait, backoffWait, wire                                               atomic.Int64 // nanoseconds
}

func (c *counters) snapshot() OperationStats {
	return OperationStats{
		Calls:                 c.calls.Load(),
		Attempts:              c.attempts.Load(),
		Throttles:             c.throttles.Load(),
		CutOff:                c.cutOff.Load(),
		RetriesAfterThrottle:  c.afterThrottle.Load(),
		RetriesAfterTransient: c.afterTransient.Load(),
		Abandoned:             c.abandoned.Load(),
		BreakerRefusals:       c.refusals.Load(),
		LimiterWait:           time.Duration(c.limiterWait.Load()),
		SlotWait:              time.Duration(c.slotWait.Load()),
		BackoffWait:           time.Duration(c.backoffWait.Load()),
		Wire:                  time.Duration(c.wire.Load()),
	}
}

func (s *OperationStats) add(o OperationStats) {
	s.Calls += o.Calls
	s.Attempts += o.Attempts
	s.Throttles += o.Throttles
	s.CutOff += o.CutOff
	s.RetriesAfterThrottle += o.RetriesAfterThrottle
	s.RetriesAfterTransient += o.RetriesAfterTransient
	s.Abandoned += o.Abandoned
	s.BreakerRefusals += o.BreakerRefusals
	s.LimiterWait += o.LimiterWait
	s.SlotWait += o.SlotWait
	s.BackoffWait += o.BackoffWait
	s.Wire += o.Wire
}

// recorder holds the counters of all operations; the set of operations is small and settles at once.
type recorder struct {
	operations                  sync.Map // string -> *counters
	waitingLimiter, waitingSlot atomic.Int64
}

func (r *recorder) of(operation string) *counters {
	if c, ok := r.operations.Load(operation); ok {
		return c.(*counters)
	}
	c, _ := r.operations.LoadOrStore(operation, new(counters))
	return c.(*counters)
}

// Stats returns a snapshot. Safe for concurrent use; it does not stop anything.
func (r *Retryer) Stats() Stats {
	s := Stats{
		Mode:           r.options.Mode,
		Operations:     make(map[string]OperationStats),
		InFlight:       r.slots.inFlight(),
		WaitingLimiter: int(r.recorder.waitingLimiter.Load()),
		WaitingSlot:    int(r.recorder.waitingSlot.Load()),
		Breaker:        r.breakers.stats(),
	}
	if r.gates != nil {
		s.Gates = r.gates.stats()
	}
	r.recorder.operations.Range(func(name, c any) bool {
		o := c.(*counters).snapshot()
		s.Operations[name.(string)] = o
		s.Total.add(o)
		return true
	})
	return s
}
