package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/sink"
)

// CheckpointVerdict says whether a restore of a checkpoint would work, and what it would do and lose.
type CheckpointVerdict struct {
	CheckpointInfo
	Newest bool `json:"newest"`
	Good   bool `json:"good"` // a restore takes every row over

	Blobs        int      `json:"blobs"`
	BlobsRead    int64    `json:"blob_bytes_read"`
	DamagedBlobs []string `json:"damaged_blobs,omitempty"`

	Files    []FileVerdict       `json:"files"`
	Outcomes map[FileOutcome]int `json:"outcomes"`

	LostFiles int   `json:"lost_files"`
	LostRows  int64 `json:"lost_rows"`
	LostBytes int64 `json:"lost_bytes"`

	Problems []string `json:"problems,omitempty"` // anything that is wrong, files and blobs apart
	Warnings []string `json:"warnings,omitempty"`
}

// verifyTries is how often the newest checkpoint is verified anew when a live run has replaced it meanwhile.
const verifyTries = 5

// VerifyCheckpoint checks one checkpoint of the configured job and shard, 0 for the newest, without restoring it: all blobs are read and
// compared with their checksums; every file's upload is looked for with its parts, or its object with its proof. It needs no claim and
// writes nothing, so it may run beside the job. What is wrong is in the verdict; an error means that the check could not be made.
func VerifyCheckpoint(ctx context.Context, cfg *config.Config, id checkpoint.ID, log *slog.Logger, opts ...s3fs.Option) (_ CheckpointVerdict, err error) {
	i, err := inspect(ctx, cfg, log, opts)
	if err != nil {
		return CheckpointVerdict{}, err
	}
	defer func() { err = joined(err, i.store.Close()) }()
	fs, err := openStore(ctx, cfg, i.sink.Path, log, opts)
	if err != nil {
		return CheckpointVerdict{}, err
	}
	defer func() { err = joined(err, fs.Close(context.WithoutCancel(ctx))) }()
	c := &checkpointCheck{inspection: i, fs: fs}
	if id != 0 {
		return c.named(ctx, id)
	}
	return c.newestOne(ctx)
}

// checkpointCheck is one VerifyCheckpoint under way.
type checkpointCheck struct {
	*inspection
	fs *s3fs.FS
	// goingBack: newer commit records are no obstacle, they are to be taken back.
	goingBack bool
}

// named verifies one checkpoint.
func (c *checkpointCheck) named(ctx context.Context, id checkpoint.ID) (CheckpointVerdict, error) {
	v, err := c.verify(ctx, id)
	if err != nil || v.Good {
		return v, err
	}
	// Once a live run has pruned it, its blobs and uploads go, and that is as it should be.
	if ids, err := c.store.List(ctx); err != nil || !slices.Contains(ids, id) {
		return v, errors.Join(err, fmt.Errorf("checkpoint %d was pruned while it was verified: %w", id, checkpoint.ErrNoCheckpoint))
	}
	return v, nil
}

// newestOne verifies the newest checkpoint, again if what seems wrong comes from a live run that has taken a newer one.
func (c *checkpointCheck) newestOne(ctx context.Context) (v CheckpointVerdict, err error) {
	for range verifyTries {
		id, err := c.newest(ctx)
		if err != nil {
			return v, err
		}
		v, err = c.verify(ctx, id)
		if err == nil && v.Good {
			return v, nil
		}
		now, lookErr := c.newest(ctx)
		if lookErr != nil || now == id {
			return v, joined(err, lookErr)
		}
	}
	return v, errors.New("the newest checkpoint is replaced faster than it can be verified: name an id, or stop the job")
}

func (c *checkpointCheck) verify(ctx context.Context, id checkpoint.ID) (CheckpointVerdict, error) {
	v := CheckpointVerdict{Files: []FileVerdict{}, Outcomes: map[FileOutcome]int{}}
	v.ID = id
	newest, err := c.newest(ctx)
	if err != nil {
		return v, err
	}
	v.Newest = id == newest
	m, err := c.store.Load(ctx, id)
	if err == nil {
		var d CheckpointDetails
		if d, err = c.read(m); err == nil {
			return c.verifyDetails(ctx, v, d, m)
		}
		v.CheckpointInfo = d.CheckpointInfo
	}
	_, damaged := errors.AsType[*checkpoint.DamagedError](err)
	if !damaged && !errors.Is(err, sink.ErrState) {
		return v, err
	}
	if v.Newest && damaged {
		if _, latest := c.store.Latest(ctx); latest != nil {
			err = latest // it also names the newest older one that is intact
		}
	}
	v.Problems = append(v.Problems, err.Error())
	return v, nil
}

