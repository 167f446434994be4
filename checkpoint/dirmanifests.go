package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
)

func (d *DirStore) manifestPath(id ID) string { return filepath.Join(d.path, manifestName(id)) }

// maxManifest bounds what is read of a manifest file: state that large belongs into blobs.
const maxManifest = 1 << 30

// List implements Store.
func (d *DirStore) List(ctx context.Context) ([]ID, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	l, err := d.list()
	return l.ids, err
}

// Load implements Store. It does not look at the blobs.
func (d *DirStore) Load(ctx context.Context, id ID) (Manifest, error) {
	if ctx.Err() != nil {
		return Manifest{}, context.Cause(ctx)
	}
	return d.load(id)
}

func (d *DirStore) load(id ID) (Manifest, error) {
	path := d.manifestPath(id)
	data, err := d.readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, fmt.Errorf("checkpoint %d: %w: %w", id, ErrNoCheckpoint, err)
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("read checkpoint %d: %w", id, err)
	}
	m, err := DecodeManifest(data)
	if err == nil && (m.ID != id || m.Job != d.job || m.Shard != d.shard) {
		err = fmt.Errorf("it is checkpoint %d of job %s, shard %s", m.ID, m.Job, m.Shard)
	}
	if err != nil {
		return Manifest{}, &DamagedError{File: path, ID: id, Err: err}
	}
	return m, nil
}

// Latest implements Store. Intact means that the manifest can be read and that every blob it names is there in full length; the bytes of
// blobs are checked when they are read.
func (d *DirStore) Latest(ctx context.Context) (Manifest, error) {
	ids, err := d.List(ctx)
	for err == nil && len(ids) > 0 {
		newest := ids[len(ids)-1]
		m, problem := d.intact(newest)
		if problem == nil {
			return m, nil
		}
		// Beside a live run the newest may have been pruned after it was listed, but then there is a newer one.
		if ids, err = d.List(ctx); err != nil || len(ids) > 0 && ids[len(ids)-1] != newest {
			continue
		}
		damaged, ok := errors.AsType[*DamagedError](problem)
		if !ok {
			return Manifest{}, problem
		}
		damaged.ID = newest
		for _, id := range slices.Backward(ids) {
			if _, err := d.intact(id); id < newest && err == nil {
				damaged.Older = id
				break
			}
		}
		return Manifest{}, damaged
	}
	if err != nil {
		return Manifest{}, err
	}
	return Manifest{}, fmt.Errorf("%s: %w", d.path, ErrNoCheckpoint)
}

// intact loads a manifest and checks that its blobs are there.
func (d *DirStore) intact(id ID) (Manifest, error) {
	m, err := d.load(id)
	if err != nil {
		return Manifest{}, err
	}
	refs, err := m.refs()
	if err != nil {
		return Manifest{}, &DamagedError{File: d.manifestPath(id), ID: id, Err: err}
	}
	return m, d.checkRefs(refs)
}

// refs returns all blob refs that m names.
func (m Manifest) refs() (refs []blobRef, err error) {
	for _, s := range m.States {
		for _, text := range s.Refs {
			ref, err := parseRef(text)
			if err != nil {
				return nil, fmt.Errorf("state of %s: %w", s.Name, err)
			}
			refs = append(refs, ref)
		}
	}
	return refs, nil
}

// checkRefs checks that blobs are there, in full length.
func (d *DirStore) checkRefs(refs []blobRef) error {
	sizes := make(map[string]int64)
	for _, ref := range refs {
		size, known := sizes[ref.file]
		if !known {
			var err error
			if size, err = d.fileSize(d.blobPath(ref.file)); err != nil {
				return d.blobError(ref, err)
			}
			sizes[ref.file] = size
		}
		if err := d.checkBounds(ref, size); err != nil {
			return err
		}
	}
	return nil
}

// Save implements Store.
func (d *DirStore) Save(ctx context.Context, m Manifest) error {
	done, err := d.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	epoch, err := d.claimed()
	if err != nil {
		return err
	}
	if m.Epoch != epoch {
		return fmt.Errorf("epoch %d, but epoch %d was claimed since: %w", m.Epoch, epoch, ErrFenced)
	}
	if m.Job == "" && m.Shard == "" {
		m.Job, m.Shard = d.job, d.shard
	}
	if m.Job != d.job || m.Shard != d.shard {
		return fmt.Errorf("manifest of job %q, shard %q in %s", m.Job, m.Shard, d.path)
	}
	data, err := m.Encode()
	if err != nil {
		return err
	}
	if len(data) > maxManifest {
		return fmt.Errorf("manifest of %d bytes, more than the %d allowed: large state belongs into blobs", len(data), maxManifest)
	}
	refs, err := m.refs()
	if err == nil {
		err = d.checkRefs(refs)
	}
	if err != nil {
		return d.why(epoch, err)
	}
	if err := d.checkTurn(m.ID, epoch); err != nil {
		return err
	}
	err = d.publish(ctx, m.ID, epoch, data)
	if err == nil || errors.Is(err, ErrFenced) {
		return err
	}
	return d.why(epoch, err)
}

