package multipart_test

import (
	"context"
	"errors"
	"slices"
	"time"
)

var errInjected = errors.New("injected")

// rule is a scripted fault: it applies to calls of an operation, in order, for a number of times.
type rule struct {
	op    string
	part  int32         // 0: any
	times int           // 0: for ever
	err   error         // answer with this
	after bool          // do the work first, then answer with err: the lost answer
	lie   bool          // answer success and do nothing
	delay time.Duration // answer this much later
	gate  chan struct{} // answer once it is closed
	do    func()        // runs before the call is handled
}

func (s *store) script(rules ...rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rules {
		s.rules = append(s.rules, &r)
	}
}

func (s *store) clearScript() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = nil
}

// enter logs a call and applies the first rule that matches. run says whether to do the work.
func (s *store) enter(ctx context.Context, op string, part int32, line string) (run bool, answer func(error) error) {
	s.mu.Lock()
	s.log = append(s.log, line)
	var r *rule
	for i, candidate := range s.rules {
		if candidate.op == op && (candidate.part == 0 || candidate.part == part) {
			r = candidate
			if r.times == 1 {
				s.rules = slices.Delete(s.rules, i, i+1)
			} else if r.times > 1 {
				r.times--
			}
			break
		}
	}
	s.mu.Unlock()
	if r == nil {
		if ctx.Err() != nil {
			return false, func(error) error { return context.Cause(ctx) }
		}
		return true, func(err error) error { return err }
	}
	if r.do != nil {
		r.do()
	}
	if err := pause(ctx, r); err != nil {
		return false, func(error) error { return err }
	}
	return r.err == nil && !r.lie || r.after, func(err error) error {
		if r.err != nil {
			return r.err
		}
		return err
	}
}

func pause(ctx context.Context, r *rule) error {
	var timer <-chan time.Time
	if r.delay > 0 {
		t := time.NewTimer(r.delay)
		defer t.Stop()
		timer = t.C
	}
	if r.gate == nil && timer == nil {
		return nil
	}
	select {
	case <-r.gate:
		return nil
	case <-timer:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
