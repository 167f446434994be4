package sluicecmd

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseEvent_ReadsWhatSlogWrites(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(&b, nil))
	log.Info("checkpoint begun", "id", 7, "epoch", 1)
	log.Info("progress", "note", `msg="checkpoint committed" id=9`)
	log.With("job", "a b").Info("checkpoint committed", "duration", "3 ms", "id", 7)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")

	e, ok := ParseEvent(lines[0])
	assert.True(t, ok)
	assert.Equal(t, Event{Begun, 7}, e)
	_, ok = ParseEvent(lines[1])
	assert.False(t, ok, "a message inside a value is no event")
	e, ok = ParseEvent(lines[2])
	assert.True(t, ok)
	assert.Equal(t, Event{Committed, 7}, e)
}

func TestParseEvent_OtherLines_AreNone(t *testing.T) {
	for _, line := range []string{
		"", "x", "=", `msg="checkpoint begun"`, `msg="checkpoint begun" id=x`, `msg="checkpoint begun`, "panic: a=b",
		`level=WARN msg="checkpoint failed" id=3`,
	} {
		_, ok := ParseEvent(line)
		assert.False(t, ok, line)
	}
}
