// Package job is the datagen-to-sink job: a seeded row source, the sink, and checkpoints as one program, and the verifier for
// what it published. The command sluice is a thin layer over it, and tests run it in virtual time.
package job
