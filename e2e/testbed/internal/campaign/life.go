package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"
)

// patience is how long a process may take for anything: a loaded machine, not a quiet one.
const patience = 60 * time.Second

var (
	errEnded = errors.New("the process has ended")
	errLate  = fmt.Errorf("nothing has happened within %s", patience)
)

// life is one process of a job.
type life struct {
	proc *sluicecmd.Process

	mu      sync.Mutex
	log     *jobLog
	changed chan struct{} // closed and made anew with each line

	told    bool     // SIGTERM was sent
	at      place    // where it was killed, by what was known beyond its log; empty for its log
	excuses []string // what its failure may be due to; nil: it must not fail
}

// newLife starts a process of the job. Its output goes to out.
func newLife(sluice string, args []string, out io.Writer) (*life, error) {
	l := &life{log: newJobLog(time.Now()), changed: make(chan struct{})}
	var err error
	l.proc, err = sluicecmd.Start(sluice, args, out, l.line)
	return l, err
}

func (l *life) line(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log.line(text, time.Now())
	close(l.changed)
	l.changed = make(chan struct{})
}

// see calls f with the log.
func (l *life) see(f func(*jobLog) bool) (ok bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return f(l.log), l.changed
}

// commits returns how many checkpoints were committed so far.
func (l *life) commits() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.commits
}

// await waits until the log is as f wants it. The error is errEnded, errLate, or why ctx is done.
func (l *life) await(ctx context.Context, f func(*jobLog) bool) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		ok, changed := l.see(f)
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-l.proc.Done():
			if ok, _ := l.see(f); ok {
				return nil
			}
			return errEnded
		case <-late.C:
			return errLate
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ended waits for the end.
func (l *life) ended(ctx context.Context) error {
	err := l.await(ctx, func(*jobLog) bool { return false })
	if errors.Is(err, errEnded) {
		return nil
	}
	return err
}

// pause waits for d, or less when the process ends before: errEnded.
func (l *life) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-l.proc.Done():
		return errEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// kill ends the process with SIGKILL and waits until it is gone. look is called between the two.
func (l *life) kill(look func()) {
	l.proc.Kill()
	if look != nil {
		look()
	}
	<-l.proc.Done()
}

// excuse allows the process to fail for a reason; an empty text is any reason.
func (l *life) excuse(text string) { l.excuses = append(l.excuses, text) }

// killed says whether the process died by our hand, and where.
func (l *life) killed() (place, bool) {
	if !l.proc.Shot() || l.proc.ExitCode() != -1 {
		return "", false
	}
	if l.at != "" {
		return l.at, true
	}
	return l.log.place(), true
}
