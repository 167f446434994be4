// Package readback proves what a job has published: it reads the files and says, row by row,
// whether everything that was committed is there exactly once and as it was made.
//
// Verify does it for a job on S3. Its parts work on any files:
//
//   - LineReader splits a stream into rows in constant memory.
//   - datagen.Generator.Number tells which row a line is, and whether every byte of it is right.
//   - Ledger accounts for row numbers: which are missing, there twice, or not committed.
//   - CheckRows puts them together, many files at once.
//   - Report holds all findings and the verdict, as text and as JSON.
//
// The rows of files in a directory, say, are checked so:
//
//	expected, generator, err := readback.Expect(positions...) // of the newest commit records
//	...
//	open := func(_ context.Context, _ int, file string) (io.ReadCloser, error) { return os.Open(file) }
//	report := readback.NewReport(dir, job)
//	start := time.Now()
//	report.RowFindings, err = readback.CheckRows(ctx, generator, expected, files, open, readback.Options{})
//	...
//	report.Conclude(time.Since(start))
//	err = report.WriteText(os.Stdout)
//
// # What the verdict means
//
// PROVEN means: something was committed; each expected row was read exactly once, and equals, byte
// for byte, the row that the generator makes; no other row and no damaged line is there; and the
// files are the recorded ones. Of row sets larger than 2^27 the windows behind the first are
// compared by their size and by two independent 64-bit sums, which agree by accident with a
// probability of about 2^-128. In a sequence a row is nothing but its number, so there the numbers
// are proven and there is no content beside them.
//
// Memory is 16 MiB for the ledger, 256 KiB for each file that is being read, and the bounded lists
// of findings; it grows with the number of files, not with that of rows.
package readback
