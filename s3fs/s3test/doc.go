// Package s3test is an S3 for tests: it keeps buckets in memory, speaks real HTTP, and does what it is told to when a
// test wants something to go wrong.
//
// It behaves as Amazon S3 does where a writer can tell the difference: multipart uploads with their size and order rules,
// ETags, conditional writes, listings with their paging, checksums that are verified and stored, aws-chunked bodies with
// trailers, and signatures. Where other stores differ, [Quirks] switches the difference on.
//
// # Three ways in
//
//   - [Server.Client] and [Server.Transport] reach the server over an in-memory network. It works inside a
//     testing/synctest bubble, so hours of retries take no time. Create the server and the S3 client inside the bubble.
//   - [Server.ListenTCP] opens a real socket on the loopback interface.
//   - [Server] is an [http.Handler]: net/http/httptest serves it over TLS, or behind a proxy of your own.
//
// # Faults
//
// [Server.Control] registers a function that sees matching requests before they have any effect and may choose a [Reply]:
// a throttle, an answer that gets lost after the effect, a connection that breaks, a success that is a lie.
//
//	remove := srv.Control(s3test.Match{Op: s3test.UploadPart, Nth: 2}, s3test.Always(s3test.SlowDown()))
//	defer remove()
//
// # Transcript
//
// [Server.Trace] lists every request with its outcome in the order of arrival, without times, ETags or random
// identifiers, so that it can be compared with a golden file.
//
// # Guarantees
//
// Every exported method is safe for concurrent use. What a client has been answered is visible to the next request and to
// the inspection methods, and its transcript line is final. [Server.Close] returns when every goroutine the server started
// has ended. The package imports the standard library only; its CRC-64/NVME is therefore an implementation independent of
// the one a writer under test uses.
//
// # Limits
//
// No versioning, access control lists, encryption, tagging or copy operations: such requests answer 501 NotImplemented.
// Signatures are checked in the Authorization header, not in presigned URLs, and the signatures of single chunks of a
// signed aws-chunked body are not checked. Everything is held in memory.
package s3test
