package mainjob

import (
	"strconv"
	"strings"
)

// eventKind is what a line of the job's log says about a checkpoint.
type eventKind int

const (
	begun eventKind = iota + 1
	committed
)

// event is a moment of one checkpoint, as the job's log tells it.
type event struct {
	kind eventKind
	id   int64
}

// parseEvent reads one line of a slog.TextHandler.
func parseEvent(line string) (event, bool) {
	var e event
	switch attr(line, "msg") {
	case "checkpoint begun":
		e.kind = begun
	case "checkpoint committed":
		e.kind = committed
	default:
		return event{}, false
	}
	id, err := strconv.ParseInt(attr(line, "id"), 10, 64)
	if err != nil {
		return event{}, false
	}
	e.id = id
	return e, true
}

// attr returns the value of a key of a line of key=value pairs, unquoted; empty
// when there is none. Quoted values are skipped as a whole, so that a key inside
// a message is not found.
func attr(line, key string) string {
	for line != "" {
		name, rest, ok := strings.Cut(line, "=")
		if !ok {
			return ""
		}
		if i := strings.LastIndexByte(name, ' '); i >= 0 {
			name = name[i+1:]
		}
		value := rest
		if quoted, err := strconv.QuotedPrefix(rest); err == nil {
			value, line = quoted, rest[len(quoted):]
			if unquoted, err := strconv.Unquote(quoted); err == nil {
				value = unquoted
			}
		} else {
			value, line, _ = strings.Cut(rest, " ")
		}
		if name == key {
			return value
		}
	}
	return ""
}
