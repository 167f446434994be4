package lab

import "time"

// Store is a model of how a store answers. It is pure: the time since the start of the run comes in, what becomes of the attempt goes
// out, and one seed gives one run. Calls come in the order of time. It is not safe for concurrent use.
type Store interface {
	Arrive(now time.Duration, a Attempt) Answer
}

// Attempt is one request on the wire.
type Attempt struct {
	Client int   // 0..Clients-1
	Key    int   // prefix or bucket that is written to, 0..; scenarios give the numbers their meaning
	Bytes  int64 // of the body, for stores with a byte rate
	Number int   // 1 = first attempt of its call
}

// Answer is what becomes of an attempt.
type Answer struct {
	Kind       Kind
	After      time.Duration // from arrival to the answer
	RetryAfter time.Duration // header of the answer, 0 = none
}

// Kind says how an attempt ended.
type Kind int

// The kinds of answers.
const (
	OK       Kind = iota + 1
	Throttle      // 503 SlowDown
	Closed        // connection closed by the store, without an answer
	Failure       // 500 InternalError
	// The next two come from the client's side; no store answers with them.
	Lost     // no answer within the attempt timeout
	Canceled // the call's deadline passed while the attempt was under way
)

// Scenario is a workload on a store, the same for the simulator and for real clients.
type Scenario struct {
	Name     string
	Workload Workload
	Store    func(seed uint64) Store
	Scope    Scope // of the gate
	// Best is the number of calls per second that a client would get who knows the store; 0 = as many as without refusals (see Undisturbed).
	Best float64
	// Latency of the store's answers, for Undisturbed.
	Latency Latency
	// Parts of the run whose goodput is of interest, for tables.
	Parts []Part
}

// Part is a part of a run.
type Part struct {
	Name     string
	From, To time.Duration
}

// Undisturbed is the same workload on a store that refuses nothing.
func (s Scenario) Undisturbed() Scenario {
	s.Name += ", undisturbed"
	s.Store = Calm(s.Latency)
	return s
}

// Scope says which attempts share a gate in the gate's policies.
type Scope int

// The scopes.
const (
	PerClient Scope = iota // all attempts of a client
	PerKey                 // the attempts of a client with one Attempt.Key
)

// Workload is what the clients do. All clients do the same; each has its own policy, as processes have.
type Workload struct {
	Clients int // 0 = 1
	// Threads of each client; each makes one call after the other (a closed loop).
	Threads int
	// Calls of each client in a burst (or in all, where there is no Pause); 0 = as many as fit into Duration.
	Calls int
	// Bursts is how often Calls are made, with Pause between the end of one burst and the start of the next. 0 = once.
	Bursts int
	Pause  time.Duration
	// Every, when not 0, is the time between the starts of two bursts, in place of Pause: all clients start together, however long each
	// has taken. A burst that is not over by then takes the turn of the next one too.
	Every time.Duration
	// Duration ends the run: no call starts later. Calls that are under way then end by themselves and are counted. 0 = when all Calls are made.
	Duration time.Duration
	// Rate, when not 0, makes it an open loop: calls per second and client start on time, whatever becomes of the earlier ones. Threads is ignored.
	Rate float64
	// Latecomer starts so much later than the others, when not 0: the last client.
	Latecomer time.Duration
	// Keys and their shares of the calls; nil = all calls have key 0. Shares add up to 1.
	Shares []float64
	// Bytes of each call's body, and the share of calls that have only a tenth of it.
	Bytes      int64
	SmallShare float64
	// AttemptTimeout ends an attempt without an answer, when not 0; it counts as lost and is retried.
	AttemptTimeout time.Duration
	// CallTimeout is the deadline of a call, waits included, when not 0.
	CallTimeout time.Duration
	// Tries is how often a call that fails is made anew at once, the first time included, by layers above the client that retry as well; 0 = once. What they make of it
	// counts as one call.
	Tries int
	// Steps, when not 0, ends a simulated run after so many events, whatever is still under way: in an open loop a limiter that lets less through than comes in
	// collects calls without end, and the more of them wait the more each moment costs. Result.Cut tells.
	Steps int
	// Probes are single extra calls at these times of the first client, whose durations are reported apart.
	Probes []time.Duration
}

// Result is what a run shows. Durations of calls include all waits.
type Result struct {
	Calls, Failed       int               // calls that ended, and those of them that failed; probes are among them
	Attempts, Throttled int               // attempts on the wire, and those of them that were refused: Throttle, Closed, timed out
	End                 time.Duration     // when the last call ended
	Span                time.Duration     // what rates are taken over: Workload.Duration, or End where there is none, or Cut
	Cut                 time.Duration     // when Workload.Steps ended the run, 0 = they did not
	Durations           []time.Duration   // of all calls but the probes, sorted
	Probes              []time.Duration   // of the probes, in their order
	ByKey               [][]time.Duration // Durations by key, sorted
	Bursts              []time.Duration   // of each client's bursts, first start to last end, in the order of their ends
	PerClient           []int             // successes of each client
	Seconds             []Second          // what happened in each second of the run
}

// Second is one second of a run.
type Second struct {
	OK, Throttled, Failed int     // attempts that were answered OK or refused, and calls that failed
	Waiting               int     // calls that waited for a permission at the end of the second
	Rate                  float64 // allowed rate of the first client's limiter, 0 = unlimited
	PerClient             []int   // OK by client
}
