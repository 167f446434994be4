package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/sink"
)

// CheckpointInfo is one checkpoint in a list.
type CheckpointInfo struct {
	ID            checkpoint.ID `json:"checkpoint"`
	Epoch         int64         `json:"epoch"`
	CreatedAt     time.Time     `json:"created_at"`
	Age           float64       `json:"age_seconds"`
	ManifestBytes int64         `json:"manifest_bytes"`
	BlobBytes     int64         `json:"blob_bytes"` // bytes of files that the checkpoint holds itself
	Open          int           `json:"open_files"`
	Pending       int           `json:"pending_files"`
	Rows          int64         `json:"rows"`        // accepted before the barrier, over all runs
	StagedRows    int64         `json:"staged_rows"` // of these, in open and pending files
	Problem       string        `json:"problem,omitempty"`
}

// unreadable: nothing is known of the checkpoint but its id. Epochs begin at 1.
func (c CheckpointInfo) unreadable() bool { return c.Epoch == 0 }

// CheckpointDetails is all that a checkpoint says, for people.
type CheckpointDetails struct {
	CheckpointInfo
	Job       string           `json:"job"`
	Shard     string           `json:"shard"`
	Location  string           `json:"location"`
	Published sink.Totals      `json:"published"` // before this checkpoint's commit record
	Skipped   []sink.FileEntry `json:"skipped,omitempty"`
	// Uncommitted are the earlier checkpoints whose commit had not ended: their records may list some of the files.
	Uncommitted []checkpoint.ID `json:"uncommitted,omitempty"`
	// BackTo is the checkpoint whose state this one holds since the job has gone back to it; those in between are left behind for good.
	BackTo checkpoint.ID     `json:"back_to,omitempty"`
	Files  []FileDetails     `json:"files"`
	Others []ParticipantText `json:"other_states"`
	Config map[string]string `json:"config"`
}

// FileDetails is one file of a checkpoint.
type FileDetails struct {
	Key       string        `json:"key"`
	UploadID  string        `json:"upload_id,omitempty"`
	Sealed    bool          `json:"sealed"`
	Staged    int64         `json:"staged,omitempty"` // the checkpoint that first held the sealed file
	Rows      int64         `json:"rows"`
	Offset    int64         `json:"offset"`
	CRC64NVME string        `json:"crc64nvme"`
	Epoch     int64         `json:"epoch"` // of the run that began the file
	CreatedAt time.Time     `json:"created_at"`
	Age       float64       `json:"age_seconds"`
	PartSize  int64         `json:"part_size"`
	Parts     []PartDetails `json:"parts"`  // in the store
	Pieces    []PartDetails `json:"pieces"` // in the checkpoint
	Warning   string        `json:"warning,omitempty"`
	handle    multipart.Handle
}

// PartDetails is a run of bytes with its part number.
type PartDetails struct {
	Number    int32  `json:"number"`
	Bytes     int64  `json:"bytes"`
	CRC64NVME string `json:"crc64nvme"`
	ETag      string `json:"etag,omitempty"` // of a part
	Blob      string `json:"blob,omitempty"` // of a piece
}

// ParticipantText is the state of another participant than the sink, as it is stored.
type ParticipantText struct {
	Name  string `json:"name"`
	State string `json:"state"`
}

// inspection is what the reading commands share.
type inspection struct {
	store   checkpointReader
	sink    sink.Options
	warnAge time.Duration
	now     time.Time
}

// inspect opens the checkpoint store of the configured job for reading. Beside a live run it changes nothing.
func inspect(ctx context.Context, cfg *config.Config, log *slog.Logger, opts []s3fs.Option) (*inspection, error) {
	o, err := sink.FromConfig(cfg)
	if err != nil {
		return nil, &ConfigError{Err: err}
	}
	store, err := openCheckpoints(ctx, cfg, o, log, opts)
	if err != nil {
		return nil, err
	}
	return &inspection{store: store, sink: o, warnAge: config.Get(cfg, sink.KeyUploadWarnAge), now: time.Now()}, nil
}

// ListCheckpoints lists the retained checkpoints of the configured job and shard, oldest first. A checkpoint that cannot be read has its
// Problem, and the error joins those.
func ListCheckpoints(ctx context.Context, cfg *config.Config, opts ...s3fs.Option) (list []CheckpointInfo, err error) {
	i, err := inspect(ctx, cfg, slog.New(slog.DiscardHandler), opts)
	if err != nil {
		return nil, err
	}
	defer func() { err = joined(err, i.store.Close()) }()
	ids, err := i.store.List(ctx)
	if err != nil {
		return nil, err
	}
	list = make([]CheckpointInfo, 0, len(ids))
	var problems []error
	for _, id := range ids {
		d, err := i.details(ctx, id)
		switch {
		case errors.Is(err, checkpoint.ErrNoCheckpoint):
			continue // pruned by a live run since it was listed
		case err != nil:
			d.ID, d.Problem = id, err.Error()
			problems = append(problems, err)
		}
		list = append(list, d.CheckpointInfo)
	}
	return list, joined(problems...)
}

