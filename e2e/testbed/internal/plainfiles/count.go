// Package plainfiles counts the rows of a job in the plain files that its store
// keeps, without any S3 client and without any code of the library.
package plainfiles

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Tally is what the plain files hold.
type Tally struct {
	Files, Rows, Bytes int64
	Odd                int64 // rows of another length
	Repeated           int64 // rows whose content was seen before; -1: not counted
}

// maxDigests bounds the memory of the search for repeated rows, 8 bytes a row.
const maxDigests = 32 << 20

// recordDir is the directory of commit records below a sink's path. It holds no
// rows.
const recordDir = "_sluice"

// Count reads every file below dir, the commit records excepted, and counts
// rows of rowSize bytes, line feed included. Rows carry their number, so two
// equal rows are one row written twice; they are found by a digest of each row,
// in any order and across files. A file that does not end with a line feed has
// an odd last row. A missing directory is empty.
func Count(ctx context.Context, dir string, rowSize, expected int64) (Tally, error) {
	c := counter{rowSize: int(rowSize), seed: maphash.MakeSeed()}
	if expected <= maxDigests {
		c.digests = make([]uint64, 0, expected)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case d.IsDir() && d.Name() == recordDir:
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		return c.file(path)
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c.Tally, fmt.Errorf("count %s: %w", dir, err)
	}
	c.Repeated = repeated(c.digests)
	return c.Tally, nil
}

type counter struct {
	Tally
	rowSize int
	seed    maphash.Seed
	digests []uint64 // nil: too many rows
}

func (c *counter) file(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	c.Files++
	// One byte more than a row, so that a row always fits and a longer line shows.
	r := bufio.NewReaderSize(f, max(1<<20, c.rowSize+1))
	for {
		line, err := r.ReadSlice('\n')
		c.Bytes += int64(len(line))
		switch {
		case err == nil:
			c.row(line)
		case errors.Is(err, bufio.ErrBufferFull): // a piece of a line that is no row
			c.Odd++
		case errors.Is(err, io.EOF):
			if len(line) > 0 {
				c.Odd++
			}
			return nil
		default:
			return err
		}
	}
}

func (c *counter) row(line []byte) {
	c.Rows++
	if len(line) != c.rowSize {
		c.Odd++
	}
	if c.digests != nil {
		if len(c.digests) == maxDigests {
			c.digests = nil // far more rows than there should be: the count shows it
			return
		}
		c.digests = append(c.digests, maphash.Bytes(c.seed, line))
	}
}

// repeated counts the values that occur again. It sorts its argument.
func repeated(digests []uint64) int64 {
	if digests == nil {
		return -1
	}
	slices.Sort(digests)
	return int64(len(digests) - len(slices.Compact(digests)))
}

// Problems compares the Tally with the arithmetic of the run; none means that
// the files hold exactly the rows that they should.
func (t Tally) Problems(rows, rowSize int64) []string {
	var p []string
	say := func(format string, args ...any) { p = append(p, fmt.Sprintf(format, args...)) }
	if t.Rows != rows {
		say("the files hold %d rows instead of %d", t.Rows, rows)
	}
	if t.Bytes != rows*rowSize {
		say("the files hold %d bytes instead of %d", t.Bytes, rows*rowSize)
	}
	if t.Odd > 0 {
		say("%d rows in the files are not of %d bytes", t.Odd, rowSize)
	}
	if t.Repeated > 0 {
		say("%d rows in the files are there more than once", t.Repeated)
	}
	return p
}
