package lab

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Simulate runs s with one policy per client, in virtual time and without goroutines. The same arguments give the same result. Retries
// are those of every call after its first attempt.
//
// An attempt reaches the store at the moment it is granted; what its way takes is part of the store's latency.
func Simulate(s Scenario, p NewPolicy, retries int, seed uint64) Result {
	m := newSim(s, p, retries, seed)
	m.schedule()
	m.run()
	return m.result()
}

// startSpread is how far apart the threads of a burst start, so that no client or thread is always the first in line.
const startSpread = time.Millisecond

// sim is one run.
type sim struct {
	w       Workload
	store   Store
	rng     *rand.Rand
	now     time.Duration
	cal     calendar
	clients []*simClient
	probes  int // that have not started yet
	open    int // calls under way
	sampled int // seconds whose end has been looked at
	res     Result
}

// simClient is one client: its policy and where it is in its work.
type simClient struct {
	id     int
	policy Policy
	left   int // calls to start in this burst; negative = no limit
	inHand int // calls of this burst under way
	bursts int // still to come, this one included
	begun  time.Duration
	sleeps bool // between bursts, or before its start, or has not started all threads
	done   bool
}

func newSim(s Scenario, p NewPolicy, retries int, seed uint64) *sim {
	w := s.Workload
	w.Clients = max(w.Clients, 1)
	w.Bursts = max(w.Bursts, 1)
	m := &sim{w: w, store: s.Store(seed), rng: rand.New(rand.NewPCG(seed, 0x5107CE)), probes: len(w.Probes)}
	m.res.Probes = make([]time.Duration, len(w.Probes))
	m.res.PerClient = make([]int, w.Clients)
	m.res.ByKey = make([][]time.Duration, max(len(w.Shares), 1))
	for i := range w.Clients {
		m.clients = append(m.clients, &simClient{id: i, policy: p(m, retries), bursts: w.Bursts})
	}
	return m
}

// Now, After and Rand are the Env of the policies.

func (m *sim) Now() time.Duration { return m.now }

func (m *sim) Rand() *rand.Rand { return m.rng }

func (m *sim) After(d time.Duration, f func()) func() {
	t := &timer{run: f}
	m.cal.put(event{at: m.now + max(d, 0), timer: t})
	return func() { t.run = nil }
}

func (m *sim) at(t time.Duration, f func()) { m.cal.put(event{at: t, start: f}) }

// schedule puts the starts of the clients and the probes into the calendar.
func (m *sim) schedule() {
	for _, cl := range m.clients {
		var start time.Duration
		if cl.id == m.w.Clients-1 {
			start = m.w.Latecomer
		}
		cl.sleeps = true
		m.at(start, func() { m.burst(cl) })
	}
	for i, t := range m.w.Probes {
		m.at(t, func() {
			m.probes--
			m.begin(m.clients[0], i)
		})
	}
}

// run empties the calendar until all work is done. What the policies still want to do then does not matter.
func (m *sim) run() {
	for steps := 0; !m.cal.empty() && !m.over(); steps++ {
		if m.w.Steps > 0 && steps == m.w.Steps && m.now > 0 {
			m.res.Cut = m.now
			return
		}
		e := m.cal.take()
		for e.at >= time.Duration(m.sampled+1)*time.Second {
			m.sample()
		}
		m.now = e.at
		switch {
		case e.call != nil:
			m.step(e.call, e.step)
		case e.timer != nil:
			if f := e.timer.run; f != nil {
				e.timer.run = nil
				f()
			}
		default:
			e.start()
		}
	}
}

func (m *sim) over() bool {
	if m.open > 0 || m.probes > 0 {
		return false
	}
	for _, cl := range m.clients {
		if !cl.done {
			return false
		}
	}
	return true
}

// burst starts the threads, or the steady stream, of a client.
func (m *sim) burst(cl *simClient) {
	cl.begun = m.now
	cl.left = -1
	if m.w.Calls > 0 {
		cl.left = m.w.Calls
	}
	if m.w.Rate > 0 {
		gap := time.Duration(float64(time.Second) / m.w.Rate)
		m.at(m.now+time.Duration(m.rng.Int64N(int64(gap)+1)), func() { m.tick(cl, gap) })
		return
	}
	starting := m.w.Threads
	if starting == 0 {
		cl.sleeps = false
		m.rest(cl)
		return
	}
	for range m.w.Threads {
		m.at(m.now+time.Duration(m.rng.Int64N(int64(startSpread))), func() {
			starting--
			cl.sleeps = starting > 0
			m.next(cl)
		})
	}
}

// tick starts one call of an open loop, and the next one a gap later.
func (m *sim) tick(cl *simClient, gap time.Duration) {
	if !m.more(cl) {
		cl.sleeps = false
		m.rest(cl)
		return
	}
	cl.left--
	cl.inHand++
	m.begin(cl, noProbe)
	m.at(m.now+gap, func() { m.tick(cl, gap) })
}

// more says whether the client may start another call of this burst.
func (m *sim) more(cl *simClient) bool {
	return cl.left != 0 && (m.w.Duration == 0 || m.now < m.w.Duration)
}

// next gives a thread that has nothing to do its next call, if there is one.
func (m *sim) next(cl *simClient) {
	if !m.more(cl) {
		m.rest(cl)
		return
	}
	cl.left--
	cl.inHand++
	m.begin(cl, noProbe)
}

// rest ends the burst when its last call has ended, and sees to the next burst.
func (m *sim) rest(cl *simClient) {
	if cl.inHand > 0 || cl.sleeps || cl.done {
		return
	}
	m.res.Bursts = append(m.res.Bursts, m.now-cl.begun)
	cl.bursts--
	start := m.now + m.w.Pause
	if m.w.Every > 0 {
		start = cl.begun + (1+(m.now-cl.begun)/m.w.Every)*m.w.Every
	}
	if cl.bursts == 0 || m.w.Duration > 0 && start >= m.w.Duration {
		cl.done = true
		return
	}
	cl.sleeps = true
	m.at(start, func() { m.burst(cl) })
}

// second is the record of the second that now belongs to.
func (m *sim) second() *Second {
	i := int(m.now / time.Second)
	for len(m.res.Seconds) <= i {
		m.res.Seconds = append(m.res.Seconds, Second{PerClient: make([]int, m.w.Clients)})
	}
	return &m.res.Seconds[i]
}

// sample looks at the limiters at the end of a second.
func (m *sim) sample() {
	m.now = time.Duration(m.sampled+1)*time.Second - 1
	s := m.second()
	for _, cl := range m.clients {
		s.Waiting += cl.policy.Waiting()
	}
	s.Rate = m.clients[0].policy.Rate()
	m.sampled++
}

func (m *sim) result() Result {
	slices.Sort(m.res.Durations)
	for _, d := range m.res.ByKey {
		slices.Sort(d)
	}
	if len(m.res.ByKey) == 1 {
		m.res.ByKey[0] = m.res.Durations
	}
	m.res.Span = m.w.Duration
	if m.res.Span == 0 {
		m.res.Span = m.res.End
	}
	if m.res.Cut > 0 {
		m.res.Span = min(m.res.Span, m.res.Cut)
	}
	return m.res
}
