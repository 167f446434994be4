package sink

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/s3fs"
)

// ParticipantName is the name of a sink's state in a checkpoint.
const ParticipantName = "sink"

// StateInfo is the sink's part of a checkpoint, decoded for reading.
type StateInfo struct {
	Location     string // the sink's path, s3://bucket/prefix
	Job          string
	Shard        string      // "i-of-n"
	RowsAccepted int64       // before the barrier, over all runs
	Published    Totals      // by all commit records before this checkpoint's
	Skipped      []FileEntry // given up, and in no commit record before this checkpoint's
	// Uncommitted are the earlier checkpoints whose commit had not ended: what their records list, if there are any, is among Files.
	Uncommitted []checkpoint.ID
	// BackTo is the checkpoint that this one has gone back to, and whose state it holds; 0: none. Those in between are left behind for good:
	// what they count as published is taken back.
	BackTo checkpoint.ID
	Files  []StateFile
}

// StateFile is one file that no commit record listed when the checkpoint was taken: open, or sealed and to be published.
type StateFile struct {
	Handle multipart.Handle // validated
	Rows   int64
	Staged int64 // the checkpoint that first held the sealed file; 0 for an open one
}

// InspectState decodes what Store of a sink's snapshot returned. It checks all that Restore checks without the store. Errors
// satisfy errors.Is(err, ErrState). The result shares nothing with text.
func InspectState(text []byte) (StateInfo, error) {
	st, files, err := decodeState(text)
	if err != nil {
		return StateInfo{}, err
	}
	info := StateInfo{
		Location: st.Location, Job: st.Job, Shard: st.Shard, RowsAccepted: st.RowsAccepted, Published: st.Published,
		Skipped: st.Skipped, Uncommitted: st.Uncommitted, Files: make([]StateFile, len(files)),
	}
	if st.Rewound != nil {
		info.BackTo = st.Rewound.To
	}
	for i, f := range files {
		info.Files[i] = StateFile{Handle: f.handle, Rows: f.rows, Staged: f.staged}
	}
	return info, nil
}

// InspectManifest decodes the sink's state in a checkpoint. A checkpoint without one is an ErrState.
func InspectManifest(m checkpoint.Manifest) (StateInfo, error) {
	for _, s := range m.States {
		if s.Name != ParticipantName {
			continue
		}
		info, err := InspectState(s.State)
		if err != nil {
			return StateInfo{}, fmt.Errorf("checkpoint %d: %w", m.ID, err)
		}
		return info, nil
	}
	return StateInfo{}, fmt.Errorf("checkpoint %d: %w: there is none of a sink", m.ID, ErrState)
}

// InspectSnapshot decodes a value that Snapshot returned, for hosts with checkpoints of their own. Errors satisfy
// errors.Is(err, ErrState).
func InspectSnapshot(value []byte) (StateInfo, error) {
	var p packed
	if err := json.Unmarshal(value, &p); err != nil {
		return StateInfo{}, fmt.Errorf("%w: %w", ErrState, err)
	}
	if p.Version != packedVersion {
		return StateInfo{}, fmt.Errorf("%w: snapshot version %d, this program reads version %d", ErrState, p.Version, packedVersion)
	}
	return InspectState(p.State)
}

// Open counts the files that were being written.
func (i StateInfo) Open() int { return len(i.Files) - i.Pending() }

// Pending counts the files that were finished and waiting to be published.
func (i StateInfo) Pending() int {
	n := 0
	for _, f := range i.Files {
		if f.Handle.Sealed {
			n++
		}
	}
	return n
}

// ShardRecords lists the commit records of one shard of one job in the order of its checkpoints. It ends with the first error.
func ShardRecords(ctx context.Context, fs *s3fs.FS, path s3fs.Path, job string, shard checkpoint.Shard) iter.Seq2[RecordEntry, error] {
	return listRecords(ctx, fs, path, RecordPrefix(path.Key, job)+shard.Dir()+"/")
}
