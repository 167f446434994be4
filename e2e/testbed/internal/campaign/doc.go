// Package campaign kills. It runs many short jobs of the sluice command, one
// after the other, as processes on a real S3 server and a real checkpoint
// directory, and strikes them with SIGKILL at moments drawn from a seed: inside
// a checkpoint above all, inside the server's own Complete, while the job
// restores, while it stops. It kills the server too, fills the disk of the
// checkpoints, makes it read-only, and damages files on it.
//
// After each job every row has to be there exactly once, by the job's own
// read-back and by a count of the plain files, and nothing may be left behind:
// no upload, no temporary file.
//
// A seed and a number make a job: the plan is the same each time, the moments
// are as near as a running system allows.
//
// What the server itself destroys is counted apart. The server of the testbed,
// killed inside its Complete, forgets an upload whose bytes it still has. Then
// the job has to name the file as missing; the campaign puts the upload back
// where the server looks for it, as an operator would, and the job has to
// publish it after all.
package campaign
