package sluicecmd

import (
	"strconv"
	"strings"
)

// EventKind is what a line of the job's log says about a checkpoint.
type EventKind int

// The moments of a checkpoint that its log tells.
const (
	Begun   EventKind = iota + 1
	Durable           // it is saved; its files are about to be published
	Committed
)

// Event is a moment of one checkpoint, as the job's log tells it.
type Event struct {
	Kind EventKind
	ID   int64
}

// ParseEvent reads one line of a slog.TextHandler.
func ParseEvent(line string) (Event, bool) {
	var e Event
	switch Attr(line, "msg") {
	case "checkpoint begun":
		e.Kind = Begun
	case "checkpoint durable":
		e.Kind = Durable
	case "checkpoint committed":
		e.Kind = Committed
	default:
		return Event{}, false
	}
	id, err := strconv.ParseInt(Attr(line, "id"), 10, 64)
	if err != nil {
		return Event{}, false
	}
	e.ID = id
	return e, true
}

// Attr returns the value of a key of a line of key=value pairs, unquoted; empty
// when there is none. Quoted values are skipped as a whole, so that a key inside
// a message is not found.
func Attr(line, key string) string {
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
