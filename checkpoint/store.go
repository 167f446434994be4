package checkpoint

import (
	"context"
	"io"
)

// Store keeps the checkpoints of one shard of one job. All methods are safe for concurrent use.
type Store interface {
	// Claim makes this run the owner and returns its epoch, greater than that of every earlier run. It fails with
	// ErrEpochTaken while another live run holds the store. A store that is claimed may be claimed again, by an in-process
	// restart: the earlier epoch is fenced off then.
	Claim(ctx context.Context) (epoch int64, err error)
	// Latest returns the newest checkpoint, or ErrNoCheckpoint. If the newest is not intact it returns a *DamagedError that
	// names the newest older one that is. It does not need a claim.
	Latest(ctx context.Context) (Manifest, error)
	// Load returns one checkpoint, or an error that matches ErrNoCheckpoint. It does not need a claim.
	Load(ctx context.Context, id ID) (Manifest, error)
	// List returns the ids of all checkpoints, in ascending order. It does not need a claim.
	List(ctx context.Context) ([]ID, error)
	// Blobs begins the blobs of checkpoint id. The caller ends it with Close or Abort.
	Blobs(ctx context.Context, id ID) (BlobWriter, error)
	// OpenBlob reads a blob that a manifest names, as Blobs.Open does. It does not need a claim.
	OpenBlob(ctx context.Context, ref string) (io.ReadCloser, error)
	// Save makes the manifest durable, atomically, if its id is the one behind the newest saved one and the epoch in it is the
	// one this store claimed last. It fails with ErrFenced when another run has taken over or has saved this id, and with
	// ErrAmbiguous when it cannot know. After any other error the manifest was not saved and will not appear later.
	Save(ctx context.Context, m Manifest) error
	// Prune deletes all but the newest keep checkpoints, then all blobs that none of those names, except blobs of a
	// checkpoint that is being written. If one of those to keep cannot be read it deletes nothing and returns the error.
	Prune(ctx context.Context, keep int) error
	// Close gives up the claim. It is idempotent.
	Close() error
}

// BlobWriter is the Blobs of a checkpoint that is being written.
type BlobWriter interface {
	Blobs
	// Sync makes all blobs durable that were put. It is called after the last Put has returned.
	Sync(ctx context.Context) error
	// Close ends the writer and keeps its blobs. It is idempotent. Open goes on working.
	Close() error
	// Abort ends the writer, if Close has not, and deletes its blobs: no manifest will name them. It is idempotent.
	Abort() error
}
