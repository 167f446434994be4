package campaign

import (
	"context"
	"time"
)

// lengths are what places are expected to last. They are learned from the processes before.
type lengths struct{ start, store, commit time.Duration }

var firstLengths = lengths{start: 150 * time.Millisecond, store: 40 * time.Millisecond, commit: 40 * time.Millisecond}

// learn takes what a process has shown.
func (s *lengths) learn(g *jobLog) {
	for _, l := range []struct {
		mean *time.Duration
		seen time.Duration
	}{{&s.start, g.startLength}, {&s.store, g.storeLength}, {&s.commit, g.commitLength}} {
		if l.seen > 0 {
			*l.mean = (*l.mean + l.seen) / 2
		}
	}
}

// of prefers what this process has shown itself.
func (s lengths) of(l *life) lengths {
	l.see(func(g *jobLog) bool {
		if g.storeLength > 0 {
			s.store = g.storeLength
		}
		if g.commitLength > 0 {
			s.commit = g.commitLength
		}
		return true
	})
	return s
}

const (
	// stoppingLength is about how long a job takes to end after SIGTERM.
	stoppingLength = 100 * time.Millisecond
	// cleaningLength is about how long the deletion of old checkpoints takes.
	cleaningLength = 4 * time.Millisecond
	// maxMisses is how often a place may be over before the moment in it has come. After that the job is struck wherever it is.
	maxMisses = 4
	// lookEvery is how often the server's directory is looked at for a Complete that runs.
	lookEvery = time.Millisecond
)

// aim waits for the moment of a kill. It returns nil when it has come.
func (j *job) aim(ctx context.Context, l *life, p lifePlan) error {
	frac := func(d time.Duration) time.Duration { return time.Duration(p.fraction * float64(d)) }
	if p.end == starting {
		return l.pause(ctx, frac(j.c.lengths.start))
	}
	if err := l.await(ctx, (*jobLog).running); err != nil {
		return err
	}
	commits := func(g *jobLog) bool { return g.commits >= p.after }
	if p.end == finishing { // the only checkpoint is the last one
		if err := l.await(ctx, func(g *jobLog) bool { return g.begun > 0 }); err != nil {
			return err
		}
		return l.pause(ctx, frac(j.c.lengths.store+j.c.lengths.commit))
	}
	if err := l.await(ctx, commits); err != nil {
		return err
	}
	for miss := range maxMisses {
		shorter := func(d time.Duration) time.Duration { return frac(d) >> miss }
		hit, err := j.approach(ctx, l, p.end, shorter)
		if err != nil || hit {
			return err
		}
	}
	return nil
}

// approach waits for the next time that the process is at a place, and then for the moment in it. hit is false when the place was
// over before.
func (j *job) approach(ctx context.Context, l *life, at place, frac func(time.Duration) time.Duration) (hit bool, err error) {
	is := func(want place) func(*jobLog) bool {
		return func(g *jobLog) bool { return g.place() == want }
	}
	if at == completing && j.p.file < partSize {
		at = committing // such files are published without a Complete
	}
	expect := j.c.lengths.of(l)
	switch at {
	case storing:
		if err := l.await(ctx, is(storing)); err != nil {
			return false, err
		}
		err = l.pause(ctx, frac(expect.store))
	case committing:
		if err := l.await(ctx, is(committing)); err != nil {
			return false, err
		}
		err = l.pause(ctx, frac(expect.commit))
	case completing:
		return j.awaitComplete(ctx, l)
	case cleaning:
		commits := l.commits()
		if err := l.await(ctx, func(g *jobLog) bool { return g.commits > commits }); err != nil {
			return false, err
		}
		l.at = cleaning
		return true, l.pause(ctx, frac(cleaningLength))
	case between:
		if err := l.await(ctx, is(between)); err != nil {
			return false, err
		}
		err = l.pause(ctx, frac(j.p.interval))
	case stopping:
		l.tell()
		return true, l.pause(ctx, frac(stoppingLength))
	}
	hit, _ = l.see(is(at))
	return hit, err
}

// awaitComplete waits until the server is seen completing an upload. hit is false when the commit has ended without.
func (j *job) awaitComplete(ctx context.Context, l *life) (hit bool, err error) {
	commits := l.commits()
	if err := l.await(ctx, func(g *jobLog) bool { return len(g.committing) > 0 || g.commits > commits }); err != nil {
		return false, err
	}
	until := time.Now().Add(patience)
	for time.Now().Before(until) {
		if len(j.newClaims()) > 0 {
			return true, nil
		}
		if over, _ := l.see(func(g *jobLog) bool { return len(g.committing) == 0 }); over {
			return false, nil
		}
		if err := l.pause(ctx, lookEvery); err != nil {
			return false, err
		}
	}
	return false, errLate
}

// tell sends SIGTERM.
func (l *life) tell() {
	l.told = true
	l.proc.Stop()
}
