package s3store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-go/sluice/checkpoint"
)

// claimTries is how many other runs may claim an epoch at the same time before this one gives up.
const claimTries = 8

// epochBody is the content of an epoch's object. Run is random, so that a run can tell its own object from one that another run
// made in the same instant.
type epochBody struct {
	Job       string    `json:"job"`
	Shard     string    `json:"shard"`
	Epoch     int64     `json:"epoch"`
	Run       string    `json:"run"`
	ClaimedAt time.Time `json:"claimedAt"`
}

// Claim implements checkpoint.Store, except that it does not find out whether the run before is still alive: it takes over, and that run is
// fenced off at its next checkpoint. ErrEpochTaken means that too many runs claimed at the same time.
func (s *Store) Claim(ctx context.Context) (int64, error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	for range claimTries {
		l, err := s.look(ctx, "")
		if err != nil {
			return 0, err
		}
		last, err := s.lastEpoch(ctx, l)
		if err != nil {
			return 0, err
		}
		if last == math.MaxInt64 {
			return 0, fmt.Errorf("%s: epoch numbers are used up", s.dir)
		}
		c, err := s.claimEpoch(ctx, last+1)
		if err != nil {
			return 0, fmt.Errorf("claim epoch %d: %w", last+1, err)
		}
		if c.epoch == 0 {
			continue
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.claim = c
		clear(s.live) // whoever wrote those is fenced off now
		return c.epoch, nil
	}
	return 0, &checkpoint.TakenError{
		Dir: s.dir.String(), Holder: fmt.Sprintf("other runs claimed an epoch at the same time, %d times in a row", claimTries),
	}
}

// claimEpoch creates the object of an epoch. A zero claim means that another run was faster.
func (s *Store) claimEpoch(ctx context.Context, epoch int64) (claim, error) {
	data, err := json.Marshal(epochBody{Job: s.job, Shard: s.shard, Epoch: epoch, Run: rand.Text(), ClaimedAt: time.Now().UTC()})
	if err != nil {
		return claim{}, err
	}
	path := s.path(epochName(epoch))
	switch got, err := s.create(ctx, path, append(data, '\n')); got {
	case created:
	case taken:
		return claim{}, nil
	default:
		return claim{}, err
	}
	// The object of this epoch may have been there before and have been pruned since, by a run with a greater epoch. That one
	// is there then.
	l, err := s.look(ctx, epochPrefix)
	if err != nil {
		return claim{}, err
	}
	if l.epoch() != epoch {
		return claim{}, nil
	}
	// Without conditional PUT another run may have overwritten the object. What is read now belongs to the ETag that was
	// listed, or to a later one, and then rules notices.
	if got, err := s.compare(ctx, path, append(data, '\n')); err != nil {
		return claim{}, err
	} else if got != created {
		return claim{}, nil
	}
	return claim{epoch: epoch, tag: l.tags[epochName(epoch)]}, nil
}

// lastEpoch returns the greatest epoch that left a trace. Blobs and manifests count too, so that object names, which contain the epoch,
// do not repeat even when somebody copied a prefix without its epochs.
func (s *Store) lastEpoch(ctx context.Context, l listing) (int64, error) {
	last := l.epoch()
	for name := range l.blobs {
		_, epoch, _ := parseBlobName(name)
		last = max(last, epoch)
	}
	var damage error
	for _, id := range slices.Backward(l.ids) {
		m, err := s.load(ctx, id)
		if err == nil {
			return max(last, m.Epoch), nil // those of older ones are not greater
		}
		_, damaged := errors.AsType[*checkpoint.DamagedError](err)
		if !damaged && !errors.Is(err, checkpoint.ErrNoCheckpoint) { // none: pruned meanwhile
			return 0, err
		}
		damage = errors.Join(damage, err)
	}
	if damage != nil && l.epoch() == 0 {
		return 0, fmt.Errorf("the epoch's object is gone and the epoch is not to be had from a manifest: %w", damage)
	}
	return last, nil
}
