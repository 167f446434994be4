package campaign

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The server's own files, as versitygw 1.8.0 keeps them below a bucket. It claims an upload for its Complete by renaming the
// upload's directory; killed before it has made the object, it never looks at that directory again and answers every later
// Complete with success.
const (
	uploadsDir  = ".sgwtmp/multipart" // then SHA-256 of the key, then the upload's id
	claimSuffix = ".inprogress"       // of <id>.<ETag>.inprogress
)

// claim is an upload that the server has claimed for its Complete.
type claim struct {
	dir string // of the upload, renamed
	key string // SHA-256 of the object's key, in hex
	id  string // of the upload
}

// claims returns the uploads that are being completed.
func claims(bucket string) []claim {
	dirs, _ := filepath.Glob(filepath.Join(bucket, uploadsDir, "*", "*"+claimSuffix)) // the pattern is well formed
	found := make([]claim, 0, len(dirs))
	for _, dir := range dirs {
		id, _, _ := strings.Cut(filepath.Base(dir), ".")
		found = append(found, claim{dir: dir, key: filepath.Base(filepath.Dir(dir)), id: id})
	}
	return found
}

// bytes returns the size of all parts.
func (c claim) bytes() (sum int64) {
	parts, _ := os.ReadDir(c.dir)
	for _, p := range parts {
		if info, err := p.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
	}
	return sum
}

// putBack gives the upload its old name, so that the server finds it again.
func (c claim) putBack() error {
	return os.Rename(c.dir, filepath.Join(filepath.Dir(c.dir), c.id))
}

// objects returns the size of each object below prefix, by key, as a plain file.
func objects(bucket, prefix string) (map[string]int64, error) {
	found := map[string]int64{}
	err := filepath.WalkDir(filepath.Join(bucket, prefix), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		key, err := filepath.Rel(bucket, path)
		found[filepath.ToSlash(key)] = info.Size()
		return err
	})
	if errors.Is(err, fs.ErrNotExist) { // nothing was ever published, or a file of the server's own has gone meanwhile
		return found, nil
	}
	return found, err
}

// published says whether there is an object for the claim.
func (c claim) published(bucket, prefix string) (bool, error) {
	all, err := objects(bucket, prefix)
	for key := range all {
		if sum := sha256.Sum256([]byte(key)); hex.EncodeToString(sum[:]) == c.key {
			return true, err
		}
	}
	return false, err
}

// newClaims returns the uploads that are being completed now, those excepted that the server has left behind in an earlier death.
func (j *job) newClaims() []claim {
	var found []claim
	for _, c := range claims(j.c.bucket()) {
		if !j.c.leftovers[c.dir] && !slices.Contains(j.stuck, c) {
			found = append(found, c)
		}
	}
	return found
}

// killServer kills the server and starts it again after a while. With a life, that dies while the server is away.
func (j *job) killServer(ctx context.Context, down time.Duration, dies *life) error {
	if err := j.c.store.Kill(); err != nil {
		return err
	}
	caught := j.newClaims()
	if dies != nil {
		dies.kill(nil)
	}
	select {
	case <-time.After(down):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := j.c.store.Restart(ctx); err != nil {
		return err
	}
	j.serverKills(caught)
	for _, c := range caught {
		done, err := c.published(j.c.bucket(), j.p.name())
		if err != nil {
			return err
		}
		if done { // killed after the object was made: garbage of the server's own
			j.c.leftovers[c.dir] = true
		} else {
			j.stuck = append(j.stuck, c)
		}
	}
	return nil
}

func (j *job) serverKills(caught []claim) {
	if len(caught) > 0 {
		j.tally.ServerKillsInComplete++
	} else {
		j.tally.ServerKills++
	}
}

// missingText is how the product names a file that is not where it should be.
const missingText = "nothing is at the key"

// awaitNamed runs a process until it has named every file that the server has lost in its own Complete, and puts these uploads back.
// A file that the job can publish again from what its checkpoint holds is no loss.
func (j *job) awaitNamed(ctx context.Context, l *life) error {
	l.excuse(missingText)
	var walk error
	settled := func(g *jobLog) bool {
		for _, c := range j.stuck {
			if g.said(c.id, missingText) {
				continue
			}
			done, err := c.published(j.c.bucket(), j.p.name())
			if err != nil {
				walk = err
			}
			if !done {
				return false
			}
		}
		return true
	}
	err := l.await(ctx, settled)
	j.kill(l)
	if walk != nil {
		return walk
	}
	if ok, _ := l.see(settled); !ok {
		if err != nil && !errors.Is(err, errEnded) && !errors.Is(err, errLate) {
			return err
		}
		return failf("the server has lost uploads in its own Complete, and the job does not name each as missing: %v", j.stuck)
	}
	return j.repair(ctx)
}

// repair counts what was lost and puts it back.
func (j *job) repair(ctx context.Context) error {
	if err := j.quiet(ctx); err != nil {
		return err
	}
	for _, c := range j.stuck {
		done, err := c.published(j.c.bucket(), j.p.name())
		if err != nil {
			return err
		}
		if done {
			j.c.leftovers[c.dir] = true
			j.tally.ServerLostHealed++
			continue
		}
		j.tally.ServerLostFiles++
		j.tally.ServerLostRows += c.bytes() / j.p.row
		if err := c.putBack(); err != nil {
			return fmt.Errorf("put the upload back: %w", err)
		}
	}
	j.stuck = nil
	return nil
}

// quiet waits until the server is done with the Completes of processes that are gone.
func (j *job) quiet(ctx context.Context) error {
	for until := time.Now().Add(patience); time.Now().Before(until); {
		if len(j.newClaims()) == 0 {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return errors.New("the server does not end its Completes")
}

// stillness waits until nothing that a dead process has asked for can change the store any more: the server ends what it has begun, and
// starts again.
func (j *job) stillness(ctx context.Context) error {
	if err := j.quiet(ctx); err != nil {
		return err
	}
	if err := j.c.store.Stop(ctx); err != nil {
		return err
	}
	return j.c.store.Restart(ctx)
}