// why looks whether an error comes from another run that took over and removed the files of this one.
func (d *DirStore) why(epoch int64, err error) error {
	if l, look := d.list(); look == nil && l.epoch() > epoch {
		return fmt.Errorf("epoch %d was claimed since: %w: %w", l.epoch(), ErrFenced, err)
	}
	return err
}

// checkTurn checks that this run still rules and that id is the next number. That numbers have no gaps is what makes them a
// fence: whoever wants to continue from checkpoint n has to create the one file of n+1.
func (d *DirStore) checkTurn(id ID, epoch int64) error {
	l, err := d.list()
	switch newest := l.newest(); {
	case err != nil:
		return err
	case l.epoch() != epoch:
		return fmt.Errorf("this run has epoch %d, but %s says %d: %w", epoch, d.path, l.epoch(), ErrFenced)
	case newest >= id:
		return fmt.Errorf("%s already has checkpoint %d: %w", d.path, newest, ErrFenced)
	case newest != id-1:
		return fmt.Errorf("%s has checkpoint %d as its newest, so %d cannot be the next: %w", d.path, newest, id, ErrFenced)
	}
	return nil
}

// publish writes the manifest aside and gives it its name.
func (d *DirStore) publish(ctx context.Context, id ID, epoch int64, data []byte) error {
	temp := filepath.Join(d.path, tempName(epoch, d.next()))
	defer func() { _ = d.fs.Remove(temp) }() // Prune removes it otherwise
	if err := d.writeFile(temp, data); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	path := d.manifestPath(id)
	if err := d.linkNew(temp, path); err != nil {
		return d.unpublished(path, err)
	}
	// From here on others see it, and it is not taken back: a run that took over may be building on it already.
	if err := d.fs.SyncDir(d.path); err != nil {
		return fmt.Errorf("%s: %w: sync directory: %w", path, ErrAmbiguous, err)
	}
	// A run that claims the next epoch after this look finds the manifest and continues from it. One that claimed before may
	// have found it or not; it decides what becomes of it, not we.
	switch l, err := d.list(); {
	case err != nil:
		return fmt.Errorf("%s: %w: %w", path, ErrAmbiguous, err)
	case l.epoch() != epoch:
		return fmt.Errorf("epoch %d was claimed while epoch %d saved checkpoint %d: %w", l.epoch(), epoch, id, ErrFenced)
	}
	d.mu.Lock()
	for name, of := range d.live {
		if of <= id {
			delete(d.live, name)
		}
	}
	d.mu.Unlock()
	return nil
}

// unpublished tells what the failure to give a manifest its name means.
func (d *DirStore) unpublished(path string, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w: %w", path, ErrFenced, err)
	}
	if _, look := d.fileSize(path); errors.Is(look, fs.ErrNotExist) {
		return fmt.Errorf("publish manifest: %w", err)
	}
	return fmt.Errorf("%s: %w: %w", path, ErrAmbiguous, err)
}

// linkNew gives a file a name that must not exist. Without hard links it looks first and then renames: the lock has to do then.
func (d *DirStore) linkNew(from, to string) error {
	err := d.fs.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) || !linksUnsupported(err) {
		return err
	}
	if _, err := d.fileSize(to); err == nil {
		return fs.ErrExist
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.fs.Rename(from, to)
}

// writeFile creates a file and syncs it. What is left after an error is removed as far as possible.
func (d *DirStore) writeFile(path string, data []byte) error {
	f, err := d.fs.Create(path)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = d.fs.Remove(path)
	}
	return err
}

func (d *DirStore) readFile(path string) ([]byte, error) {
	f, err := d.fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > maxManifest {
		return nil, fmt.Errorf("%s has %d bytes, more than the %d allowed", path, size, maxManifest)
	}
	return io.ReadAll(io.NewSectionReader(f, 0, size))
}

func (d *DirStore) fileSize(path string) (int64, error) {
	f, err := d.fs.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.Size()
}
