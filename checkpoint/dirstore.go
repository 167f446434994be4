package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// DirStore keeps the checkpoints of one shard of one job in a directory, <dir>/<job>/<shard>. It survives the death of the process
// and of the machine at any point, as far as the file system keeps what was synced.
//
// One live run holds it, by a lock that the operating system gives back when the process dies. The lock is not trusted
// alone (it may be deleted, or not work on a network file system): epochs and checkpoint numbers are won by creating a file
// that must not exist, and a run looks before and after each manifest whether a later epoch has been claimed.
//
// Safe for concurrent use. Latest, Load, List and OpenBlob work without a claim, beside a live run.
type DirStore struct {
	fs    files
	path  string
	above []string // directories to create, outermost first; the last one is path/blobs
	job   string
	shard string

	turn chan struct{} // held by Claim, Save, Prune and Close, across I/O
	bufs sync.Pool     // *[]byte of copyBuffer bytes

	mu     sync.Mutex
	epoch  int64 // 0: not claimed
	lock   io.Closer
	closed bool
	count  int64 // of temporary and blob files of this run
	// live are blob files of checkpoints that are not saved yet: Prune leaves them alone.
	live map[string]ID
}

var _ Store = (*DirStore)(nil)

// OpenDir returns the store of a shard (such as "0-of-1") of a job below dir. Names are made of letters, digits, dot, underscore
// and hyphen. It creates nothing, Claim does, but it fails if something is there that cannot be read.
func OpenDir(dir, job, shard string) (*DirStore, error) {
	return openDir(osFiles{}, dir, job, shard)
}

// OpenDirFS is OpenDir on a file system other than the system's own, for tests.
func OpenDirFS(f FileSystem, dir, job, shard string) (*DirStore, error) {
	return openDir(f, dir, job, shard)
}

func openDir(f files, dir, job, shard string) (*DirStore, error) {
	err := errors.Join(validName("job", job), validName("shard", shard))
	if dir == "" {
		err = errors.Join(errors.New("directory name is empty"), err)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint store: %w", err)
	}
	dir = filepath.Clean(dir)
	path := filepath.Join(dir, job, shard)
	d := &DirStore{
		fs: f, path: path, job: job, shard: shard, turn: make(chan struct{}, 1), live: make(map[string]ID),
		above: []string{dir, filepath.Join(dir, job), path, filepath.Join(path, blobsName)},
	}
	d.bufs.New = func() any { b := make([]byte, copyBuffer); return &b }
	if _, err := d.list(); err != nil {
		return nil, err
	}
	return d, nil
}

// Path returns the directory.
func (d *DirStore) Path() string { return d.path }

// list reads the directory. One that does not exist yet is empty.
func (d *DirStore) list() (listing, error) {
	names, err := d.fs.ReadDir(d.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return listing{}, fmt.Errorf("read checkpoint directory: %w", err)
	}
	return parseListing(names), nil
}

// Claim implements Store. The epoch is durable when it returns, and so is everything the runs before have left.
func (d *DirStore) Claim(ctx context.Context) (int64, error) {
	done, err := d.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	if err := d.mkdirs(); err != nil {
		return 0, err
	}
	holder := fmt.Sprintf("pid %d since %s", os.Getpid(), time.Now().UTC().Format(time.RFC3339))
	if err := d.takeLock(ctx, holder); err != nil {
		return 0, err
	}
	epoch, err := d.claimEpoch(holder)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		if d.epoch == 0 { // a claim that did not happen holds nobody up
			err = errors.Join(err, d.lock.Close())
			d.lock = nil
		}
		return 0, err
	}
	d.epoch = epoch
	clear(d.live) // whoever wrote those is fenced off now
	return epoch, nil
}

// Somebody who only looks whether a run is live (see Live) has the lock for microseconds. A claim that meets it waits for a moment.
const (
	lockTries = 10
	lockPause = 10 * time.Millisecond
)

