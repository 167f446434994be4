package readback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/e2e/datagen"
	"golang.org/x/sync/errgroup"
)

// DefaultWorkers is how many files are read at once.
const DefaultWorkers = 16

// Opener opens a file from its first byte. pass counts from 1: every file is opened once in pass
// 1, and again in later passes only when rows are missing or there twice, so a checksum of the
// content belongs into pass 1. An error that is fs.ErrNotExist makes the file one of
// RowFindings.Gone; any other ends the check. It is called from many goroutines.
type Opener func(ctx context.Context, pass int, file string) (io.ReadCloser, error)

// Options of CheckRows. The zero value has the defaults.
type Options struct {
	Workers   int   // files read at once; 0 = DefaultWorkers
	ListLimit int   // findings of each sort that are named; 0 = DefaultListLimit
	Window    int64 // rows of the ledger's window; 0 = DefaultWindow
}

// RowFindings is what the rows of all files are. Lists name the first few and count all.
type RowFindings struct {
	Counts                       // what was read
	Files      int64             `json:"files"` // that were read
	Expected   int64             `json:"expected_rows"`
	Missing    List[Range]       `json:"missing_rows"`    // Total counts rows
	Duplicates List[Duplicate]   `json:"duplicate_rows"`  // Total counts sightings after the first
	Unexpected List[Unexpected]  `json:"unexpected_rows"` // sound rows that no checkpoint committed
	Corrupt    List[BadRow]      `json:"corrupt_rows"`    // they count as missing too
	Gone       List[FileProblem] `json:"gone_files"`      // that could not be opened because they do not exist
	Passes     int               `json:"passes"`          // how often the files were read
}

// CheckRows reads the files in parallel, one row per line, and finds out whether each expected row
// is there exactly once and as g makes it. Memory: the ledger's window (16 MiB), a buffer of 256
// KiB (or a row) for each worker, and the lists; nothing grows with the number of rows.
//
// What is wrong with rows is in the findings and not an error. The error says that the check
// could not be finished: the first failure to open or read a file, with its name, or the
// context's cause. All goroutines have ended when it returns.
func CheckRows(ctx context.Context, g *datagen.Generator, e Expected, files []string, open Opener, o Options) (RowFindings, error) {
	if open == nil {
		return RowFindings{}, ErrNoOpener
	}
	if o.Workers == 0 {
		o.Workers = DefaultWorkers
	}
	if o.ListLimit == 0 {
		o.ListLimit = DefaultListLimit
	}
	if o.Workers < 0 {
		return RowFindings{}, fmt.Errorf("workers %d: want 1 or more", o.Workers)
	}
	ledger, err := NewLedger(e, o.Window, o.ListLimit)
	if err != nil {
		return RowFindings{}, err
	}
	c := &check{generator: g, ledger: ledger, files: files, open: open, options: o}
	for again := true; again; {
		c.pass++
		if err := c.readAll(ctx); err != nil {
			return RowFindings{}, err
		}
		if again, err = ledger.EndPass(ctx); err != nil {
			return RowFindings{}, err
		}
	}
	f, r := c.found, ledger.Result()
	f.Expected, f.Missing, f.Duplicates, f.Unexpected, f.Passes = e.Total(), r.Missing, r.Duplicates, r.Unexpected, r.Passes
	return f, nil
}

type check struct {
	generator *datagen.Generator
	ledger    *Ledger
	files     []string
	open      Opener
	options   Options
	pass      int

	mu    sync.Mutex
	found RowFindings
}

// readAll is one pass.
func (c *check) readAll(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(c.options.Workers, len(c.files)) {
		g.Go(func() error {
			lines := NewLineReader(nil, c.generator.MaxLength())
			for {
				i := next.Add(1) - 1
				if i >= int64(len(c.files)) {
					return nil
				}
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err := c.readFile(ctx, lines, c.files[i]); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

// readFile reads one file and, in pass 1, adds what it found.
func (c *check) readFile(ctx context.Context, lines *LineReader, file string) error {
	body, err := c.open(ctx, c.pass, file)
	if errors.Is(err, fs.ErrNotExist) {
		if c.pass == 1 {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.found.Gone.Add(c.options.ListLimit, 1, FileProblem{File: file})
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read back %s: %w", file, err)
	}
	lines.Reset(body)
	bad := c.readRows(lines, file)
	err = lines.Err()
	if closeErr := body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("read back %s at byte %d: %w", file, lines.Counts().Bytes, err)
	}
	if c.pass == 1 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.found.Files++
		c.found.add(lines.Counts())
		c.found.Corrupt.Merge(c.options.ListLimit, bad)
	}
	return nil
}

// readRows gives the sound rows of a file to the ledger and returns the others.
func (c *check) readRows(lines *LineReader, file string) (bad List[BadRow]) {
	tally := c.ledger.File(file)
	defer tally.Close()
	for {
		line, ok := lines.Next()
		if !ok {
			return bad
		}
		row, err := int64(-1), error(nil)
		if line.TooLong {
			err = fmt.Errorf("%d bytes, longer than any row", line.Length)
		} else {
			row, err = c.generator.Number(line.Content)
		}
		if err == nil && !line.Torn {
			tally.Saw(row)
			continue
		}
		if len(bad.First) >= c.options.ListLimit {
			bad.Total++ // lines come in order, so it would not be kept
			continue
		}
		bad.Add(c.options.ListLimit, 1, badRow(file, line, row, err))
	}
}

// badRow describes a line that is not a sound row. A torn row counts as bad even if only its
// newline is missing: what is appended to the file later would become a part of it.
func badRow(file string, line Line, row int64, err error) BadRow {
	b := BadRow{File: file, Index: line.Index, Offset: line.Offset, Row: row, Torn: line.Torn}
	if line.TooLong || errors.Is(err, datagen.ErrNotARow) {
		b.Row = -1
	}
	switch {
	case line.Torn && err == nil:
		b.Why = fmt.Sprintf("torn row %d: the file ends without its newline", row)
	case line.Torn:
		b.Why = "torn row at the end of the file: " + err.Error()
	default:
		b.Why = err.Error()
	}
	return b
}
