package s3store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/s3fs"
)

// maxManifest bounds what is read of a manifest, in bytes, as in a directory store.
const maxManifest = 1 << 30

func (s *Store) manifestPath(id checkpoint.ID) s3fs.Path { return s.path(manifestName(id)) }

// Load implements checkpoint.Store. It does not look at the blobs.
func (s *Store) Load(ctx context.Context, id checkpoint.ID) (checkpoint.Manifest, error) {
	if ctx.Err() != nil {
		return checkpoint.Manifest{}, context.Cause(ctx)
	}
	return s.load(retrymode.WithPriority(ctx), id)
}

func (s *Store) load(ctx context.Context, id checkpoint.ID) (checkpoint.Manifest, error) {
	path := s.manifestPath(id)
	data, err := s.readObject(ctx, path, maxManifest)
	switch {
	case errors.Is(err, s3fs.ErrNotFound):
		return checkpoint.Manifest{}, fmt.Errorf("checkpoint %d: %w: %w", id, checkpoint.ErrNoCheckpoint, err)
	case errors.Is(err, s3fs.ErrChecksum), errors.Is(err, errTooLong):
		return checkpoint.Manifest{}, &checkpoint.DamagedError{File: path.String(), ID: id, Err: err}
	case err != nil:
		return checkpoint.Manifest{}, fmt.Errorf("checkpoint %d: %w", id, err)
	}
	m, err := checkpoint.DecodeManifest(data)
	if err == nil && (m.ID != id || m.Job != s.job || m.Shard != s.shard) {
		err = fmt.Errorf("it is checkpoint %d of job %s, shard %s", m.ID, m.Job, m.Shard)
	}
	if err != nil {
		return checkpoint.Manifest{}, &checkpoint.DamagedError{File: path.String(), ID: id, Err: err}
	}
	return m, nil
}

// Latest implements checkpoint.Store. Intact means that the manifest can be read and that every blob it names is there in full length; the bytes of
// blobs are checked when they are read.
func (s *Store) Latest(ctx context.Context) (checkpoint.Manifest, error) {
	if ctx.Err() != nil {
		return checkpoint.Manifest{}, context.Cause(ctx)
	}
	ctx = retrymode.WithPriority(ctx)
	l, err := s.look(ctx, "")
	for err == nil && len(l.ids) > 0 {
		newest := l.newest()
		m, problem := s.intact(ctx, l, newest)
		if problem == nil {
			return m, nil
		}
		// Beside a live run the newest may have been pruned after it was listed, but then there is a newer one; or its blobs
		// were put after the page they would have been on.
		if l, err = s.look(ctx, ""); err != nil || l.newest() != newest {
			continue
		}
		if m, problem = s.intact(ctx, l, newest); problem == nil {
			return m, nil
		}
		return checkpoint.Manifest{}, s.damage(ctx, l, newest, problem)
	}
	if err != nil {
		return checkpoint.Manifest{}, err
	}
	return checkpoint.Manifest{}, fmt.Errorf("%s: %w", s.dir, checkpoint.ErrNoCheckpoint)
}

// damage returns what Latest says about a newest checkpoint with a problem.
func (s *Store) damage(ctx context.Context, l listing, newest checkpoint.ID, problem error) error {
	if errors.Is(problem, checkpoint.ErrNoCheckpoint) {
		// It is listed and cannot be read. Whoever asks must not take this for a fresh start.
		problem = &checkpoint.DamagedError{File: s.manifestPath(newest).String(), Err: errListed}
	}
	damaged, ok := errors.AsType[*checkpoint.DamagedError](problem)
	if !ok {
		return problem
	}
	damaged.ID = newest
	for _, id := range slices.Backward(l.ids) {
		if id == newest {
			continue
		}
		if _, err := s.intact(ctx, l, id); err == nil {
			damaged.Older = id
			break
		}
	}
	return damaged
}

var errListed = errors.New("the store lists it but does not find it")

// intact loads a manifest and checks that its blobs are there.
func (s *Store) intact(ctx context.Context, l listing, id checkpoint.ID) (checkpoint.Manifest, error) {
	m, err := s.load(ctx, id)
	if err != nil {
		return checkpoint.Manifest{}, err
	}
	refs, err := refsOf(m)
	if err != nil {
		return checkpoint.Manifest{}, &checkpoint.DamagedError{File: s.manifestPath(id).String(), ID: id, Err: err}
	}
	return m, s.checkRefs(l, refs)
}

// checkRefs checks that blobs are there, in full length.
func (s *Store) checkRefs(l listing, refs []blobRef) error {
	for _, ref := range refs {
		size, found := l.blobs[ref.name]
		switch {
		case !found:
			return s.blobDamage(ref, fmt.Errorf("it is not there: %w", fs.ErrNotExist))
		case size != ref.size:
			return s.blobDamage(ref, fmt.Errorf("it has %d bytes, not %d", size, ref.size))
		}
	}
	return nil
}

func (s *Store) blobPath(name string) s3fs.Path { return s.path(blobPrefix + name) }

func (s *Store) blobDamage(ref blobRef, err error) error {
	return &checkpoint.DamagedError{File: s.blobPath(ref.name).String(), ID: ref.id(), Err: err}
}
