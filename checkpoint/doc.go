// Package checkpoint decides when, and in what order, the state of a data flow becomes durable and its output visible.
//
// A [Coordinator] takes checkpoints of its participants (a source, one or more sinks). One checkpoint is:
//
//  1. the barrier: running steps end, new ones wait;
//  2. [Participant.Capture] of every participant, in the order given, quick and without I/O;
//  3. the barrier is lifted, the data flow goes on;
//  4. [Snapshot.Store] of every participant, in parallel, then the blobs are synced;
//  5. the manifest is saved, last and atomically: from here on the checkpoint is durable;
//  6. [Participant.Commit]: what the checkpoint holds becomes visible, never before 5;
//  7. manifests and blobs that nobody needs any more are pruned.
//
// # What holds after a crash
//
// After a crash at any point, of the process or of the machine, [Coordinator.Restore] finds the newest checkpoint whose
// manifest was saved, with every blob it names, gives each participant its state back, and commits that checkpoint again.
// Nothing was ever published that this checkpoint, or an older one, does not hold.
//
// A checkpoint that could not be finished (a Store failed, the timeout passed) is abandoned: its snapshots are discarded and
// its work is part of the next one. The id of an abandoned checkpoint is used again. That is on purpose: every attempt
// asks for exactly the number behind the last saved one, and the store gives each number away once, so two runs that both
// believe in themselves cannot continue the same history twice.
//
// # Steps
//
// The data flow runs inside [Coordinator.Step]. A step is indivisible: all its effects are on one side of every barrier.
// A step that fails may have had half of its effects, and a checkpoint of half a step would lose or double rows, so after a
// failed step no further checkpoint is taken and the flow has to be restored. A step that fails before it did anything
// says so with [NoEffect].
//
// # Stores
//
// [DirStore] keeps checkpoints in a directory. Participants, and the sink in particular, do not need the Coordinator: a
// host with checkpoints of its own calls Capture, Store, Commit and Restore itself, in the order above.
//
// The package imports the standard library only.
package checkpoint
