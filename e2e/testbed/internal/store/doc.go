// Package store runs a real S3 server, versitygw, as a child process.
//
// The server is linked into the testbed binary and started by executing that
// binary again with the hidden subcommand "s3d", for three reasons: the server
// changes the working directory of its process, a process can hold one server
// only, and a test must be able to kill it with SIGKILL and start it again.
//
// Objects are plain files, Root/bucket/key, so that they can be read and counted
// without any S3 client. Uploads and their parts live under Root/bucket/.sgwtmp
// and survive a kill of the server. The server does not fsync: it survives the
// death of its process, not a power failure.
//
// A program that uses the package answers the subcommand first thing in main:
//
//	if len(os.Args) == 2 && os.Args[1] == store.Subcommand {
//		os.Exit(store.Main())
//	}
package store