func (c *checkpointCheck) verifyDetails(ctx context.Context, v CheckpointVerdict, d CheckpointDetails, m checkpoint.Manifest) (CheckpointVerdict, error) {
	v.CheckpointInfo, v.Warnings = d.CheckpointInfo, d.Warnings()
	if where := c.sink.Path.String(); d.Location != where || d.Job != c.sink.Job || d.Shard != c.sink.Shard.Dir() {
		v.Problems = append(v.Problems, fmt.Sprintf("a restore would be refused: the checkpoint is of job %s, shard %s, path %s; the configuration says job %s, shard %s, path %s",
			d.Job, d.Shard, d.Location, c.sink.Job, c.sink.Shard.Dir(), where))
	}
	if err := c.readBlobs(ctx, &v, m); err != nil {
		return v, err
	}
	recorded, err := c.recorded(ctx, &v, append(d.Uncommitted, v.ID))
	if err != nil {
		return v, err
	}
	v.Files = make([]FileVerdict, len(d.Files))
	var g errgroup.Group
	g.SetLimit(4) // each holds the file's bytes in the checkpoint in memory
	for n, f := range d.Files {
		if recorded[f.Key] {
			v.Files[n] = FileVerdict{Key: f.Key, UploadID: f.UploadID, Sealed: f.Sealed, Rows: f.Rows, Bytes: f.Offset, Outcome: FileRecorded}
			continue
		}
		g.Go(func() error {
			v.Files[n] = dryRestore(ctx, c.fs.API(), storedBlobs{c.store}, f)
			return nil
		})
	}
	_ = g.Wait() // returns no error
	if ctx.Err() != nil {
		return v, context.Cause(ctx)
	}
	v.addUp()
	return v, nil
}

// readBlobs reads every blob the checkpoint names, of all participants.
func (c *checkpointCheck) readBlobs(ctx context.Context, v *CheckpointVerdict, m checkpoint.Manifest) error {
	seen := map[string]bool{}
	for _, s := range m.States {
		for _, ref := range s.Refs {
			if seen[ref] {
				continue
			}
			seen[ref] = true
			v.Blobs++
			n, err := c.readBlob(ctx, ref)
			v.BlobsRead += n
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				v.DamagedBlobs = append(v.DamagedBlobs, err.Error())
			}
		}
	}
	return nil
}

func (c *checkpointCheck) readBlob(ctx context.Context, ref string) (n int64, err error) {
	r, err := c.store.OpenBlob(ctx, ref)
	if err != nil {
		return 0, err
	}
	defer func() { err = joined(err, r.Close()) }()
	return io.Copy(io.Discard, r)
}

// recorded returns the files that the commit records of the checkpoint and of those uncommitted before it list, files that were given up
// included. A newer record is a problem: a restore would publish its rows a second time.
func (c *checkpointCheck) recorded(ctx context.Context, v *CheckpointVerdict, of []checkpoint.ID) (map[string]bool, error) {
	listed := map[string]bool{}
	for e, err := range sink.ShardRecords(ctx, c.fs, c.sink.Path, c.sink.Job, c.sink.Shard) {
		switch {
		case err != nil:
			return nil, err
		case e.Checkpoint > int64(v.ID) && c.goingBack:
			return listed, nil
		case e.Checkpoint > int64(v.ID):
			v.Problems = append(v.Problems, fmt.Sprintf("a restore would be refused: %v, %s, and its rows would be published twice", sink.ErrNewerRecord, e.Path))
			return listed, nil
		case !slices.Contains(of, checkpoint.ID(e.Checkpoint)):
			continue
		}
		r, err := e.Read(ctx)
		if errors.Is(err, sink.ErrRecord) {
			v.Problems = append(v.Problems, fmt.Sprintf("a restore would be refused: %v", err))
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, f := range slices.Concat(r.Files, r.Skipped) {
			listed[f.Key] = true
		}
	}
	return listed, nil
}

// addUp draws the conclusion.
func (v *CheckpointVerdict) addUp() {
	v.Good = len(v.Problems) == 0 && len(v.DamagedBlobs) == 0
	for _, f := range v.Files {
		v.Outcomes[f.Outcome]++
		v.Good = v.Good && f.Outcome.good()
		if f.Outcome.gone() {
			v.LostFiles++
			v.LostRows += f.Rows
			v.LostBytes += f.Bytes
		}
	}
}
