package datagen

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"
)

// burstsPerSecond keeps the load even: the pacer never lets more than 1/20 s worth of rows through
// at once (always one row), where Flink emits a second's rows in one go and then sleeps.
const burstsPerSecond = 20

// maxBurst keeps the token count inside an int on every platform.
const maxBurst = 1 << 30

// Pacer lets rows through at a rate. It is shared by all writers of a process and safe for
// concurrent use. The rate is an upper bound: time in which nobody asked is not made up for
// beyond 1/20 s.
type Pacer struct {
	limiter *rate.Limiter // nil = unlimited
	burst   int
}

// NewPacer returns a pacer of rowsPerSecond for all callers together; 0 or less lets everything
// through.
func NewPacer(rowsPerSecond int64) *Pacer {
	if rowsPerSecond <= 0 {
		return &Pacer{}
	}
	burst := int(min(max(rowsPerSecond/burstsPerSecond, 1), maxBurst))
	return &Pacer{limiter: rate.NewLimiter(rate.Limit(rowsPerSecond), burst), burst: burst}
}

// Wait blocks until some rows may be made and returns how many: at least 1, at most most (below 1
// counts as 1). Rows that are granted and not made are lost to the rate, nothing else. On a
// cancelled context it returns 0 and the context's cause, and nothing is taken from the rate.
//
// Call it outside of [checkpoint.Coordinator.Step]: a wait inside would hold up barriers.
func (p *Pacer) Wait(ctx context.Context, most int) (int, error) {
	if ctx.Err() != nil {
		return 0, waitError(ctx)
	}
	if most < 1 {
		most = 1
	}
	if p.limiter == nil {
		return most, nil
	}
	n := min(most, p.burst)
	// Not WaitN: with a deadline it gives up before the deadline with an error that is not
	// context.DeadlineExceeded.
	now := time.Now()
	r := p.limiter.ReserveN(now, n)
	delay := r.DelayFrom(now)
	if delay <= 0 {
		return n, nil
	}
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-t.C:
		return n, nil
	case <-ctx.Done():
		r.Cancel()
		return 0, waitError(ctx)
	}
}

func waitError(ctx context.Context) error {
	return fmt.Errorf("wait for datagen.rows-per-second: %w", context.Cause(ctx))
}
