package readback

import (
	"bytes"
	"encoding/binary"
	"io"
	"unicode/utf8"
)

// readSize is how much a LineReader asks for at once.
const readSize = 256 << 10

// Counts is what was read. Bytes are all bytes, newlines included: the sizes of the files.
// Characters are the characters of the rows, newlines not included, as SQL's CHAR_LENGTH counts
// them: code points of UTF-8, where each byte that is not UTF-8 counts as one. For the rows of
// datagen, which are ASCII, Characters = Bytes - Rows.
type Counts struct {
	Rows       int64 `json:"rows"`
	Characters int64 `json:"characters"`
	Bytes      int64 `json:"bytes"`
}

// add adds o.
func (c *Counts) add(o Counts) {
	c.Rows += o.Rows
	c.Characters += o.Characters
	c.Bytes += o.Bytes
}

// Line is one row as it lies in a file.
type Line struct {
	Content []byte // without the newline; valid until the next call of Next; nil when TooLong
	Index   int64  // lines before it
	Offset  int64  // bytes before it
	Length  int64  // bytes of the row without the newline
	Torn    bool   // the file ends here without a newline
	TooLong bool   // longer than the reader's bound
}

// LineReader splits a stream into rows that end with '\n', in constant memory. An empty line is a
// row of no bytes; '\r' is an ordinary byte; a last line without a newline is torn and counts as a
// row. One goroutine at a time.
type LineReader struct {
	r      io.Reader
	maxRow int
	buf    []byte
	start  int // of the current line in buf
	seen   int // no newline in buf[start:seen]
	end    int // of what was read
	done   bool
	err    error
	counts Counts
	offset int64 // of buf[start] in the stream

	// A line too long for buf: what of it is not in buf any more.
	skipped      int64
	skippedRunes int64
}

// NewLineReader returns a reader for rows of at most maxRow bytes. It holds 256 KiB or maxRow+1
// bytes, whatever is more. Longer rows are counted and passed over.
func NewLineReader(r io.Reader, maxRow int) *LineReader {
	return newLineReader(r, maxRow, readSize)
}

func newLineReader(r io.Reader, maxRow, size int) *LineReader {
	return &LineReader{r: r, maxRow: maxRow, buf: make([]byte, max(size, maxRow+1))}
}

// Reset begins another stream with the same buffer.
func (l *LineReader) Reset(r io.Reader) {
	*l = LineReader{r: r, maxRow: l.maxRow, buf: l.buf}
}

// Next returns the next row; ok is false at the end of the stream or on an error, which Err tells
// apart. The line in which an error struck is not returned.
func (l *LineReader) Next() (line Line, ok bool) {
	for {
		if i := bytes.IndexByte(l.buf[l.seen:l.end], '\n'); i >= 0 {
			at := l.seen + i
			line = l.line(at, false)
			l.offset += line.Length + 1
			l.start, l.seen = at+1, at+1
			return line, true
		}
		l.seen = l.end
		if l.done {
			if l.err != nil || l.start == l.end && l.skipped == 0 {
				return Line{}, false
			}
			line = l.line(l.end, true)
			l.start = l.end
			return line, true
		}
		l.makeRoom()
		l.read()
	}
}

// Err returns the first error of the stream, nil at its end.
func (l *LineReader) Err() error { return l.err }

// Counts returns what was read so far. Bytes may be ahead of the rows until the end.
func (l *LineReader) Counts() Counts { return l.counts }

// line makes and counts the line whose last bytes are buf[start:end].
func (l *LineReader) line(end int, torn bool) Line {
	content := l.buf[l.start:end]
	line := Line{Content: content, Index: l.counts.Rows, Offset: l.offset, Length: l.skipped + int64(len(content)), Torn: torn}
	if line.Length > int64(l.maxRow) {
		line.Content, line.TooLong = nil, true
	}
	l.counts.Rows++
	l.counts.Characters += l.skippedRunes + runes(content)
	l.skipped, l.skippedRunes = 0, 0
	return line
}

// makeRoom makes sure that something can be read: it moves the begun line to the front or, when
// it fills the buffer by itself, counts it and lets it go.
func (l *LineReader) makeRoom() {
	if l.end < len(l.buf) {
		return
	}
	if l.start == 0 {
		whole := wholeRunes(l.buf)
		l.skipped += int64(whole)
		l.skippedRunes += runes(l.buf[:whole])
		l.start = whole
	}
	n := copy(l.buf, l.buf[l.start:l.end])
	l.start, l.seen, l.end = 0, n, n
}

// read reads once, or a few times when the stream gives neither bytes nor an error.
func (l *LineReader) read() {
	for range 100 {
		n, err := l.r.Read(l.buf[l.end:])
		l.end += n
		l.counts.Bytes += int64(n)
		if err != nil {
			l.done = true
			if err != io.EOF { // not errors.Is: a broken connection wraps io.EOF and is no end
				l.err = err
			}
			return
		}
		if n > 0 {
			return
		}
	}
	l.done, l.err = true, io.ErrNoProgress
}

// runes is utf8.RuneCount, eight bytes at a time while they are ASCII.
func runes(p []byte) int64 {
	n := 0
	for len(p) >= 8 && binary.LittleEndian.Uint64(p)&0x8080808080808080 == 0 {
		p, n = p[8:], n+8
	}
	return int64(n + utf8.RuneCount(p))
}

// wholeRunes returns how many bytes of p can be counted without knowing what follows: all but a
// rune that is not complete at the end.
func wholeRunes(p []byte) int {
	for i := len(p) - 1; i >= 0 && i > len(p)-utf8.UTFMax; i-- {
		if utf8.RuneStart(p[i]) {
			if !utf8.FullRune(p[i:]) {
				return i
			}
			break
		}
	}
	return len(p)
}
