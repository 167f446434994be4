package config

import (
	"fmt"
	"io"
	"log/slog"
)

// masked is what stands for a secret wherever one could be printed. Its length says nothing about the secret.
const masked = "******"

// Secret is a text that does not print: fmt, slog, JSON and YAML all see "******". Only [Secret.Reveal] gives the text.
//
// Two doors of fmt ask no type and cannot be closed here: the verb %p, which go vet refuses for a text, and unexported
// struct fields. A struct that holds a Secret in an unexported field and may be printed needs a Format method.
type Secret string

var (
	_ fmt.Formatter  = Secret("")
	_ slog.LogValuer = Secret("")
)

// Reveal returns the text. The caller must not put it into an error, a log line or a file.
func (s Secret) Reveal() string { return string(s) }

// String returns "******".
func (s Secret) String() string { return masked }

// GoString returns "******".
func (s Secret) GoString() string { return masked }

// Format writes "******" for every verb that fmt hands over. Without it a verb that does not fit a string would print the text behind the
// complaint about the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, masked) }

// MarshalText returns "******", so that JSON, XML and YAML encoders write that.
func (s Secret) MarshalText() ([]byte, error) { return []byte(masked), nil }

// LogValue returns "******".
func (s Secret) LogValue() slog.Value { return slog.StringValue(masked) }
