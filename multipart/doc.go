// Package multipart is the life of one recoverable upload: bytes are buffered, cut into parts, uploaded in parallel,
// captured for a checkpoint, resumed in another process, sealed, and published exactly once.
//
// The package speaks to the object store through the small [API] interface and imports no AWS code, so that its tests
// run on an in-memory store and in virtual time.
//
// # One upload
//
//	u, err := multipart.Start(api, multipart.Target{Bucket: "b", Key: "part-0"}, token, options)
//	_, err = u.Write(ctx, row)       // blocks only for memory; each call is taken whole or not at all
//	c := u.Capture()                 // inside the barrier: instant, no I/O
//	h, err := c.Store(ctx, blobs)    // outside the barrier: what the store has not acknowledged becomes blobs
//	err = u.Seal()                   // no more bytes; nothing is visible yet
//	object, err := u.Commit(ctx)     // publish and prove; may be called again after an error
//
// After a crash the handle continues where it was taken:
//
//	u, err := multipart.Resume(ctx, api, h, blobs, options)
//
// # Guarantees
//
//   - Nothing is visible under the key before Commit, and only Commit publishes.
//   - Nothing in this package calls [API.Abort]: a retained checkpoint may name any upload, and only a sweeper that
//     knows all of them can tell.
//   - A handle is complete: its acknowledged parts and its pieces are exactly the bytes [0, Offset), or it is refused.
//   - Commit returns nil only after a HEAD has shown an object with the owner's token, the right size and the right
//     content (CRC64NVME, or the ETag computed from the answers to the part uploads). What the store says to Complete
//     is a claim, not a proof.
//   - Memory: bytes live in pages of 64 KiB taken from one [Budget] per process. A file with few bytes holds few pages.
//   - An empty file is never published.
//
// # How the pieces fit
//
// The tail (buffer.go) collects bytes; when it holds exactly one part size it is cut into a part (part.go) and queued.
// Up to Options.Concurrency goroutines per upload send queued parts; the queue itself needs no limit because the budget
// bounds what is in it. The first of them creates the multipart upload, so a file smaller than one part costs no call
// before its commit, which is then a single PUT. A capture (capture.go) holds pages by reference count: they go back to
// the budget when the part is acknowledged and no capture needs them.
package multipart
