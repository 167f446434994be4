package retrymode

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// maxHint bounds what a hint can ask for; nobody waits that long, and sums with it cannot overflow.
const maxHint = 365 * 24 * time.Hour

// hintOf returns how long the server asked to be left alone with the answer that err carries, 0 when it did not ask. It reads
// Retry-After (seconds or an HTTP date) and x-amz-retry-after (milliseconds) and takes the longer one; malformed, negative and past values are ignored.
func hintOf(err error, now time.Time) time.Duration {
	var re *smithyhttp.ResponseError
	if !errors.As(err, &re) || re.Response == nil || re.Response.Response == nil {
		return 0
	}
	h := re.Response.Header
	return max(retryAfter(h, now), count(h.Get("X-Amz-Retry-After"), time.Millisecond))
}

// retryAfter reads the standard header. A date is compared with the server's own clock (its Date header) where there is one, so that a
// skew between the two clocks does not become part of the wait.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	if d := count(v, time.Second); d > 0 {
		return d
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent
	}
	return min(max(at.Sub(now), 0), maxHint)
}

// count reads a plain decimal number of units, at most maxHint; anything else is 0.
func count(s string, unit time.Duration) time.Duration {
	s = strings.TrimSpace(s)
	n, err := strconv.ParseUint(s, 10, 63)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return maxHint
	case err != nil:
		return 0
	case n > uint64(maxHint/unit):
		return maxHint
	}
	return time.Duration(n) * unit
}
