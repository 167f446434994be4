package lab

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/retrymode"
)

// runReal is [Simulate] with real S3 clients: their whole stack runs, over a transport that asks the scenario's store, in virtual time and in
// a bubble of its own.
func runReal(t *testing.T, s Scenario, policy string, retries int, seed uint64) Result {
	t.Helper()
	var r Result
	synctest.Test(t, func(t *testing.T) { r = newRig(t, s, policy, retries, seed).run() })
	return r
}

// rig is one run of a scenario with real clients.
type rig struct {
	t       *testing.T
	s       Scenario
	w       Workload
	keys    []target
	start   time.Time
	clients []*realClient
	threads sync.WaitGroup // clients, probes and the calls of open loops

	mu     sync.Mutex // guards what follows
	store  Store
	rng    *rand.Rand
	res    Result
	surely map[string]int // errors that no store of the lab gives
}

// realClient is one client and where it is in its work.
type realClient struct {
	id    int
	api   *realAPI
	left  int // calls to start in this burst; negative = no limit. Guarded by the rig's lock.
	calls sync.WaitGroup
}

// realCall is a call under way. The transport finds it in the request's context.
type realCall struct {
	client *realClient
	key    int
	bytes  int64
	number int // of the attempt, guarded by the rig's lock
	start  time.Duration
}

type realCallKey struct{}

// newRig makes the clients, at a random moment of a second: the SDK's own limiter looks at the clock on the wall.
func newRig(t *testing.T, s Scenario, policy string, retries int, seed uint64) *rig {
	w := s.Workload
	w.Clients, w.Bursts = max(w.Clients, 1), max(w.Bursts, 1)
	r := &rig{t: t, s: s, w: w, keys: targets(s), store: s.Store(seed), rng: rand.New(rand.NewPCG(seed, 0x2EA1)), surely: map[string]int{}}
	time.Sleep(time.Duration(r.rng.Int64N(int64(time.Second))))
	r.res.Probes = make([]time.Duration, len(w.Probes))
	r.res.PerClient = make([]int, w.Clients)
	r.res.ByKey = make([][]time.Duration, max(len(w.Shares), 1))
	for i := range w.Clients {
		r.clients = append(r.clients, &realClient{id: i, api: newRealAPI(t, r, i, policy, retries, r.rng.Uint64())})
	}
	r.start = time.Now()
	return r
}

func (r *rig) now() time.Duration { return time.Since(r.start) }

func (r *rig) sleepUntil(at time.Duration) { time.Sleep(at - r.now()) }

// run drives all clients to the end of their work.
func (r *rig) run() Result {
	over := make(chan struct{})
	sampled := make(chan struct{})
	go func() {
		defer close(sampled)
		r.sample(over)
	}()
	for i, cl := range r.clients {
		r.threads.Go(func() {
			if i == len(r.clients)-1 {
				time.Sleep(r.w.Latecomer)
			}
			r.drive(cl)
		})
	}
	for i, at := range r.w.Probes {
		r.threads.Go(func() {
			r.sleepUntil(at)
			took := r.call(r.clients[0])
			r.mu.Lock()
			defer r.mu.Unlock()
			r.res.Probes[i] = took
		})
	}
	r.threads.Wait()
	close(over)
	<-sampled
	for text, n := range r.surely {
		r.t.Errorf("%s: %d calls failed with %s", r.s.Name, n, text)
	}
	return r.result()
}

// drive is the bursts of one client.
func (r *rig) drive(cl *realClient) {
	for burst := range r.w.Bursts {
		begun := r.now()
		if burst > 0 && r.w.Duration > 0 && begun >= r.w.Duration {
			return
		}
		cl.left = -1
		if r.w.Calls > 0 {
			cl.left = r.w.Calls
		}
		if r.w.Rate > 0 {
			r.stream(cl)
		} else {
			r.loop(cl)
		}
		cl.calls.Wait()
		r.mu.Lock()
		ended := r.now()
		r.res.Bursts = append(r.res.Bursts, ended-begun)
		r.mu.Unlock()
		next := ended + r.w.Pause
		if r.w.Every > 0 {
			next = begun + (1+(ended-begun)/r.w.Every)*r.w.Every
		}
		if burst == r.w.Bursts-1 || r.w.Duration > 0 && next >= r.w.Duration {
			return
		}
		r.sleepUntil(next)
	}
}

