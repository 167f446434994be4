package job

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/multipart"
)

// FileVerdict says what a restore would do with one file of a checkpoint.
type FileVerdict struct {
	Key      string      `json:"key"`
	UploadID string      `json:"upload_id,omitempty"`
	Sealed   bool        `json:"sealed"`
	Rows     int64       `json:"rows"`
	Bytes    int64       `json:"bytes"`
	Outcome  FileOutcome `json:"outcome"`
	Detail   string      `json:"detail,omitempty"` // why, for an outcome that is not good
}

// FileOutcome is a short, stable name for what a restore finds.
type FileOutcome string

// The outcomes. The first four are good.
const (
	FileRecorded  FileOutcome = "recorded"  // a commit record lists it: settled, nobody looks for it again
	FilePublished FileOutcome = "published" // the object is there and proven; a restore would list it in a record
	FileReady     FileOutcome = "ready"     // finished; everything is there to publish it
	FileResumable FileOutcome = "resumable" // open; everything is there to go on
	FileLost      FileOutcome = "lost"      // nothing is at the key and the store has not all of its parts
	FileDamaged   FileOutcome = "damaged"   // bytes that the checkpoint holds itself cannot be read back
	FileForeign   FileOutcome = "foreign"   // somebody else's object is at the key
	FileMovedOn   FileOutcome = "moved-on"  // open here, and published since by a later checkpoint
	FileUnknown   FileOutcome = "unknown"   // the store did not say
)

// good says whether a restore gets on with the file.
func (o FileOutcome) good() bool {
	return o == FileRecorded || o == FilePublished || o == FileReady || o == FileResumable
}

// gone says whether the bytes are.
func (o FileOutcome) gone() bool { return o == FileLost || o == FileDamaged }

// errReadOnly is what a dry restore gets where a real one would write.
var errReadOnly = errors.New("a dry restore writes nothing")

// readOnly passes looks on and refuses everything else, so that a dry restore runs the very code of a real one up to its first write.
type readOnly struct{ multipart.API }

func (readOnly) Create(context.Context, multipart.Target, string) (string, error) {
	return "", errReadOnly
}

func (readOnly) UploadPart(context.Context, multipart.Target, string, int32, io.ReadSeeker, int64, multipart.CRC) (string, error) {
	return "", errReadOnly
}

func (readOnly) Complete(context.Context, multipart.Target, string, []multipart.Part, int64, multipart.CRC) (multipart.Object, error) {
	return multipart.Object{}, errReadOnly
}

func (readOnly) Abort(context.Context, multipart.Target, string) error { return errReadOnly }

func (readOnly) Put(context.Context, multipart.Target, string, io.ReadSeeker, int64, multipart.CRC) (multipart.Object, error) {
	return multipart.Object{}, errReadOnly
}

// storedBlobs reads the blobs of a checkpoint.
type storedBlobs struct{ store checkpoint.Store }

func (b storedBlobs) Put(context.Context, io.Reader, int64) (string, error) { return "", errReadOnly }

func (b storedBlobs) Open(ctx context.Context, ref string) (io.ReadCloser, error) {
	return b.store.OpenBlob(ctx, ref)
}

// dryRestore finds out what a restore would do with one file: its parts are compared with the store's, its bytes in the checkpoint are
// read and compared with their checksums, and for a finished file the object is looked for and proven.
func dryRestore(ctx context.Context, api multipart.API, blobs multipart.Blobs, d FileDetails) FileVerdict {
	v := FileVerdict{Key: d.Key, UploadID: d.UploadID, Sealed: d.Sealed, Rows: d.Rows, Bytes: d.Offset}
	// Restored bytes are taken on credit; nothing is written that would have to wait.
	budget := multipart.NewBudget(multipart.FileBudget(d.PartSize))
	u, err := multipart.Resume(ctx, readOnly{api}, d.handle, blobs, multipart.Options{PartSize: d.PartSize, Budget: budget})
	if err != nil {
		v.judge(err)
		if v.Outcome == FileLost && !d.Sealed {
			v.lookForLater(ctx, api, d.handle)
		}
		return v
	}
	defer u.Abandon()
	if !d.Sealed {
		v.Outcome = FileResumable
		return v
	}
	_, err = u.Commit(ctx)
	if errors.Is(err, multipart.ErrNoSuchUpload) {
		// A live run may have published it between the look at the object and the one at the upload.
		_, err = u.Commit(ctx)
	}
	if err == nil {
		v.Outcome = FilePublished
	} else {
		v.judge(err)
	}
	return v
}

// lookForLater finds out whether an open file is not lost but finished: a later checkpoint has published it, with more bytes.
func (v *FileVerdict) lookForLater(ctx context.Context, api multipart.API, h multipart.Handle) {
	if o, err := api.Head(ctx, h.Target); err == nil && o.Token == h.Token {
		v.Outcome, v.Detail = FileMovedOn, "the file was finished and published after this checkpoint"
	}
}

// judge turns the error of a dry restore into an outcome.
func (v *FileVerdict) judge(err error) {
	v.Detail = err.Error()
	_, mismatch := errors.AsType[*multipart.PartMismatchError](err)
	piece, inPiece := errors.AsType[*multipart.PieceError](err)
	switch {
	case errors.Is(err, errReadOnly):
		v.Outcome, v.Detail = FileReady, ""
	case inPiece && damage(piece.Err):
		v.Outcome = FileDamaged
	case errors.Is(err, multipart.ErrForeign):
		v.Outcome = FileForeign
	case mismatch, errors.Is(err, multipart.ErrNoSuchUpload):
		v.Outcome = FileLost
	default:
		v.Outcome = FileUnknown
	}
}

// damage tells bytes that are not those that were stored from a disk or store that did not answer.
func damage(err error) bool {
	_, noted := errors.AsType[*checkpoint.DamagedError](err)
	_, path := errors.AsType[*fs.PathError](err)
	return noted || !path && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}
