// Package mainjob drives the main job end to end: it starts the embedded store,
// runs `sluice run` on a job file as a separate process, kills and restarts it
// when asked to, runs `sluice verify`, and then proves the result a second time
// without any S3 client, by reading the objects as the plain files they are.
//
// Nothing of the library takes part except the grammar of sizes and durations:
// what is driven is the command that a user runs.
package mainjob
