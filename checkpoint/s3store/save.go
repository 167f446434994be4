package s3store

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/checkpoint"
)

// Save implements checkpoint.Store. When ctx ends while the manifest is on its way, Save takes up to 20 s more to find out whether
// it was saved; if it was, Save succeeds.
func (s *Store) Save(ctx context.Context, m checkpoint.Manifest) error {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	c, err := s.claimed()
	if err != nil {
		return err
	}
	data, refs, err := s.encode(m, c)
	if err != nil {
		return err
	}
	l, err := s.look(ctx, "")
	if err != nil {
		return err
	}
	if err := s.checkTurn(l, m.ID, c); err != nil {
		return err // also when blobs are missing: another run may have pruned them
	}
	if err := s.checkRefs(l, refs); err != nil {
		return err
	}
	if err := s.publish(ctx, m.ID, c, data); err != nil {
		return err
	}
	s.read[m.ID] = newNamedBlobs(refs)
	return nil
}

// encode checks that m is this run's and returns its bytes and what it names.
func (s *Store) encode(m checkpoint.Manifest, c claim) ([]byte, []blobRef, error) {
	if m.Epoch != c.epoch {
		return nil, nil, fmt.Errorf("epoch %d, but epoch %d was claimed since: %w", m.Epoch, c.epoch, checkpoint.ErrFenced)
	}
	if m.Job == "" && m.Shard == "" {
		m.Job, m.Shard = s.job, s.shard
	}
	if m.Job != s.job || m.Shard != s.shard {
		return nil, nil, fmt.Errorf("manifest of job %q, shard %q in %s", m.Job, m.Shard, s.dir)
	}
	data, err := m.Encode()
	if err != nil {
		return nil, nil, err
	}
	if len(data) > maxManifest {
		return nil, nil, fmt.Errorf("manifest of %d bytes, more than the %d allowed: large state belongs into blobs", len(data), maxManifest)
	}
	refs, err := refsOf(m)
	return data, refs, err
}

// checkTurn checks that this run still rules and that id is the next number. That numbers have no gaps is what makes them a
// fence: whoever wants to continue from checkpoint n has to create the one object of n+1.
func (s *Store) checkTurn(l listing, id checkpoint.ID, c claim) error {
	if err := s.rules(c, l); err != nil {
		return err
	}
	if newest := l.newest(); newest != id-1 {
		return fmt.Errorf("%s has checkpoint %d as its newest, so %d cannot be the next: %w", s.dir, newest, id, checkpoint.ErrFenced)
	}
	return nil
}

// publish creates the manifest's object.
func (s *Store) publish(ctx context.Context, id checkpoint.ID, c claim, data []byte) error {
	path := s.manifestPath(id)
	switch got, err := s.create(ctx, path, data); got {
	case created:
	case taken:
		return fmt.Errorf("%w: %w", checkpoint.ErrFenced, err)
	case absent:
		return fmt.Errorf("save checkpoint %d: %w", id, err)
	default:
		return fmt.Errorf("%s: %w: %w", path, checkpoint.ErrAmbiguous, err)
	}
	// From here on others see it, and it is not taken back: a run that took over may be building on it already.
	//
	// A run that claims the next epoch after this look finds the manifest and continues from it. One that claimed before may
	// have found it or not; it decides what becomes of it, not we.
	l, err := insist(ctx, func(ctx context.Context) (listing, error) { return s.look(ctx, epochPrefix) })
	if err != nil {
		return fmt.Errorf("%s: %w: %w", path, checkpoint.ErrAmbiguous, err)
	}
	if err := s.rules(c, l); err != nil {
		return fmt.Errorf("while checkpoint %d was saved: %w", id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, of := range s.live {
		if of <= id {
			delete(s.live, name)
		}
	}
	return nil
}
