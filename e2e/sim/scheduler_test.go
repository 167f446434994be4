package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing/synctest"
	"time"
)

// kind of an event.
type kind uint8

const (
	turn kind = iota + 1 // a writer's next batch
	hold                 // exclusive use of something, until it is given back
	file                 // a file operation
	call                 // a store call
)

// event is what a life wants to do. It takes effect when the scheduler picks it.
type event struct {
	life *life
	kind kind
	what string // the operation
	text string // the operation and what it is about: orders the events that wait
	from time.Time
	done chan error // buffered: what became of a turn, hold or file operation
	call *storeCall // of a store call
}

// errKilled is what everything of a dead life ends with.
var errKilled = errors.New("this life is over")

const (
	stuckAfter = 24 * time.Hour // of virtual time without any event
	maxSteps   = 150_000
)

// submit queues an event, unless its life is over.
func (w *world) submit(e *event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.life.dead.Err() != nil {
		return errKilled
	}
	w.waiting = append(w.waiting, e)
	w.poke()
	return nil
}

// poke wakes the scheduler.
func (w *world) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// await submits an event that is no store call and waits for its turn.
func (w *world) await(ctx context.Context, e *event) error {
	e.done = make(chan error, 1)
	if err := w.submit(e); err != nil {
		return err
	}
	select {
	case err := <-e.done:
		return err
	case <-e.life.dead.Done():
		return errKilled
	case <-ctx.Done():
		w.withdraw(e)
		return context.Cause(ctx)
	}
}

func (w *world) withdraw(e *event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = slices.DeleteFunc(w.waiting, func(o *event) bool { return o == e })
}

// loop picks events until the run is over. It is the only goroutine that makes anything take effect.
func (w *world) loop() {
	idle := time.NewTimer(stuckAfter)
	defer idle.Stop()
	for {
		synctest.Wait()
		if w.over() {
			return
		}
		w.bury()
		if w.steps++; w.steps == maxSteps {
			w.fail("no end after %d steps", maxSteps)
		}
		e, pass := w.choose()
		switch {
		case e != nil:
			w.perform(e)
			synctest.Wait()
			w.performed(e)
		case pass > 0:
			time.Sleep(pass)
		default:
			idle.Reset(stuckAfter)
			select {
			case <-w.wake:
			case <-idle.C:
				if w.failed() {
					panic(w.failure) // what is left does not end by itself
				}
				w.fail("nothing has happened for %v: something waits for what never comes", stuckAfter)
			}
		}
	}
}

// bury kills zombies whose time has come, and everybody after a failure, and ends what is left of those who are dead.
func (w *world) bury() {
	w.mu.Lock()
	failed, reap := w.failure != "", w.reap
	w.reap = false
	lives := slices.Clone(w.lives)
	w.mu.Unlock()
	for _, l := range lives {
		switch {
		case l.dead.Err() != nil:
			w.land(l)
		case failed || reap && l.isZombie():
			w.kill(l, byKill)
		}
	}
}

// choose draws the next event, or how much time passes; neither when nothing can happen before a timer fires.
func (w *world) choose() (*event, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	var ready []*event
	total, pause := 0, 0.0
	for _, e := range w.waiting {
		if e.from.After(now) || e.kind == hold && e.life.held {
			continue
		}
		ready = append(ready, e)
		total += e.weight()
		pause = max(pause, e.life.plan.weight.time)
	}
	if len(ready) == 0 {
		return nil, 0
	}
	slices.SortStableFunc(ready, func(a, b *event) int {
		return cmp.Or(cmp.Compare(a.life.number, b.life.number), cmp.Compare(a.kind, b.kind), cmp.Compare(a.text, b.text))
	})
	if w.schedule.Float64() < pause {
		return nil, time.Duration(1 + w.schedule.Int64N(int64(20*time.Millisecond)))
	}
	n := w.schedule.IntN(total)
	for _, e := range ready {
		if n -= e.weight(); n < 0 {
			w.waiting = slices.DeleteFunc(w.waiting, func(o *event) bool { return o == e })
			return e, 0
		}
	}
	return nil, 0
}

func (e *event) weight() int {
	switch l := e.life.plan.weight; e.kind {
	case call:
		return l.call
	case turn:
		return l.turn
	default:
		return l.file
	}
}

// perform makes an event take effect.
func (w *world) perform(e *event) {
	var err error
	switch e.kind {
	case call:
		w.serve(e)
		return
	case hold:
		e.life.held = true
	case file:
		err = w.diskFault(e)
	case turn:
	}
	if e.kind != hold { // it is no step of its own
		w.note(e, outcome(err))
	}
	e.done <- err
}

func outcome(err error) string {
	if err != nil {
		return err.Error()
	}
	return "ok"
}

// performed looks at the world after an event and everything that followed from it at once.
func (w *world) performed(e *event) {
	if e.kind == file {
		w.checkDisk(e)
	}
	l := e.life
	if e.kind != call && e.kind != file || l.dead.Err() != nil {
		return
	}
	if l.isZombie() {
		if l.left--; l.left <= 0 {
			w.kill(l, byKill)
		}
		return
	}
	if end := l.plan.end; end.how != byItself && (end.what == "" || end.what == e.what) {
		if l.count++; l.count == end.nth {
			w.end(l, e)
		}
	}
}

// note writes a line into the log.
func (w *world) note(e *event, result string) {
	w.logf("life %d %s -> %s", e.life.number, e.text, result)
}

func (w *world) logf(format string, args ...any) {
	at := time.Since(w.began)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf("%10.3f %s", at.Seconds(), fmt.Sprintf(format, args...)))
}
