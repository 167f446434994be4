// Package sim is the deterministic simulation of the whole job: source, writers, coordinator, committer and verifier, in
// virtual time, over an in-memory S3 and an in-memory disk that both outlive the processes using them. It has no code of its
// own, only tests.
//
// From one seed comes a plan: the rows, the store's oddities, and several lives of the job, each with its own settings,
// faults and end. A life ends by a crash of its process or its machine after any store call or file operation, by a graceful
// stop, or as a zombie: it has lost its lock without noticing and goes on beside its successor. The last life is left
// alone; when it has ended, every row has to be there exactly once.
//
// # How it is deterministic
//
// Whatever a life does to the world (a store call, a file operation, a batch of rows) is an event that waits until the
// scheduler picks it. The scheduler picks only when everything else is blocked, orders what waits by what it is, and
// draws from the seed; it is also what lets time pass. So the order of goroutines decides nothing, and a seed replays to the letter:
//
//	go test ./e2e/sim -run 'TestSimulation$' -seed 17
//	go test ./e2e/sim -run 'TestSimulation$' -seeds 2000 -seed 1
//
// The SDK's own waits would be drawn from a random source that cannot be reached from here, so the simulated client waits for
// zero time between attempts. Owner tokens and the SDK's invocation ids are random in a run of several seeds, and seeded when a
// single seed runs; nothing but their values depends on them.
//
// # What is checked
//
// After every step: no object is visible before the checkpoint that stages it would survive a crash; every durable manifest adds up
// (parts and pieces to the offset, rows to the source's position) and its blobs and parts are there; no upload is aborted; no
// commit record lists a file that is not there, differs, or is listed already. At the end of each life: all memory is given back, and
// the error, if any, is one that the faults explain. At the end: the verifier's verdict, and a walk over the store's objects of its own.
package sim
