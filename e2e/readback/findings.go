package readback

import (
	"cmp"
	"fmt"
	"strings"
)

// Range is a run of row numbers: First, First+Step, ... Last. Step is the number of shards, so
// that rows which one process made one after the other are one range.
type Range struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	Step  int64 `json:"step"`
}

// Count returns how many rows the range has.
func (r Range) Count() int64 { return (r.Last-r.First)/r.Step + 1 }

// Compare orders ranges by their first row.
func (r Range) Compare(o Range) int {
	return cmp.Or(cmp.Compare(r.First, o.First), cmp.Compare(r.Last, o.Last), cmp.Compare(r.Step, o.Step))
}

// String returns "row 5", "rows 5-9" or "rows 5-9 step 2".
func (r Range) String() string {
	switch {
	case r.First == r.Last:
		return fmt.Sprintf("row %d", r.First)
	case r.Step == 1:
		return fmt.Sprintf("rows %d-%d", r.First, r.Last)
	default:
		return fmt.Sprintf("rows %d-%d step %d", r.First, r.Last, r.Step)
	}
}

// Duplicate is a row that is there more than once.
type Duplicate struct {
	Row   int64    `json:"row"`
	Times int64    `json:"times"` // how often it is there, 2 or more
	Files []string `json:"files"` // where, sorted, each once; at most as many as the list limit
}

// Compare orders duplicates by row.
func (d Duplicate) Compare(o Duplicate) int { return cmp.Compare(d.Row, o.Row) }

// String names row and files.
func (d Duplicate) String() string {
	return fmt.Sprintf("row %d, %d times: %s", d.Row, d.Times, strings.Join(d.Files, ", "))
}

// Unexpected is a sound row whose number no checkpoint has committed.
type Unexpected struct {
	Row  int64  `json:"row"`
	File string `json:"file"`
}

// Compare orders by row, then file.
func (u Unexpected) Compare(o Unexpected) int {
	return cmp.Or(cmp.Compare(u.Row, o.Row), cmp.Compare(u.File, o.File))
}

// String names row and file.
func (u Unexpected) String() string { return fmt.Sprintf("row %d in %s", u.Row, u.File) }

// BadRow is a line that is not a row as it was made.
type BadRow struct {
	File   string `json:"file"`
	Index  int64  `json:"index"`  // lines before it in the file
	Offset int64  `json:"offset"` // bytes before it in the file
	Row    int64  `json:"row"`    // the row number it carries, -1 when none can be read
	Torn   bool   `json:"torn"`   // the file ends inside this row: there is no newline behind it
	Why    string `json:"why"`
}

// Compare orders by place.
func (b BadRow) Compare(o BadRow) int {
	return cmp.Or(cmp.Compare(b.File, o.File), cmp.Compare(b.Index, o.Index))
}

// String names place and reason.
func (b BadRow) String() string {
	return fmt.Sprintf("%s, line %d at byte %d: %s", b.File, b.Index+1, b.Offset, b.Why)
}

// FileProblem is a file with something wrong about the whole of it. Want and Got are empty where
// there is nothing to compare.
type FileProblem struct {
	File string `json:"file"`
	Want string `json:"want,omitempty"`
	Got  string `json:"got,omitempty"`
}

// Compare orders by file.
func (f FileProblem) Compare(o FileProblem) int {
	return cmp.Or(cmp.Compare(f.File, o.File), cmp.Compare(f.Want, o.Want), cmp.Compare(f.Got, o.Got))
}

// String names file and values.
func (f FileProblem) String() string {
	if f.Want == "" && f.Got == "" {
		return f.File
	}
	return fmt.Sprintf("%s: %s instead of %s", f.File, f.Got, f.Want)
}
