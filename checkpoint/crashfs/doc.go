// Package crashfs is a file system in memory for tests of things that must survive a crash. It forgets, in a crash, whatever
// was not synced: the content of files and the names in directories, each on its own.
//
// A [Disk] outlives the processes that use it; each [Process] counts its operations, and its hook may fail any of them, kill
// the process, or hold it back while others run. A Process is a checkpoint.FileSystem:
//
//	disk := crashfs.New("checkpoints")
//	p := disk.Process()
//	store, err := checkpoint.OpenDirFS(p, "checkpoints", "job", "0-of-1")
//	...
//	p.Kill()          // SIGKILL: what was written stays, the lock is free
//	disk.Crash(nil)   // the machine loses power: what was not synced is gone
//
// All methods are safe for concurrent use. The fields of Disk and Process are set while nobody uses them. Without a random
// source and with one process at a time everything is deterministic: directories list their names in order.
package crashfs