func (d *DirStore) takeLock(ctx context.Context, holder string) error {
	d.mu.Lock()
	held := d.lock != nil
	d.mu.Unlock()
	if held {
		return nil
	}
	for try := 1; ; try++ {
		lock, err := d.fs.Lock(filepath.Join(d.path, lockName), holder)
		by, taken := errors.AsType[holding](err)
		switch {
		case taken && try == lockTries:
			return &TakenError{Dir: d.path, Holder: "held by " + by.Holder()}
		case taken:
			select {
			case <-time.After(lockPause):
				continue
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		case err != nil:
			return fmt.Errorf("lock checkpoint directory: %w", err)
		}
		d.mu.Lock()
		d.lock = lock
		d.mu.Unlock()
		return nil
	}
}

// mkdirs creates the directories durably. Those that exist are synced too, and with them what is visible in them, manifests above all:
// the run that made it may have died before it had synced it, and this one is going to publish what it finds.
func (d *DirStore) mkdirs() error {
	var missing []string
	for dir := d.above[0]; ; dir = filepath.Dir(dir) {
		_, err := d.fs.ReadDir(dir)
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			break // it is there, or it is for Mkdir to say what is wrong
		}
		missing = append([]string{dir}, missing...)
	}
	for _, dir := range append(missing, d.above[1:]...) {
		if err := d.fs.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("create checkpoint directory: %w", err)
		}
		if err := d.fs.SyncDir(filepath.Dir(dir)); err != nil {
			return fmt.Errorf("sync new checkpoint directory: %w", err)
		}
	}
	return nil
}

// claimEpoch creates the file of the next epoch.
func (d *DirStore) claimEpoch(holder string) (int64, error) {
	l, err := d.list()
	if err != nil {
		return 0, err
	}
	last, err := d.lastEpoch(l)
	if err != nil {
		return 0, err
	}
	if last == math.MaxInt64 {
		return 0, fmt.Errorf("%s: epoch numbers are used up", d.path)
	}
	epoch := last + 1
	path := filepath.Join(d.path, epochName(epoch))
	err = d.writeFile(path, []byte(holder+"\n"))
	if errors.Is(err, fs.ErrExist) {
		return 0, &TakenError{Dir: d.path, Holder: "another run claimed the same epoch at the same time"}
	}
	if err == nil {
		err = d.fs.SyncDir(d.path) // or the next run is given the same number after a crash
	}
	if err != nil {
		return 0, fmt.Errorf("claim epoch %d in %s: %w", epoch, d.path, err)
	}
	for _, old := range l.epochs {
		// What cannot be removed does no harm: only the greatest number counts.
		_ = d.fs.Remove(filepath.Join(d.path, epochName(old)))
	}
	return epoch, nil
}

// lastEpoch returns the greatest epoch that left a trace. Blobs and manifests count too, so that object names, which contain the epoch,
// do not repeat even when somebody copied the directory without the epoch files.
func (d *DirStore) lastEpoch(l listing) (int64, error) {
	last := l.epoch()
	names, err := d.fs.ReadDir(filepath.Join(d.path, blobsName))
	if err != nil {
		return 0, fmt.Errorf("read checkpoint blobs: %w", err)
	}
	for _, name := range names {
		if _, epoch, ok := parseBlobName(name); ok {
			last = max(last, epoch)
		}
	}
	for _, name := range l.temps {
		epoch, _ := parseTempName(name)
		last = max(last, epoch)
	}
	for _, id := range l.ids {
		m, err := d.load(id)
		if err == nil {
			last = max(last, m.Epoch)
		} else if l.epoch() == 0 {
			return 0, fmt.Errorf("the epoch file is gone and the epoch is not to be had from the manifest: %w", err)
		}
	}
	return last, nil
}

// Close implements Store.
func (d *DirStore) Close() error {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	d.mu.Lock()
	lock := d.lock
	d.closed, d.epoch, d.lock = true, 0, nil
	d.mu.Unlock()
	if lock == nil {
		return nil
	}
	if err := lock.Close(); err != nil {
		return fmt.Errorf("unlock checkpoint directory: %w", err)
	}
	return nil
}

// begin takes the turn for something that changes the directory.
func (d *DirStore) begin(ctx context.Context) (done func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed {
		<-d.turn
		return nil, fmt.Errorf("checkpoint store %s: %w", d.path, ErrClosed)
	}
	return func() { <-d.turn }, nil
}

// claimed returns the epoch of this run.
func (d *DirStore) claimed() (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return 0, fmt.Errorf("checkpoint store %s: %w", d.path, ErrClosed)
	case d.epoch == 0:
		return 0, fmt.Errorf("checkpoint store %s: %w", d.path, ErrUnclaimed)
	}
	return d.epoch, nil
}

// next numbers a file of this run.
func (d *DirStore) next() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count++
	return d.count
}
