package config

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Origin is the place a setting comes from.
type Origin struct {
	Source string // "job.yaml", "environment SLUICE_S3_ENDPOINT", "-D", "default"
	Line   int    // line of the file, from 1; 0 where there are no lines
}

// defaultOrigin is the origin of a key that no source sets.
var defaultOrigin = Origin{Source: "default"}

// String returns the source, with the line where there is one: "job.yaml:12".
func (o Origin) String() string {
	if o.Line == 0 {
		return o.Source
	}
	return o.Source + ":" + strconv.Itoa(o.Line)
}

// UnknownKeyError says that a source sets a key that no option declares.
type UnknownKeyError struct {
	Key     string // as the source spells it; for the environment the name of the variable
	Nearest string // the declared key that looks most like it, spelled as the source would; "" when none is near
	Hint    string // what else could be meant; "" when there is nothing to say
	Origin  Origin
}

// Error names the place, the key and the nearest known key.
func (e *UnknownKeyError) Error() string {
	text := fmt.Sprintf("%s: unknown key %s", e.Origin, quote(e.Key))
	if e.Nearest != "" {
		text += fmt.Sprintf(", the nearest known key is %q", e.Nearest)
	}
	if e.Hint != "" {
		text += ": " + e.Hint
	}
	return text
}

// ValueError says that the text of a key cannot be read as the option's type, or does not pass its checks.
type ValueError struct {
	Key    string // the canonical spelling
	Value  string // the text as the source has it; "******" for a secret
	Origin Origin
	Err    error // the reason
}

// Error names the place, the key, the value and the reason.
func (e *ValueError) Error() string {
	return fmt.Sprintf("%s: %s = %s: %v", e.Origin, e.Key, quote(e.Value), e.Err)
}

// Unwrap returns the reason.
func (e *ValueError) Unwrap() error { return e.Err }

// DuplicateKeyError says that one source sets a key twice, in one spelling or in two.
type DuplicateKeyError struct {
	Key               string // the canonical spelling
	First, Second     Origin // both places, in the order of the source
	FirstKey, NextKey string // how each place spells the key
}

// Error names both places, and both spellings when they differ.
func (e *DuplicateKeyError) Error() string {
	if e.FirstKey == e.NextKey {
		return fmt.Sprintf("%s: key %s is already set at %s", e.Second, quote(e.NextKey), e.First)
	}
	return fmt.Sprintf("%s: key %s is already set at %s as %s: keep %s", e.Second, quote(e.NextKey), e.First, quote(e.FirstKey), quote(e.Key))
}

// SyntaxError says that a source cannot be read: broken YAML, a list where a text belongs, a pair without "=".
type SyntaxError struct {
	Origin Origin
	Err    error
}

// Error names the place and the reason.
func (e *SyntaxError) Error() string { return fmt.Sprintf("%s: %v", e.Origin, e.Err) }

// Unwrap returns the reason.
func (e *SyntaxError) Unwrap() error { return e.Err }

// DeclarationError says that an option is declared in a way that cannot work. It is a mistake of the program, not of
// its user.
type DeclarationError struct {
	Key    string
	Reason string
}

// Error names the option and the reason.
func (e *DeclarationError) Error() string {
	return fmt.Sprintf("option %s: %s", quote(e.Key), e.Reason)
}

// maxShown is the longest text of a user, in bytes, that an error repeats: a file fed by mistake must not fill the log.
const maxShown = 120

// quote returns text in quotes, safe to print and not too long.
func quote(text string) string { return strconv.Quote(shorten(text)) }

func shorten(text string) string {
	if len(text) <= maxShown {
		return text
	}
	end := maxShown
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}
