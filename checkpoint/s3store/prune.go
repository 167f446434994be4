package s3store

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/checkpoint"
)

// namedBlobs are the blobs that a manifest names.
type namedBlobs struct {
	tag   string // ETag of the manifest; "" until it is listed for the first time after this run saved it
	names []string
}

func newNamedBlobs(refs []blobRef) (n namedBlobs) {
	for _, ref := range refs {
		n.names = append(n.names, ref.name)
	}
	return n
}

// Prune implements checkpoint.Store. It also removes what earlier runs have left behind: epochs, and blobs of checkpoints they did
// not finish.
func (s *Store) Prune(ctx context.Context, keep int) error {
	if keep < 1 {
		return fmt.Errorf("prune %s to %d checkpoints: at least one stays", s.dir, keep)
	}
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	c, err := s.claimed()
	if err != nil {
		return err
	}
	l, err := s.look(ctx, "")
	if err != nil {
		return err
	}
	if err := s.rules(c, l); err != nil {
		return err
	}
	first := max(0, len(l.ids)-keep)
	named, err := s.named(ctx, l, l.ids[first:])
	if err != nil {
		return fmt.Errorf("nothing is pruned: %w", err)
	}
	for _, id := range l.ids[:first] { // oldest first, so that what is left after a crash is the end of the history
		if err := s.fs.Delete(ctx, s.manifestPath(id)); err != nil {
			return err // a manifest that may still be there keeps its blobs
		}
	}
	if err := s.deleteAll(ctx, blobPrefix, s.unnamed(l, named, c.epoch)); err != nil {
		return err
	}
	var old []string
	for _, epoch := range l.epochs {
		if epoch < c.epoch {
			old = append(old, epochName(epoch))
		}
	}
	return s.deleteAll(ctx, "", old)
}

// named returns the blobs that the given checkpoints name. Manifests do not change, so one that this run has saved or read is read again only
// when its ETag says that it did.
func (s *Store) named(ctx context.Context, l listing, ids []checkpoint.ID) (map[string]bool, error) {
	all := make(map[string]bool)
	read := make(map[checkpoint.ID]namedBlobs, len(ids))
	for _, id := range ids {
		n, known := s.read[id]
		if tag := l.tags[manifestName(id)]; !known || n.tag != "" && n.tag != tag {
			m, err := s.load(ctx, id)
			if err != nil {
				return nil, err
			}
			refs, err := refsOf(m)
			if err != nil {
				return nil, &checkpoint.DamagedError{File: s.manifestPath(id).String(), ID: id, Err: err}
			}
			n = newNamedBlobs(refs)
		}
		n.tag = l.tags[manifestName(id)]
		read[id] = n
		for _, name := range n.names {
			all[name] = true
		}
	}
	s.read = read
	return all, nil
}

// unnamed returns the blobs that nobody names, but not those of a checkpoint that is being written, nor of a later epoch.
func (s *Store) unnamed(l listing, named map[string]bool, epoch int64) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range l.blobs {
		_, of, _ := parseBlobName(name)
		if _, live := s.live[name]; !live && !named[name] && of <= epoch {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
