// Package s3store keeps checkpoints in an S3 bucket, so that a job can go on on another machine.
//
//	store, err := s3store.Open(fsys, s3fs.Path{Bucket: "b", Key: "checkpoints"}, "orders", checkpoint.Shard{Index: 0, Count: 1})
//	coordinator, err := checkpoint.NewCoordinator(store, options, source, sink)
//	id, err := coordinator.Restore(ctx)
//
// # Layout
//
//	<root>/<job>/<i-of-n>/blobs/<20 digits>-<epoch>-<n>.blob   one blob of a checkpoint
//	<root>/<job>/<i-of-n>/chk-<20 digits>.json                 manifests, encoded as a directory store encodes them
//	<root>/<job>/<i-of-n>/epoch-<20 digits>.json               claimed epochs; the greatest one rules
//
// Everything else below the prefix is left alone.
//
// # What it relies on
//
// A read and a listing that begin after a write was answered show that write, as Amazon S3 has it since 2020. And a PUT with
// If-None-Match: * creates an object or nothing. What a store answers is taken for a claim: every conditional PUT is
// followed by a read of the object, and what is there decides. So an answer that was lost, or a success without an object, is no
// special case.
//
// # Two runs
//
// A bucket has no lock that goes away with its holder, and a lease would only trade safety for clocks. So nothing tells a live
// run from a dead one, and [Store.Claim] does not ask: a second run takes the shard over, and the first one is fenced
// off at its next checkpoint. What keeps the history one line is that
//
//   - an epoch belongs to whoever created its object, and the greatest object is never deleted;
//   - a manifest's number is won by creating its object, and only by the run that holds the greatest epoch as far as it can
//     see, with the number right behind the newest;
//   - after a manifest was created the epochs are listed again. A run that sees a later one has lost, publishes nothing and
//     stops, although its manifest is there. A run that claims after that look finds the manifest and goes on from it.
//
// A run that was taken over can publish what its own last checkpoint staged, since it may have passed that look just before.
// This is harmless: its successor has restored that very checkpoint and publishes the same uploads under the same keys with the
// same tokens, and the commit record of a checkpoint is created once. Whoever comes second finds the work done.
//
// The new run may lose the number of its first checkpoint to a manifest of the old run that was on its way: it then stops with
// checkpoint.ErrFenced, and a restart goes on from that manifest. Later numbers cannot be lost like this.
//
// Do not start a second run beside a live one on purpose. Until its next checkpoint the old run goes on uploading parts of
// the files that both have open. A part of it in place of one of the new run's is noticed when the upload is completed,
// by ETag and checksum, so wrong bytes are never published, but that file is then not either.
//
// # Stores without conditional PUT
//
// They answer 501, and package s3fs then looks before it writes. Two runs that do this in the same instant can both succeed. An
// epoch's object is therefore known by its content and its ETag: of two runs that claimed the same epoch, the one whose
// object was overwritten is fenced off at the latest by its next checkpoint. What remains is a manifest: a run that is held up between the look
// and the write for as long as its successor needs to restore and to finish a checkpoint of the same number overwrites it,
// and only the successor's next restore would show it. On such a store make sure that the old run is dead.
//
// # After a crash
//
// As with every store of package checkpoint: what was saved is found, with every blob it names. Blobs of checkpoints that were
// not finished, and epochs of earlier runs, stay until the next Prune.
//
// # Priority
//
// All calls take the priority lane of the client, so that parts being uploaded cannot hold up a checkpoint.
package s3store
