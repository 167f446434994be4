package sink

// Format turns rows into bytes. A row format is resumable: a part file may end and go on at any row border, so the
// size of a file does not depend on when checkpoints happen. Safe for concurrent use by all writers.
type Format[T any] interface {
	// Extension is the end of a part file's name, with its dot; it may be empty.
	Extension() string
	// AppendRow appends the bytes of one row to dst. On error what was appended is thrown away and the row is refused.
	AppendRow(dst []byte, row T) ([]byte, error)
}

// Raw returns Flink's raw format for a single column of bytes: the value followed by a line feed. The value is not
// looked at: a line feed inside it makes two lines of one row.
func Raw() Format[[]byte] { return raw{} }

type raw struct{}

func (raw) Extension() string { return ".raw" }

func (raw) AppendRow(dst, row []byte) ([]byte, error) {
	return append(append(dst, row...), '\n'), nil
}
