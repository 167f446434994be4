package sink

import (
	"encoding/json"
	"fmt"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/multipart"
)

// Version 1 knew nothing of going back. A state that goes back is of version 2, so that an older program refuses it; all others are still
// written as version 1.
const (
	stateVersion      = 2
	plainStateVersion = 1
)

// state is the sink's part of a checkpoint. Bytes of open files are not in it: handles refer to the checkpoint's blobs.
type state struct {
	Version      int         `json:"version"`
	Location     string      `json:"location"`           // s3://bucket/prefix
	Endpoint     string      `json:"endpoint,omitempty"` // of the store; may change, if it is still the same store
	Job          string      `json:"job"`
	Shard        string      `json:"shard"`
	RowsAccepted int64       `json:"rows_accepted"`
	Published    Totals      `json:"published"`         // by all commit records before this checkpoint's
	Skipped      []FileEntry `json:"skipped,omitempty"` // given up, and in no commit record before this checkpoint's
	// Uncommitted are the earlier checkpoints whose commit had not ended: their records may be in the store, or get there, and
	// what these list is among Files.
	Uncommitted []checkpoint.ID `json:"uncommitted,omitempty"`
	Rewound     *rewound        `json:"rewound,omitempty"`
	Files       []fileState     `json:"files"`
}

// fileState is one file that no durable commit record lists: open, or sealed and pending.
type fileState struct {
	Handle []byte `json:"handle"` // multipart.Handle, versioned and checksummed
	Rows   int64  `json:"rows"`
	Staged int64  `json:"staged,omitempty"` // checkpoint that first held the sealed file
}

// restoredFile is a decoded fileState.
type restoredFile struct {
	handle multipart.Handle
	rows   int64
	staged int64
}

func decodeState(text []byte) (state, []restoredFile, error) {
	var s state
	if err := json.Unmarshal(text, &s); err != nil {
		return state{}, nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	if s.Version != plainStateVersion && s.Version != stateVersion {
		return state{}, nil, fmt.Errorf("%w: version %d, this program reads versions %d to %d", ErrState, s.Version, plainStateVersion, stateVersion)
	}
	files := make([]restoredFile, len(s.Files))
	var rows int64
	for i, f := range s.Files {
		if err := files[i].handle.UnmarshalBinary(f.Handle); err != nil {
			return state{}, nil, fmt.Errorf("%w: file %d of %d: %w", ErrState, i+1, len(s.Files), err)
		}
		if f.Rows < 0 || f.Staged < 0 || (f.Staged > 0) != files[i].handle.Sealed {
			return state{}, nil, fmt.Errorf("%w: file %s: %d rows, staged by checkpoint %d, sealed %t do not fit together",
				ErrState, files[i].handle.Target.Key, f.Rows, f.Staged, files[i].handle.Sealed)
		}
		files[i].rows, files[i].staged = f.Rows, f.Staged
		rows += f.Rows
	}
	skipped := s.Published.SkippedRows
	for _, f := range s.Skipped {
		skipped += f.Rows
	}
	if s.Published.Rows+skipped+rows != s.RowsAccepted {
		return state{}, nil, fmt.Errorf("%w: %d rows published, %d skipped and %d staged are not the %d accepted",
			ErrState, s.Published.Rows, skipped, rows, s.RowsAccepted)
	}
	return s, files, nil
}
