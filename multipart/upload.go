package multipart

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Upload is one file on its way into the store: open, then sealed, then committed or abandoned.
//
// Write, TryWrite, Seal and Spill are for one goroutine at a time. Capture may run beside a Commit, Abandon beside
// everything; the accessors are safe for concurrent use. Parts are uploaded by goroutines of the upload's own, which end
// when there is nothing to send and are waited for by Commit and Abandon: one of the two must be called.
type Upload struct {
	api         API
	target      Target
	token       string
	epoch       int64
	partSize    int64
	partShift   uint64 // crcShift(partSize)
	maxParts    int32
	concurrency int
	persistWait time.Duration
	budget      *Budget

	// life is the context of the uploads in the background. It is kept because they outlive the Write that queued them;
	// cancel ends it with the reason.
	life    context.Context
	cancel  context.CancelCauseFunc
	workers sync.WaitGroup

	scratch    []*page     // pages on their way into the buffer; of the goroutine that writes
	committing atomic.Bool // a Commit runs
	look       bool        // the object may be there already: look before publishing; of the goroutine in Commit
	unverified bool        // resumed and sealed: compare acked parts with the store before Complete; as look
	claims     bool        // a claim with the right ETag ends the commit: it is proven by a listing; as look
	claimed    string      // the ETag of that claim, "" when there is none; as look

	mu        sync.Mutex // guards what follows; never held across I/O or a wait
	parts     []*part    // all parts cut so far, by number; append-only
	queue     []*part    // those to be sent, in the order of their numbers
	active    int        // goroutines that send
	uploadID  string     // "" until Create has answered
	createdAt time.Time
	tail      extent // the bytes behind the last part
	base      CRC    // digest of all bytes in parts
	offset    int64
	sealed    bool
	abandoned bool
	committed bool
	deferred  bool          // resumed and sealed: nothing is sent before Commit has looked
	err       error         // what ended the uploads in the background
	stop      chan struct{} // closed when err is set and by Abandon
	strays    []int32
	object    Object // once committed
}

// Start opens an upload. It does no network: the multipart upload is created in the background when the first part is
// full. The token is what proves ownership of the object, so it must be unique to this file among all writers of the
// bucket, and the key should never have been used before.
func Start(api API, t Target, token string, o Options) (*Upload, error) {
	u, err := newUpload(api, t, token, o)
	if err != nil {
		return nil, fault("start", t, "", 0, err)
	}
	return u, nil
}

func newUpload(api API, t Target, token string, o Options) (*Upload, error) {
	o, err := o.normalize()
	if err != nil {
		return nil, err
	}
	if t.Bucket == "" || t.Key == "" {
		return nil, errors.New("bucket and key are required")
	}
	if token == "" {
		return nil, errors.New("an owner token is required")
	}
	life, cancel := context.WithCancelCause(context.Background())
	return &Upload{
		api: api, target: t, token: token, epoch: o.Epoch,
		partSize: o.PartSize, partShift: crcShift(o.PartSize), maxParts: o.MaxParts,
		concurrency: o.Concurrency, persistWait: o.PersistWait, budget: o.Budget,
		life: life, cancel: cancel,
		createdAt: time.Now().UTC().Round(0),
		stop:      make(chan struct{}),
	}, nil
}

// Seal ends the file at its offset: no more writes. When the file already has parts, its tail becomes the last one and is
// sent in the background; a smaller file stays in memory for the PUT of Commit. Seal waits for nothing and publishes
// nothing. Sealing twice is fine. A failed upload is not sealed and returns its error.
func (u *Upload) Seal() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.sealed && !u.abandoned {
		return nil
	}
	if err := u.writable(0); err != nil {
		return err
	}
	u.sealed = true
	if len(u.parts) > 0 && u.tail.size > 0 {
		u.cut()
	}
	return nil
}

// Spill seals the file and sends its tail as the last part of a multipart upload, also when that is the only part, so
// that its memory comes back without a commit. It waits for nothing. On a file resumed in sealed state that has parts in
// the store it does nothing: those are not touched before Commit has looked.
func (u *Upload) Spill() error {
	if err := u.Seal(); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.committed || u.deferred && u.uploadID != "" {
		return nil
	}
	u.deferred = false
	if u.tail.size > 0 {
		u.cut()
	}
	u.kick()
	return nil
}

// Abandon forgets the upload in this process: it cancels the part uploads, waits for them, and gives the memory back. It
// never calls Abort, so whatever a checkpoint names stays in the store, and captures taken before stay valid. Further
// calls do nothing; after a successful Commit there is nothing left to do.
func (u *Upload) Abandon() {
	u.mu.Lock()
	if u.committed || u.abandoned {
		u.mu.Unlock()
		u.workers.Wait()
		return
	}
	u.abandoned = true
	if u.err == nil {
		close(u.stop)
	}
	u.mu.Unlock()
	u.cancel(ErrClosed)
	u.workers.Wait()
	release(u.drop())
}

// drop empties the upload and returns the pages it held. No goroutine of the upload runs any more.
func (u *Upload) drop() []*page {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tail.hash() // the digest outlives the bytes
	pages := append([]*page(nil), u.tail.pages...)
	for _, p := range u.parts {
		if !p.acked {
			pages = append(pages, p.data.pages...)
			p.data.pages = nil
		}
	}
	u.tail.pages = nil
	u.queue = nil
	return pages
}

// Offset returns the number of bytes written.
func (u *Upload) Offset() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.offset
}

// Digest returns the checksum of all bytes written.
func (u *Upload) Digest() CRC {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.digest()
}

// digest is Digest with the lock held.
func (u *Upload) digest() CRC {
	u.tail.hash()
	return u.base.Append(u.tail.crc, u.tail.size)
}

// Buffered returns the bytes of the tail: what Spill would send.
func (u *Upload) Buffered() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.tail.size
}

// Sealed reports whether the file has ended.
func (u *Upload) Sealed() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.sealed
}

// UploadID returns the store's id of the multipart upload, "" while there is none.
func (u *Upload) UploadID() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.uploadID
}

// CreatedAt returns when the multipart upload was created, by this machine's clock; zero while there is none.
func (u *Upload) CreatedAt() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.uploadID == "" {
		return time.Time{}
	}
	return u.createdAt
}

// Target returns what the upload will be published as.
func (u *Upload) Target() Target { return u.target }

// Token returns the owner token.
func (u *Upload) Token() string { return u.token }

// Err returns the error that ended the uploads in the background, nil while they work. An open upload stays failed; Commit
// of a sealed one tries again.
func (u *Upload) Err() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err
}

// Strays returns the numbers of parts the store holds above those of the handle the upload was resumed from: sent by the
// dead run after the checkpoint. A part that this upload sends under such a number replaces it, and Complete does not
// list the others.
func (u *Upload) Strays() []int32 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]int32(nil), u.strays...)
}

// fault names the operation and the target. The upload id is not in it: it may be unknown, and callers that have it use
// the package's fault.
func (u *Upload) fault(op string, err error) error { return fault(op, u.target, "", 0, err) }
