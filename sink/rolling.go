package sink

// Rolling says when a part file ends.
type Rolling struct {
	// FileSize is the size, in bytes as stored, that no part file exceeds, but for a single row that is larger.
	FileSize int64
	// OnCheckpoint ends every open file at every checkpoint, so that each checkpoint publishes all rows before it.
	OnCheckpoint bool
}

// rollBefore says whether a file of the given size ends before n more bytes are added.
func (r Rolling) rollBefore(size, n int64) bool { return size > 0 && size+n > r.FileSize }