// loop starts the threads of a burst.
func (r *rig) loop(cl *realClient) {
	for range r.w.Threads {
		r.mu.Lock()
		late := time.Duration(r.rng.Int64N(int64(startSpread)))
		r.mu.Unlock()
		cl.calls.Go(func() {
			time.Sleep(late)
			for r.take(cl) {
				r.note(cl, r.call)
			}
		})
	}
}

// stream starts calls at a steady rate.
func (r *rig) stream(cl *realClient) {
	gap := time.Duration(float64(time.Second) / r.w.Rate)
	r.mu.Lock()
	next := r.now() + time.Duration(r.rng.Int64N(int64(gap)+1))
	r.mu.Unlock()
	for {
		r.sleepUntil(next)
		if !r.take(cl) {
			return
		}
		cl.calls.Go(func() { r.note(cl, r.call) })
		next += gap
	}
}

// take reports whether the client may start another call of this burst.
func (r *rig) take(cl *realClient) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cl.left == 0 || r.w.Duration > 0 && r.now() >= r.w.Duration {
		return false
	}
	cl.left--
	return true
}

// note makes a call that is no probe.
func (r *rig) note(cl *realClient, call func(*realClient) time.Duration) {
	took := call(cl)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.res.Durations = append(r.res.Durations, took)
}

// call makes one call and returns how long it took.
func (r *rig) call(cl *realClient) time.Duration {
	c := &realCall{client: cl}
	r.mu.Lock()
	c.start, c.bytes = r.now(), r.w.Bytes
	c.key = r.key()
	if r.w.SmallShare > 0 && r.rng.Float64() < r.w.SmallShare {
		c.bytes /= 10
	}
	r.mu.Unlock()
	var err error
	for range max(r.w.Tries, 1) {
		if err = r.try(cl, c); err == nil {
			break
		}
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	took := now - c.start
	r.res.Calls++
	r.res.End = now
	if err == nil {
		r.res.PerClient[cl.id]++
	} else {
		r.res.Failed++
		r.second(now).Failed++
		if !expected(err) {
			r.surely[err.Error()]++
		}
	}
	if len(r.w.Shares) > 1 {
		r.res.ByKey[c.key] = append(r.res.ByKey[c.key], took)
	}
	return took
}

// try asks the client once.
func (r *rig) try(cl *realClient, c *realCall) error {
	ctx := context.WithValue(context.Background(), realCallKey{}, c)
	if r.w.CallTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.w.CallTimeout)
		defer cancel()
	}
	return cl.api.send(ctx, r.keys[c.key], c.bytes > 0)
}

// expected reports whether a store of the lab, or a deadline, can be what a call failed by.
func expected(err error) bool {
	switch retrymode.Classify(err) {
	case retrymode.Throttle, retrymode.Transient, retrymode.Canceled:
		return true
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// key draws the key of a call by the shares.
func (r *rig) key() int {
	if len(r.w.Shares) < 2 {
		return 0
	}
	u := r.rng.Float64()
	for i, share := range r.w.Shares {
		if u < share {
			return i
		}
		u -= share
	}
	return len(r.w.Shares) - 1
}

// second is the record of the second that now belongs to. Called with the lock held.
func (r *rig) second(now time.Duration) *Second {
	i := int(now / time.Second)
	for len(r.res.Seconds) <= i {
		r.res.Seconds = append(r.res.Seconds, Second{PerClient: make([]int, r.w.Clients)})
	}
	return &r.res.Seconds[i]
}

// sample looks at the limiters at the end of each second.
func (r *rig) sample(over <-chan struct{}) {
	for i := 1; ; i++ {
		end := time.NewTimer(time.Duration(i)*time.Second - 1 - r.now())
		select {
		case <-end.C:
		case <-over:
			end.Stop()
			return
		}
		waiting, rate := r.clients[0].api.limiter()
		for _, cl := range r.clients[1:] {
			n, _ := cl.api.limiter()
			waiting += n
		}
		r.mu.Lock()
		s := r.second(time.Duration(i)*time.Second - 1)
		s.Waiting, s.Rate = waiting, rate
		r.mu.Unlock()
	}
}

func (r *rig) result() Result {
	slices.Sort(r.res.Durations)
	for _, d := range r.res.ByKey {
		slices.Sort(d)
	}
	if len(r.res.ByKey) == 1 {
		r.res.ByKey[0] = r.res.Durations
	}
	r.res.Span = r.w.Duration
	if r.res.Span == 0 {
		r.res.Span = r.res.End
	}
	return r.res
}
