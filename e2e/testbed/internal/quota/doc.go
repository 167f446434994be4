// Package quota repeats, with real processes, the experiment of the pull request
// that gave Flink's S3 connector its retry modes: the datagen job against a
// store whose request rate is limited far below what the job's writers ask for,
// once with standard and once with adaptive retries, and no restarts.
//
// Two quotas take turns: nginx's limit_req, which answers 503 SlowDown, and a
// front of the testbed that closes the connection instead. Either stands before
// the embedded store, together with a relay that gives each call the time that
// it takes to a store that is not on this machine.
//
// A job of standard that dies is a result, not a failure. What must hold is that
// each adaptive job ends with every row proven, and that it is the better one of
// each pair.
package quota
