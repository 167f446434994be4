package sink

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/sluice-go/sluice/checkpoint"
)

// SweepStore is what a sweep asks of a checkpoint store. Nothing of it needs a claim. *checkpoint.DirStore is one.
type SweepStore interface {
	// NewestEpoch returns the greatest epoch that any run has claimed, 0 when there was none.
	NewestEpoch(ctx context.Context) (int64, error)
	// Live says whether a run holds the store and what is known about it. An error means that it is not known.
	Live(ctx context.Context) (live bool, holder string, err error)
	// List and Load read the retained checkpoints, as in checkpoint.Store.
	List(ctx context.Context) ([]checkpoint.ID, error)
	Load(ctx context.Context, id checkpoint.ID) (checkpoint.Manifest, error)
}

var _ SweepStore = (*checkpoint.DirStore)(nil)

// retainedTries is how often the retained checkpoints are read when a live run prunes them meanwhile. It prunes once per checkpoint,
// which takes longer than a look.
const retainedTries = 50

// errRestless is returned when checkpoints go away faster than they can be read.
var errRestless = errors.New("checkpoints are replaced faster than they can be read")

// retainedUploads returns what the checkpoints in a store name. One that cannot be read or understood is an error: what it names is
// not known. Beside a live run the result holds for some moment during the call.
func retainedUploads(ctx context.Context, s SweepStore) (named []NamedUpload, ids []checkpoint.ID, err error) {
	for range retainedTries {
		if ids, err = s.List(ctx); err != nil {
			return nil, nil, err
		}
		named, err = namedBy(ctx, s, ids)
		if !errors.Is(err, checkpoint.ErrNoCheckpoint) {
			return named, ids, err
		}
		// Pruned since it was listed. What it named and still matters is in a newer one.
	}
	return nil, nil, errRestless
}

func namedBy(ctx context.Context, s SweepStore, ids []checkpoint.ID) (named []NamedUpload, err error) {
	for _, id := range ids {
		m, err := s.Load(ctx, id)
		if err != nil {
			return nil, err
		}
		info, err := InspectManifest(m)
		if err != nil {
			return nil, err
		}
		named = append(named, info.named(fmt.Sprintf("checkpoint %d", id))...)
	}
	return named, nil
}

// named lists the files of a state.
func (i StateInfo) named(by string) []NamedUpload {
	out := make([]NamedUpload, len(i.Files))
	for n, f := range i.Files {
		out[n] = NamedUpload{Key: f.Handle.Target.Key, UploadID: f.Handle.UploadID, By: by}
	}
	return out
}

// manifestFile is the name of a checkpoint in the directory of a checkpoint.DirStore.
var manifestFile = regexp.MustCompile(`^chk-[0-9]{20}\.json$`)

// maxManifestBytes bounds what is read of a savepoint's manifest, as the store does.
const maxManifestBytes = 1 << 30

// savepointUploads returns what the checkpoints anywhere below a directory name, of whatever job, and how many there are. A
// directory without any, or with one that cannot be read, is an error: it was named because it matters.
func savepointUploads(ctx context.Context, dir string) (named []NamedUpload, count int, err error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, 0, fmt.Errorf("savepoint: %w", err)
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !manifestFile.MatchString(d.Name()):
			return refuseLinkedDir(path, d)
		}
		info, err := readManifestFile(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		named = append(named, info.named("savepoint "+path)...)
		count++
		return nil
	})
	if err == nil && count == 0 {
		err = errors.New("there is no checkpoint in it")
	}
	if err != nil {
		return nil, 0, fmt.Errorf("savepoint %s: %w", dir, err)
	}
	return named, count, nil
}

// refuseLinkedDir refuses a symbolic link to a directory, since the walk would pass over the checkpoints in there.
func refuseLinkedDir(path string, d fs.DirEntry) error {
	if d.Type()&fs.ModeSymlink == 0 {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a link to a directory: name that directory itself", path)
	}
	return nil
}

func readManifestFile(path string) (StateInfo, error) {
	stat, err := os.Stat(path)
	if err != nil {
		return StateInfo{}, err
	}
	if stat.Size() > maxManifestBytes {
		return StateInfo{}, fmt.Errorf("%d bytes, more than the %d a manifest may have", stat.Size(), maxManifestBytes)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return StateInfo{}, err
	}
	m, err := checkpoint.DecodeManifest(text)
	if err != nil {
		return StateInfo{}, err
	}
	return InspectManifest(m)
}
