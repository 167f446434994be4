package checkpoint

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"
)

// Options configures a Coordinator. The zero value takes checkpoints on demand only.
type Options struct {
	// Interval is the time from the start of one checkpoint to the start of the next in Run. A checkpoint that is due while
	// another one is going on starts right after it; ticks do not pile up. 0: Run takes none, Trigger does.
	Interval time.Duration
	// Timeout is the longest time from the start of a checkpoint until its manifest is saved, the wait for the barrier included.
	// After it the checkpoint is abandoned. 0 means 10 minutes.
	Timeout time.Duration
	// CommitTimeout is the longest time for the commits of one checkpoint together. 0 means the same as Timeout.
	CommitTimeout time.Duration
	// CommitBacklog is how many checkpoints of Run may be durable and not yet committed while the next one is taken, so that slow
	// commits do not hold checkpoints up. Commits stay in order, one at a time. 0: Run commits each before it goes on.
	CommitBacklog int
	// MinPause is the shortest time from the end of one checkpoint to the start of the next in Run. It wins over Interval.
	MinPause time.Duration
	// TolerableFailures is how many failed checkpoints or commits in a row Run accepts. With 0 the first one ends it.
	TolerableFailures int
	// Retain is how many checkpoints are kept. 0 means 1.
	Retain int
	// Config is written into every manifest, for people. It must hold no secrets.
	Config map[string]string
	// Logger gets the few lines that no error carries. nil means none.
	Logger *slog.Logger
	// Observer is told how checkpoints go.
	Observer Observer
}

// DefaultTimeout is Options.Timeout when none is given, as in Flink.
const DefaultTimeout = 10 * time.Minute

// Validate reports all problems together.
func (o Options) Validate() error {
	var errs []error
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"interval", o.Interval}, {"timeout", o.Timeout}, {"commit timeout", o.CommitTimeout}, {"min-pause", o.MinPause},
	} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("%s %v is negative", d.name, d.value))
		}
	}
	if o.TolerableFailures < 0 {
		errs = append(errs, fmt.Errorf("tolerable failures %d is negative", o.TolerableFailures))
	}
	if o.CommitBacklog < 0 {
		errs = append(errs, fmt.Errorf("commit backlog %d is negative", o.CommitBacklog))
	}
	if o.Retain < 0 {
		errs = append(errs, fmt.Errorf("number of retained checkpoints %d is negative", o.Retain))
	}
	return errors.Join(errs...)
}

// withDefaults replaces zeroes that are no legal choice.
func (o Options) withDefaults() Options {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.CommitTimeout == 0 {
		o.CommitTimeout = o.Timeout
	}
	if o.Retain == 0 {
		o.Retain = 1
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Config = maps.Clone(o.Config)
	return o
}
