package sink

import (
	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/multipart"
)

// part is one part file from its first byte to its commit record. While it is open, or sealed and not yet captured,
// it belongs to its writer; from the first capture after its seal it belongs to the sink's pending list.
type part struct {
	upload *multipart.Upload
	key    string
	rows   int64

	// staged is the checkpoint that first held the sealed file; 0 before.
	staged int64
	// saved is the handle that a durable checkpoint holds, with its blob references; nil before. A sealed file never
	// changes, so later checkpoints take it over as it is and need not store its bytes again.
	saved   *multipart.Handle
	savedBy checkpoint.ID // the newest such checkpoint of this run
	// proven is set when the object has been proven and only the commit record is missing.
	proven *multipart.Object
	// restored: begun by an earlier run.
	restored bool
	// spilled is set when a sealed file smaller than a part was sent early to free its bytes.
	spilled bool
}
