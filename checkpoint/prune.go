package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// Prune implements Store. It also removes what dead runs have left behind: temporary files, and blobs of checkpoints they did
// not finish.
func (d *DirStore) Prune(ctx context.Context, keep int) error {
	if keep < 1 {
		return fmt.Errorf("prune %s to %d checkpoints: at least one stays", d.path, keep)
	}
	done, err := d.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	epoch, err := d.claimed()
	if err != nil {
		return err
	}
	l, err := d.list()
	if err != nil {
		return err
	}
	if l.epoch() != epoch {
		return fmt.Errorf("this run has epoch %d, but %s says %d: %w", epoch, d.path, l.epoch(), ErrFenced)
	}
	first := max(0, len(l.ids)-keep)
	named, err := d.named(l.ids[first:])
	if err != nil {
		return fmt.Errorf("nothing is pruned: %w", err)
	}
	if err := d.pruneDir(l, first, epoch); err != nil {
		return err // a manifest that may still be there keeps its blobs
	}
	return d.pruneBlobs(named, epoch)
}

// named returns the blob files that the given checkpoints name.
func (d *DirStore) named(ids []ID) (map[string]bool, error) {
	files := make(map[string]bool)
	for _, id := range ids {
		m, err := d.load(id)
		if err != nil {
			return nil, err
		}
		refs, err := m.refs()
		if err != nil {
			return nil, &DamagedError{File: d.manifestPath(id), ID: id, Err: err}
		}
		for _, ref := range refs {
			files[ref.file] = true
		}
	}
	return files, nil
}

// pruneDir removes old manifests, oldest first, and temporary files. It syncs, so that no manifest can come back after its blobs have
// gone.
func (d *DirStore) pruneDir(l listing, first int, epoch int64) error {
	var names []string
	for _, id := range l.ids[:first] {
		names = append(names, manifestName(id))
	}
	for _, name := range l.temps {
		// Those of this run are remains too: it saves one manifest at a time and is pruning now.
		if of, _ := parseTempName(name); of <= epoch {
			names = append(names, name)
		}
	}
	return d.removeAll(d.path, names)
}

// pruneBlobs removes blob files that nobody names, but not those of a checkpoint that is being written, nor of a later epoch.
func (d *DirStore) pruneBlobs(named map[string]bool, epoch int64) error {
	dir := filepath.Join(d.path, blobsName)
	all, err := d.fs.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read checkpoint blobs: %w", err)
	}
	var names []string
	d.mu.Lock()
	for _, name := range all {
		_, of, ok := parseBlobName(name)
		if _, live := d.live[name]; ok && !live && !named[name] && of <= epoch {
			names = append(names, name)
		}
	}
	d.mu.Unlock()
	return d.removeAll(dir, names)
}

// removeAll removes as many as it can and makes that durable.
func (d *DirStore) removeAll(dir string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	var errs []error
	for _, name := range names {
		if err := d.fs.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("prune: %w", err))
		}
	}
	if err := d.fs.SyncDir(dir); err != nil {
		errs = append(errs, fmt.Errorf("prune: sync %s: %w", dir, err))
	}
	return join(errs...)
}
