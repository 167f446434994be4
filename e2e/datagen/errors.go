package datagen

import (
	"errors"
	"fmt"
)

var (
	// ErrNotARow is returned by [Generator.Number] for bytes that carry no row number.
	ErrNotARow = errors.New("not a row of this generator")

	// ErrPosition is returned for a stored source position that cannot be read: damaged, of an
	// unknown version, or with impossible values.
	ErrPosition = errors.New("unusable source position")
)

// CorruptError says that a row carries a number and is not the row of that number. When the head
// itself is damaged, Row is whatever the damage spells.
type CorruptError struct {
	Row        int64 // the number read from the row
	Length     int   // bytes there are
	WantLength int   // bytes row number Row has
	At         int   // offset of the first byte that differs or is missing or too many
	Differing  int   // bytes that differ within the common length
}

// Error describes the damage without quoting the row.
func (e *CorruptError) Error() string {
	common := min(e.Length, e.WantLength) - MinLength
	switch {
	case common > 0 && e.Differing > common/2:
		return fmt.Sprintf("corrupt row: its head reads as row %d but the rest does not belong to it: damaged head, other seed or other field", e.Row)
	case e.Length != e.WantLength && e.Differing == 0:
		return fmt.Sprintf("corrupt row %d: %d bytes instead of %d", e.Row, e.Length, e.WantLength)
	case e.Length != e.WantLength:
		return fmt.Sprintf("corrupt row %d: %d bytes instead of %d, first difference at byte %d", e.Row, e.Length, e.WantLength, e.At)
	default:
		return fmt.Sprintf("corrupt row %d: %d of %d bytes differ, the first at byte %d", e.Row, e.Differing, e.WantLength, e.At)
	}
}

// MismatchError refuses a stored position because going on from it would change the content of
// rows or hand some out twice. What names the setting, Checkpoint and Job its two values.
type MismatchError struct {
	What, Checkpoint, Job string
}

// Error names the setting and both values.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("the checkpoint was written with %s %s, the job says %s: set it back, or start with an empty checkpoint directory",
		e.What, e.Checkpoint, e.Job)
}

func notARow(row []byte) error {
	const shown = 40
	if len(row) > shown {
		return fmt.Errorf("%w: %d bytes that begin with %q", ErrNotARow, len(row), row[:shown])
	}
	return fmt.Errorf("%w: %d bytes, %q", ErrNotARow, len(row), row)
}
