package readback

// NewLineReaderSize is NewLineReader with a buffer small enough for tests to reach its ends.
var NewLineReaderSize = newLineReader
