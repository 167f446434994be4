// Package s3fs is the file system on an S3 store: the one client of a process,
// the operations on objects, and the adapter that recoverable uploads run on.
//
//	clients := s3fs.NewClients(s3fs.WithLogger(log))   // in main, one for the process
//	fsys, err := clients.Open(ctx, cfg)                // cfg: *config.Config with s3.* keys
//	defer fsys.Close(context.WithoutCancel(ctx))
//	err = fsys.CheckBucket(ctx, "bucket")              // a clear error before any data moves
//	err = fsys.PutIfAbsent(ctx, s3fs.Path{Bucket: "bucket", Key: "record-1"}, text)
//	upload, err := multipart.Start(fsys.API(), target, token, options)
//
// # Guarantees
//
//   - File systems of one Clients with equal settings share one client: one
//     connection pool, one in-flight limit, one retry limiter.
//   - Attempts on the wire of one call are at most s3.retry.max-num-retries + 1,
//     whatever the environment says. Only a reader asks again above that: its
//     broken answer goes on by range.
//   - Every call ends: by its context, by s3.call.timeout, or with Close. A call
//     that starts with an ended context sends nothing.
//   - A connection on which no byte moves for s3.socket.timeout ends its attempt;
//     one that is slow but advances does not.
//   - Keys are opaque and go to the store byte for byte.
//   - What is uploaded carries its CRC64NVME, what is read as a whole is compared
//     with it. s3.checksum-validation.enabled = false switches both off, for stores
//     that refuse checksums: then no x-amz-checksum header is sent at all, and the
//     proof of a commit falls back to owner token, size and ETag.
//   - Errors are *OpError (inside a *multipart.Error from the adapter), name what
//     was done to what, and hold no secret.
//
// # After a crash
//
// The package has no state of its own. An upload that a killed process left
// stays in the store until it is completed or swept; nothing here ever aborts one
// but an explicit API().Abort.
//
// # The connections
//
// Of s3.connection.max an eighth, at least one and at most eight, serves only
// CompleteMultipartUpload, AbortMultipartUpload, HEADs and records (PutIfAbsent
// and the adapter's Put); the rest is for everything. A body being read holds its
// connection but no in-flight slot, so readers may take three quarters of the
// pool; Open waits beyond that.
//
// # The AWS configuration chain
//
// Region and credentials that no key sets come from the AWS chain (environment,
// shared files, services of the instance), and so do AWS_CA_BUNDLE and proxies.
// Neither AWS_MAX_ATTEMPTS nor AWS_RETRY_MODE has an effect, but a value of
// AWS_RETRY_MODE that the SDK does not know fails Open.
package s3fs
