package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// NewestEpoch returns the greatest epoch that any run has claimed, 0 when there was none. It does not need a claim and changes
// nothing. Beside runs that begin and end it returns one that was the newest at some time during the call, or an older one.
func (d *DirStore) NewestEpoch(ctx context.Context) (int64, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	l, err := d.list()
	if err != nil {
		return 0, err
	}
	epoch, err := d.lastEpoch(l)
	if errors.Is(err, fs.ErrNotExist) && len(l.ids) == 0 {
		return l.epoch(), nil // the first run died before it made the directory of the blobs
	}
	return epoch, err
}

// Live says whether a run holds the store, this DirStore's own claim included, and what the holder says about itself. It does not
// need a claim.
//
// It finds out by taking the lock and giving it back at once, which changes only the text in the lock file. A run that claims the store
// in this very moment waits for it. An error, because the directory
// is read-only for instance, means that it is not known.
func (d *DirStore) Live(ctx context.Context) (live bool, holder string, err error) {
	if ctx.Err() != nil {
		return false, "", context.Cause(ctx)
	}
	d.mu.Lock()
	own := d.lock != nil
	d.mu.Unlock()
	if own {
		return true, fmt.Sprintf("pid %d", os.Getpid()), nil
	}
	path := filepath.Join(d.path, lockName)
	if _, err := d.fileSize(path); errors.Is(err, fs.ErrNotExist) {
		return false, "", nil // nobody has ever held it, and looking must not create it
	}
	lock, err := d.fs.Lock(path, fmt.Sprintf("pid %d, which only looks whether a run is live: try again", os.Getpid()))
	if by, ok := errors.AsType[holding](err); ok {
		return true, by.Holder(), nil
	}
	if err != nil {
		return false, "", fmt.Errorf("look whether a run holds the checkpoint directory: %w", err)
	}
	if err := lock.Close(); err != nil {
		return false, "", fmt.Errorf("unlock checkpoint directory: %w", err)
	}
	return false, "", nil
}
