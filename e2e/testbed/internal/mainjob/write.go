package mainjob

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"
)

// written is what the writing processes did.
type written struct {
	duration    time.Duration // from the first start to the last end
	peak        config.MemorySize
	checkpoints []int64  // ids whose commit the log reported, sorted
	deaths      []string // where each kill struck
	report      *sluicecmd.RunReport
}

// write runs the job until a process ends by itself, killing the ones before as
// planned. A process that ends before its kill has come ends the phase as well:
// len(deaths) tells.
func (r *run) write(ctx context.Context) (w written, err error) {
	rng := rand.New(rand.NewPCG(r.o.Seed, r.o.Seed))
	plan := planKills(r.o.Crash, rng)
	ids := map[int64]bool{}
	began := time.Now()
	defer func() {
		w.duration = time.Since(began)
		w.checkpoints = slices.Sorted(maps.Keys(ids))
	}()
	for life := range len(plan) + 1 {
		var next *kill
		if life < len(plan) {
			next = &plan[life]
		}
		report := r.path(fmt.Sprintf("run-%d.json", life+1))
		death, peak, err := r.life(ctx, report, next, ids)
		w.peak = max(w.peak, peak)
		switch {
		case errors.Is(err, sluicecmd.ErrKilled):
			w.deaths = append(w.deaths, death)
			r.logf("killed the job %s (%d of %d), starting it again", death, len(w.deaths), r.o.Crash)
			continue
		case err != nil:
			return w, err
		}
		rep, err := sluicecmd.ReadReport[sluicecmd.RunReport](report)
		if err != nil {
			return w, err
		}
		w.report = &rep
		return w, nil
	}
	return w, errors.New("the last process was killed by somebody else")
}

// life runs one process to its end. With a kill it watches the process's log for
// the moment. ids collects the checkpoints whose commit the log reports.
func (r *run) life(ctx context.Context, report string, k *kill, ids map[int64]bool) (death string, peak config.MemorySize, err error) {
	events := make(chan sluicecmd.Event, 64)
	quit := make(chan struct{})
	c, err := sluicecmd.Start(r.o.Sluice, []string{"run", r.path(jobFile), "--report", report}, r.o.Log, func(line string) {
		if e, ok := sluicecmd.ParseEvent(line); ok {
			select {
			case events <- e:
			case <-quit:
			}
		}
	})
	if err != nil {
		return "", 0, err
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		defer close(quit)
		death = watch(c, events, k, r.o.Interval, ids)
	}()
	err = c.Wait(ctx)
	<-watched
	return death, c.PeakMemory(), err
}

// watch follows the events of a process until it ends and kills it at the moment
// that k asks for. It returns where the kill struck.
func watch(c *sluicecmd.Process, events <-chan sluicecmd.Event, k *kill, interval time.Duration, ids map[int64]bool) (death string) {
	var a *aim
	if k != nil {
		a = &aim{kill: *k, pause: interval, length: expectedLength}
	}
	timer := time.NewTimer(0)
	<-timer.C
	defer timer.Stop()
	take := func(e sluicecmd.Event) {
		if e.Kind == sluicecmd.Committed {
			ids[e.ID] = true
		}
		if a == nil || death != "" || e.Kind == sluicecmd.Durable {
			return
		}
		timer.Stop()
		if due, ok := a.observe(e, time.Now()); ok {
			timer.Reset(time.Until(due))
		}
	}
	for {
		select {
		case e := <-events:
			take(e)
		case <-timer.C:
			death = a.place()
			c.Kill()
		case <-c.Done(): // its output is read: what is left is in the channel
			for {
				select {
				case e := <-events:
					take(e)
				default:
					return death
				}
			}
		}
	}
}

// place names where the process is by its log.
func (a *aim) place() string {
	if a.open != 0 {
		return fmt.Sprintf("inside checkpoint %d", a.open)
	}
	return fmt.Sprintf("after checkpoint %d", a.last)
}
