package accesslog

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrFormat is wrapped by the error about a line that is not in the server's
// format.
var ErrFormat = errors.New("not a line of an access log")

// Request is what one line says about one answered request.
type Request struct {
	// Operation is the S3 operation, for example "UploadPart"; Unrouted when the
	// server answered before it looked at the request.
	Operation string
	// Status is the HTTP status of the answer, except that the log writes 200
	// for every success, 204 and 206 included.
	Status int
	// Code is the S3 error code, empty on success.
	Code string
}

// Unrouted is the operation of a request that the server refused before it knew
// the operation, which is how it answers above its limit of requests in flight.
const Unrouted = "Unrouted"

// Throttled reports whether the answer told the client to slow down.
func (r Request) Throttled() bool { return r.Status == 503 || r.Status == 429 }

// ServerError reports whether the answer was a failure of the server that is no
// throttling, which a client repeats as well.
func (r Request) ServerError() bool { return r.Status >= 500 && !r.Throttled() }

// startMark begins the line that the server writes when it opens the log.
const startMark = "log starts "

// ParseLine reads one line without its line feed. ok is false for the line that
// marks a start of the server. Fields are divided by single spaces and not
// quoted:
//
//	owner bucket [time] ip requester request-id operation key uri status code ...
//
// A key is written decoded and may hold spaces, the URI beside it is encoded and
// cannot, so the status is found behind the first field that starts with a slash
// and is followed by a number of three digits.
func ParseLine(line string) (r Request, ok bool, err error) {
	if strings.HasPrefix(line, startMark) {
		return Request{}, false, nil
	}
	_, rest, found := strings.Cut(line, "] ")
	f := strings.Split(rest, " ")
	if !found || len(f) < 8 {
		return Request{}, false, fmt.Errorf("%w: %q", ErrFormat, line)
	}
	r.Operation = operation(f[3])
	for i := 5; i+2 < len(f); i++ {
		if status, isStatus := statusOf(f[i+1]); isStatus && strings.HasPrefix(f[i], "/") {
			r.Status = status
			if f[i+2] != "-" {
				r.Code = f[i+2]
			}
			return r, true, nil
		}
	}
	return Request{}, false, fmt.Errorf("%w: %q", ErrFormat, line)
}

func operation(field string) string {
	if name, ok := strings.CutPrefix(field, "s3_"); ok {
		return name
	}
	return Unrouted
}

func statusOf(field string) (int, bool) {
	n, err := strconv.Atoi(field)
	return n, err == nil && n >= 100 && n <= 599
}
