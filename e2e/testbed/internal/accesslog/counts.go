package accesslog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Counts are the numbers of answered requests by operation and status. The zero
// value counts nothing.
type Counts struct {
	cells map[cell]int64
}

type cell struct {
	operation string
	status    int
}

// Add counts one request.
func (c *Counts) Add(r Request) {
	if c.cells == nil {
		c.cells = map[cell]int64{}
	}
	c.cells[cell{r.Operation, r.Status}]++
}

// Requests returns the number of all answered requests.
func (c Counts) Requests() int64 {
	return c.sum(func(Request) bool { return true })
}

// Throttled returns the number of answers that told the client to slow down.
func (c Counts) Throttled() int64 { return c.sum(Request.Throttled) }

// Final returns the number of answers that a client does not repeat a request
// for: all but throttles and server errors.
func (c Counts) Final() int64 {
	return c.sum(func(r Request) bool { return !r.Throttled() && !r.ServerError() })
}

// Operations returns the number of answered requests by operation.
func (c Counts) Operations() map[string]int64 {
	m := map[string]int64{}
	for k, n := range c.cells {
		m[k.operation] += n
	}
	return m
}

// Statuses returns the number of answered requests by HTTP status.
func (c Counts) Statuses() map[int]int64 {
	m := map[int]int64{}
	for k, n := range c.cells {
		m[k.status] += n
	}
	return m
}

func (c Counts) sum(keep func(Request) bool) int64 {
	var sum int64
	for k, n := range c.cells {
		if keep(Request{Status: k.status}) {
			sum += n
		}
	}
	return sum
}

// ToEnd as the end of a range means: to the end of the file.
const ToEnd int64 = -1

// End returns the present length of the log, the place where the next request
// will be written; 0 when there is no log yet. The server writes the line of a
// request before it answers, so a caller that has its answers has its lines.
func End(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Read counts the lines of the log from offset from up to offset to, or ToEnd.
// Both come from End. A last line without its line feed, which a killed server
// may leave behind, is not counted. Memory use does not grow with the log.
func Read(path string, from, to int64) (Counts, error) {
	var c Counts
	f, err := os.Open(path)
	if err != nil {
		return c, err
	}
	defer f.Close()
	if to == ToEnd {
		if to, err = End(path); err != nil {
			return c, err
		}
	}
	r := bufio.NewReaderSize(io.NewSectionReader(f, from, to-from), 64<<10)
	for {
		line, err := r.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return c, fmt.Errorf("read %s: %w", path, err)
		}
		req, ok, err := ParseLine(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return c, fmt.Errorf("read %s: %w", path, err)
		}
		if ok {
			c.Add(req)
		}
	}
}
