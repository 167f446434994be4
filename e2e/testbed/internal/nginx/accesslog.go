package nginx

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// logFormat is what nginx writes about one request. The status of the upstream
// is "-" when nginx did not ask it.
const logFormat = `$msec $status "$upstream_status" $request_method $request_uri`

// Counts are requests by what became of them. The zero value counts nothing.
type Counts struct {
	Requests int64 // all of them
	Refused  int64 // by the quota, with 503
	// Aborted are the requests that the client gave up before it was answered,
	// and those whose answer the server did not finish.
	Aborted int64
	// Failed are answered by the S3 server with 429 or 5xx: a client repeats those
	// as well.
	Failed int64
}

// Passed returns the number of requests that the quota let through.
func (c Counts) Passed() int64 { return c.Requests - c.Refused }

// statusClosed is the status that nginx logs for a request whose client has
// closed the connection.
const statusClosed = 499

func (c *Counts) add(line string) error {
	f := strings.SplitN(line, " ", 4)
	if len(f) < 4 {
		return fmt.Errorf("not a line of the access log: %q", line)
	}
	status, err := strconv.Atoi(f[1])
	if err != nil {
		return fmt.Errorf("not a line of the access log: %q", line)
	}
	c.Requests++
	switch asked := f[2] != `"-"` && f[2] != `""`; {
	case status == statusClosed:
		c.Aborted++
	case !asked && status == 503:
		c.Refused++
	case status >= 500 || status == 429:
		c.Failed++
	}
	return nil
}

// readLog counts the whole lines of the log from offset on and returns the
// offset behind the last of them. A log that is not there yet is empty.
func readLog(path string, offset int64) (c Counts, end int64, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return c, offset, nil
	}
	if err != nil {
		return c, offset, err
	}
	defer f.Close()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return c, offset, err
	}
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return c, offset, nil
		}
		if err == nil {
			err = c.add(strings.TrimSuffix(line, "\n"))
		}
		if err != nil {
			return c, offset, fmt.Errorf("read %s: %w", path, err)
		}
		offset += int64(len(line))
	}
}
