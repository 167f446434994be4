package lab

import (
	"math/rand/v2"
	"time"
)

// Policy decides when the attempts of one client go and whether a failed call is tried again. Each client has its own. It lives in one
// thread and in the simulator's time: it must not keep the time itself, nor start goroutines.
type Policy interface {
	// Acquire asks to send an attempt of c. The policy calls grant once, when the attempt may go: now, before Acquire returns, or later.
	// grant does not call the policy again.
	Acquire(c *Call, grant func())
	// Abandon says that c, whose Acquire has not been granted yet, waits no longer: its deadline has passed. grant must not be called.
	Abandon(c *Call)
	// Release tells what became of an attempt that was granted: every grant is followed by one Release.
	Release(c *Call, k Kind, retryAfter time.Duration)
	// Retry follows Release for an attempt that ended with neither OK nor Canceled. It returns the wait before the next Acquire of c,
	// or false when the call has failed.
	Retry(c *Call, k Kind, retryAfter time.Duration) (time.Duration, bool)
	// Rate is the allowed number of attempts per second now, 0 = unlimited.
	Rate() float64
	// Waiting is the number of calls whose Acquire has not been granted yet.
	Waiting() int
}

// Call is one call of a client, as its policy sees it. The policy may write State and nothing else.
type Call struct {
	Number int  // of the attempt: 1 from the first Acquire to its Release and Retry, 2 from the next Acquire on
	First  bool // Number is 1
	Key    int
	Start  time.Duration
	State  any // the policy's own, nil at the first Acquire
}

// Env is the world of a policy.
type Env interface {
	// Now is the time since the run began.
	Now() time.Duration
	// After runs f once, d from now; a negative d counts as 0. cancel is safe to call at any time and more than once.
	After(d time.Duration, f func()) (cancel func())
	// Rand is the run's own source of chance. Policies use no other.
	Rand() *rand.Rand
}

// NewPolicy makes the policy of one client. Retries are those after the first attempt.
type NewPolicy func(env Env, retries int) Policy
