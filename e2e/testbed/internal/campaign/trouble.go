package campaign

import (
	"context"
	"errors"
	"time"
)

// What the system says, in its own words.
const (
	noRoom   = "no space left on device"
	readOnly = "read-only file system"
)

// trouble does to the world of a running process what the plan says.
func (j *job) trouble(ctx context.Context, l *life, p lifePlan) error {
	switch p.trouble {
	case serverUploads, serverComplete:
		return j.serverTrouble(ctx, l, p)
	case diskFull, diskReadOnly:
		if j.disk != nil {
			return j.diskTrouble(ctx, l, p)
		}
	}
	return nil
}

// serverTrouble kills the server under a running process.
func (j *job) serverTrouble(ctx context.Context, l *life, p lifePlan) error {
	if err := l.await(ctx, (*jobLog).running); err != nil {
		return err
	}
	if p.trouble == serverUploads {
		if err := l.pause(ctx, time.Duration(p.fraction*2*float64(j.p.interval))); err != nil {
			return err
		}
	} else {
		for range maxMisses {
			hit, err := j.awaitComplete(ctx, l)
			if err != nil {
				return err
			}
			if hit {
				break
			}
		}
	}
	l.excuse("") // what a client says about a server that is away has many words
	j.tally.Troubles[p.trouble]++
	var dies *life
	if p.both {
		dies = l
	}
	if err := j.killServer(ctx, p.down, dies); err != nil {
		return err
	}
	if p.both {
		return errEnded
	}
	return nil
}

// diskTrouble takes the disk of the checkpoints away until the process has complained, and then gives it back. The process either
// goes on or fails for that reason.
func (j *job) diskTrouble(ctx context.Context, l *life, p lifePlan) error {
	if err := l.await(ctx, func(g *jobLog) bool { return g.running() && g.commits >= p.after }); err != nil {
		return err
	}
	reason := noRoom
	take := j.disk.fill
	if p.trouble == diskReadOnly {
		reason, take = readOnly, j.disk.readOnly
	}
	l.excuse(reason)
	give, err := take()
	if err != nil {
		return err
	}
	j.tally.Troubles[p.trouble]++
	complained := l.await(ctx, func(g *jobLog) bool { return g.said(reason) })
	if err := give(); err != nil {
		return err
	}
	if complained != nil {
		return complained
	}
	commits := l.commits()
	return l.await(ctx, func(g *jobLog) bool { return g.commits > commits })
}

// suffer does what the plan says before the next process starts.
func (j *job) suffer(ctx context.Context, p lifePlan) error {
	switch p.mishap {
	case noMishap:
		return nil
	case serverRestart:
		if err := j.quiet(ctx); err != nil {
			return err
		}
		j.tally.Mishaps[p.mishap]++
		return j.killServer(ctx, 0, nil)
	case startFull, startReadOnly:
		if j.disk == nil {
			return nil
		}
		return j.startWithoutDisk(ctx, p)
	default:
		return j.startDamaged(ctx, p)
	}
}

// startWithoutDisk starts a process that cannot write its checkpoints. It has to say so and to publish nothing.
func (j *job) startWithoutDisk(ctx context.Context, p lifePlan) (err error) {
	reason, take := noRoom, j.disk.fill
	if p.mishap == startReadOnly {
		reason, take = readOnly, j.disk.readOnly
	}
	give, err := take()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, give()) }()
	j.tally.Mishaps[p.mishap]++
	return j.refused(ctx, p, false, reason)
}

// refused starts a process that has to fail at once, for the reason, and to publish nothing. With mayRun it may run as well; then it
// is killed as planned.
func (j *job) refused(ctx context.Context, p lifePlan, mayRun bool, reason string) error {
	if err := j.stillness(ctx); err != nil {
		return err
	}
	before, err := objects(j.c.bucket(), j.p.name())
	if err != nil {
		return err
	}
	ran := false
	err = j.live(ctx, func(ctx context.Context, l *life) error {
		l.excuse(reason)
		err := l.await(ctx, (*jobLog).running)
		if ran = err == nil; ran && !mayRun {
			return failf("%s: the job runs all the same", p.mishap)
		}
		if ran {
			err = j.aim(ctx, l, p)
		}
		if errors.Is(err, errEnded) {
			return nil
		}
		if err == nil {
			j.kill(l)
		}
		return err
	})
	if err != nil || ran {
		return err
	}
	after, err := objects(j.c.bucket(), j.p.name())
	if err != nil {
		return err
	}
	return unchanged(string(p.mishap), before, after)
}

// unchanged compares two listings.
func unchanged(what string, before, after map[string]int64) error {
	for key, size := range after {
		if old, there := before[key]; !there || old != size {
			return failf("%s: the process that was refused has published %s", what, key)
		}
	}
	if len(after) != len(before) {
		return failf("%s: the process that was refused has removed objects: %d are left of %d", what, len(after), len(before))
	}
	return nil
}