// ShowCheckpoint returns one checkpoint in readable form. An id of 0 is the newest one.
func ShowCheckpoint(ctx context.Context, cfg *config.Config, id checkpoint.ID, opts ...s3fs.Option) (_ CheckpointDetails, err error) {
	i, err := inspect(ctx, cfg, slog.New(slog.DiscardHandler), opts)
	if err != nil {
		return CheckpointDetails{}, err
	}
	defer func() { err = joined(err, i.store.Close()) }()
	if id == 0 {
		if id, err = i.newest(ctx); err != nil {
			return CheckpointDetails{}, err
		}
	}
	return i.details(ctx, id)
}

// newest returns the id of the newest checkpoint, intact or not.
func (i *inspection) newest(ctx context.Context) (checkpoint.ID, error) {
	ids, err := i.store.List(ctx)
	if err != nil {
		return 0, err
	}
	if len(ids) == 0 {
		return 0, fmt.Errorf("%s: %w", i.store.Location(), checkpoint.ErrNoCheckpoint)
	}
	return ids[len(ids)-1], nil
}

// details reads a checkpoint. After an error of the sink's state, what the manifest itself says is there.
func (i *inspection) details(ctx context.Context, id checkpoint.ID) (CheckpointDetails, error) {
	m, err := i.store.Load(ctx, id)
	if err != nil {
		return CheckpointDetails{}, err
	}
	return i.read(m)
}

func (i *inspection) read(m checkpoint.Manifest) (CheckpointDetails, error) {
	d := CheckpointDetails{
		CheckpointInfo: CheckpointInfo{ID: m.ID, Epoch: m.Epoch, CreatedAt: m.CreatedAt, Age: i.now.Sub(m.CreatedAt).Seconds()},
		Job:            m.Job, Shard: m.Shard, Config: m.Config,
	}
	text, err := m.Encode()
	if err != nil {
		return d, err
	}
	d.ManifestBytes = int64(len(text))
	for _, s := range m.States {
		if s.Name != sink.ParticipantName {
			d.Others = append(d.Others, ParticipantText{Name: s.Name, State: string(s.State)})
		}
	}
	st, err := sink.InspectManifest(m)
	if err != nil {
		return d, err
	}
	d.Location, d.Published, d.Skipped, d.Uncommitted, d.BackTo = st.Location, st.Published, st.Skipped, st.Uncommitted, st.BackTo
	d.Open, d.Pending, d.Rows = st.Open(), st.Pending(), st.RowsAccepted
	d.Files = make([]FileDetails, len(st.Files))
	for n, f := range st.Files {
		d.Files[n] = i.file(f)
		d.StagedRows += f.Rows
		for _, p := range f.Handle.Pieces {
			d.BlobBytes += p.Size
		}
	}
	return d, nil
}

func (i *inspection) file(f sink.StateFile) FileDetails {
	h := f.Handle
	age := i.now.Sub(h.CreatedAt)
	d := FileDetails{
		Key: h.Target.Key, UploadID: h.UploadID, Sealed: h.Sealed, Staged: f.Staged, Rows: f.Rows, Offset: h.Offset, CRC64NVME: h.CRC.String(),
		Epoch: h.Epoch, CreatedAt: h.CreatedAt, Age: age.Seconds(), PartSize: h.PartSize,
		Parts: []PartDetails{}, Pieces: []PartDetails{}, handle: h,
	}
	for _, p := range h.Parts {
		d.Parts = append(d.Parts, PartDetails{Number: p.Number, Bytes: p.Size, CRC64NVME: p.CRC.String(), ETag: p.ETag})
	}
	for _, p := range h.Pieces {
		d.Pieces = append(d.Pieces, PartDetails{Number: p.Number, Bytes: p.Size, CRC64NVME: p.CRC.String(), Blob: p.Ref})
	}
	// Without parts in the store nothing can expire.
	if len(h.Parts) > 0 && age > i.warnAge {
		d.Warning = fmt.Sprintf("the upload is older than %s (%s): lifecycle rules commonly remove uploads after 7 days, and its parts with them",
			config.FormatDuration(i.warnAge), sink.KeyUploadWarnAge.Name())
	}
	return d
}

// Warnings returns what is not wrong yet.
func (d CheckpointDetails) Warnings() []string {
	var out []string
	for _, f := range d.Files {
		if f.Warning != "" {
			out = append(out, f.Key+": "+f.Warning)
		}
	}
	return out
}
