package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/sink"
)

// maxRewinds is how often in a row the job goes back without a checkpoint being committed in between.
const maxRewinds = 3

// RewriteError says that the rows of a lost upload cannot be written again: no retained checkpoint is old enough. Nothing was taken back, and
// nothing is published twice.
type RewriteError struct {
	Lost     error    // an *sink.ExpiredError
	Retained []string // each older checkpoint, and why it does not do
}

func (e *RewriteError) Error() string {
	why := "there is no older one"
	if len(e.Retained) > 0 {
		why = strings.Join(e.Retained, "; ")
	}
	return fmt.Sprintf("the rows cannot be written again, no retained checkpoint is old enough: %s; nothing was changed, a greater %s keeps more, "+
		"and %s decides what happens now: %v",
		why, sink.KeyCheckpointRetained.Name(), sink.KeyExpiredUpload.Name(), e.Lost)
}

func (e *RewriteError) Unwrap() error { return e.Lost }

// checkRewrite finds out at the start whether rows can be written again at all, if that is asked for.
func checkRewrite(policy sink.ExpiredPolicy, source checkpoint.Participant, retained int) error {
	if policy != sink.ExpiredRewrite {
		return nil
	}
	where := fmt.Sprintf("%s = %s", sink.KeyExpiredUpload.Name(), policy)
	if err := checkpoint.RequireRewindable(source); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	if retained < 2 {
		return fmt.Errorf("%s needs an older checkpoint to go back to: %s is %d, at least 2 are needed", where, sink.KeyCheckpointRetained.Name(), retained)
	}
	return nil
}

// lost returns the upload that is gone and whose rows are to be written again, nil if err is not about one.
func (j *Job) lost(err error) *sink.ExpiredError {
	if j.sink.Expired != sink.ExpiredRewrite {
		return nil
	}
	e, _ := errors.AsType[*sink.ExpiredError](err)
	return e
}

// noteLost ends the attempt when a commit has found that an upload is gone, however many failures are tolerated: the older checkpoints are
// still there.
func (a *attempt) noteLost(err error) {
	if a.job.lost(err) == nil {
		return
	}
	select {
	case a.lost <- err:
	default: // one is enough
	}
}

// awaitLost returns what noteLost was told, and nil when ctx ends.
func (a *attempt) awaitLost(ctx context.Context) error {
	select {
	case err := <-a.lost:
		return err
	case <-ctx.Done():
		return nil
	}
}

// claiming notes the epoch that a run has claimed.
type claiming struct {
	checkpoint.Store
	epoch *int64
}

func (c claiming) Claim(ctx context.Context) (epoch int64, err error) {
	if epoch, err = c.Store.Claim(ctx); err == nil {
		*c.epoch = epoch
	}
	return epoch, err
}

// rewind makes the newest retained checkpoint from which every row can be written again the newest of all. What was published behind it is
// taken back by the next restore. It is refused when another run has taken the job over: the upload is gone because that one has published
// the file, for all that is known.
func (j *Job) rewind(ctx context.Context, lost error) (err error) {
	store, err := newCheckpointStore(j.fs, j.dir, j.sink.Job, j.sink.Shard)
	if err != nil {
		return err
	}
	defer func() { err = joined(err, store.Close()) }()
	i := &inspection{store: placed{store, j.dir}, sink: j.sink, warnAge: j.warnAge, now: time.Now()}
	refused := &RewriteError{Lost: lost}
	line, err := i.line(ctx, refused)
	if err != nil {
		return err
	}
	for _, id := range line[min(1, len(line)):] {
		c := &checkpointCheck{fs: j.fs, goingBack: true, inspection: i}
		v, err := c.verify(ctx, id)
		if err != nil {
			return fmt.Errorf("look for a checkpoint to go back to: %w", err)
		}
		if !v.Good {
			refused.Retained = append(refused.Retained, fmt.Sprintf("checkpoint %d: %s", id, v.obstacle()))
			continue
		}
		now, err := checkpoint.Rewind(ctx, store, j.epoch, id, rewoundStates)
		if err != nil {
			return err
		}
		j.log.Warn("an upload is gone: going back, its rows are written again", "back_to", int64(id), "as_checkpoint", int64(now), "error", lost)
		return nil
	}
	return refused
}

// line returns the retained checkpoints that the newest one follows from, newest first. Those that the job has left behind by going back
// are not among them, nor those before one that cannot be read, since nobody knows what it has left behind.
func (i *inspection) line(ctx context.Context, refused *RewriteError) (line []checkpoint.ID, err error) {
	ids, err := i.store.List(ctx)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	last := ids[len(ids)-1]
	for _, id := range slices.Backward(ids) {
		if id > last {
			refused.Retained = append(refused.Retained, fmt.Sprintf("checkpoint %d: the job has gone back behind it before", id))
			continue
		}
		d, err := i.details(ctx, id)
		if _, damaged := errors.AsType[*checkpoint.DamagedError](err); damaged || errors.Is(err, sink.ErrState) {
			refused.Retained = append(refused.Retained, fmt.Sprintf("checkpoint %d and those before it: %v", id, err))
			return line, nil
		}
		if err != nil {
			return nil, fmt.Errorf("look for a checkpoint to go back to: %w", err)
		}
		line = append(line, id)
		if last = id; d.BackTo > 0 {
			last = d.BackTo
		}
	}
	return line, nil
}

// rewoundStates are the states to go on from: those of the older checkpoint, and the sink's with what it has to take back.
func rewoundStates(older, newest checkpoint.Manifest) ([]checkpoint.NamedState, error) {
	states := slices.Clone(older.States)
	for i, s := range states {
		if s.Name != sink.ParticipantName {
			continue
		}
		for _, n := range newest.States {
			if n.Name == s.Name {
				state, err := sink.Rewound(s.State, n.State, older.ID)
				states[i].State = state
				return states, err
			}
		}
	}
	return nil, fmt.Errorf("checkpoints %d and %d: %w: there is none of a sink", older.ID, newest.ID, sink.ErrState)
}

// obstacle is the first reason why a checkpoint cannot be restored.
func (v *CheckpointVerdict) obstacle() string {
	switch {
	case len(v.Problems) > 0:
		return v.Problems[0]
	case len(v.DamagedBlobs) > 0:
		return v.DamagedBlobs[0]
	}
	for _, f := range v.Files {
		if !f.Outcome.good() {
			return fmt.Sprintf("%s is %s: %s", f.Key, f.Outcome, f.Detail)
		}
	}
	return "unknown"
}
