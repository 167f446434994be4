package lab

import "time"

// StandardQuota is Standard with the SDK's retry quota, which is on by default there: a bucket of 500 per client, from which every retry
// takes. A success gives back what the retry before it took, or 1 when there was none. A call that finds too little fails.
func StandardQuota(env Env, retries int) Policy {
	return &standardQuota{standard: *newStandard(env, retries), level: quotaSize}
}

const (
	quotaSize     = 500
	quotaThrottle = 5  // for a retry of a throttled attempt
	quotaOther    = 14 // for any other
	quotaReward   = 1  // for a first attempt that succeeds
)

type standardQuota struct {
	standard
	level int
}

func (q *standardQuota) Release(c *Call, k Kind, _ time.Duration) {
	if k != OK {
		return
	}
	back := quotaReward
	if cost, retried := c.State.(int); retried {
		back = cost
	}
	q.level = min(q.level+back, quotaSize)
}

func (q *standardQuota) Retry(c *Call, k Kind, retryAfter time.Duration) (time.Duration, bool) {
	cost := quotaOther
	if k == Throttle {
		cost = quotaThrottle
	}
	if c.Number > q.retries || q.level < cost {
		return 0, false
	}
	q.level -= cost
	c.State = cost
	return q.standard.Retry(c, k, retryAfter)
}
