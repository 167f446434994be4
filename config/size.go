package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MemorySize is a number of bytes.
type MemorySize int64

// sizeUnits lists the units of a size, largest first. The second name is the one that String writes, as Flink does.
var sizeUnits = [...]struct {
	names [3]string
	bytes int64
}{
	{[3]string{"t", "tb", "tebibytes"}, 1 << 40},
	{[3]string{"g", "gb", "gibibytes"}, 1 << 30},
	{[3]string{"m", "mb", "mebibytes"}, 1 << 20},
	{[3]string{"k", "kb", "kibibytes"}, 1 << 10},
	{[3]string{"b", "bytes", "bytes"}, 1},
}

// sizeGrammar closes every error of ParseSize about a unit.
const sizeGrammar = "units are b/bytes, k/kb/kibibytes, m/mb/mebibytes, g/gb/gibibytes and t/tb/tebibytes, powers of 1024"

var (
	errEmpty         = errors.New("empty text")
	errNoLeadDigit   = errors.New("does not begin with a digit")
	errSizeOverflow  = fmt.Errorf("more than %d bytes", int64(math.MaxInt64))
	errSizeFraction  = errors.New("fractions are not allowed: use a smaller unit")
	errNumberTooLong = fmt.Errorf("the number is more than %d", int64(math.MaxInt64))
)

// ParseSize reads a size in Flink's grammar: a whole number and an optional unit in any case, with or without spaces
// around either. The units are b/bytes, k/kb/kibibytes, m/mb/mebibytes, g/gb/gibibytes and t/tb/tebibytes, all powers of
// 1024; without a unit the number is bytes. The result is never negative. A text that is empty, has a sign, a fraction
// or an unknown unit, or means more than 2^63-1 bytes is an error.
func ParseSize(text string) (MemorySize, error) {
	number, unit, err := splitNumber(text)
	if err != nil {
		return 0, err
	}
	factor, err := sizeFactor(unit)
	if err != nil {
		return 0, err
	}
	if number > math.MaxInt64/factor {
		return 0, errSizeOverflow
	}
	return MemorySize(number * factor), nil
}

// sizeFactor returns the bytes of one unit, written in lower case.
func sizeFactor(unit string) (int64, error) {
	if unit == "" {
		return 1, nil
	}
	for _, u := range sizeUnits {
		for _, name := range u.names {
			if unit == name {
				return u.bytes, nil
			}
		}
	}
	if unit[0] == '.' || unit[0] == ',' {
		return 0, errSizeFraction
	}
	return 0, fmt.Errorf("unknown unit %q: %s", shorten(unit), sizeGrammar)
}

// String returns the size in the largest unit that divides it, such as "128 mb" or "1000 bytes". ParseSize reads it back
// to the same size, unless the size is negative.
func (s MemorySize) String() string {
	for _, u := range sizeUnits {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + " " + u.names[1]
		}
	}
	return "0 bytes"
}

// splitNumber cuts a text into the digits it begins with, as a number, and the rest, trimmed and in lower case.
func splitNumber(text string) (number int64, unit string, err error) {
	text = trim(text)
	if text == "" {
		return 0, "", errEmpty
	}
	end := 0
	for end < len(text) && isDigit(text[end]) {
		end++
	}
	if end == 0 {
		return 0, "", errNoLeadDigit
	}
	number, err = strconv.ParseInt(text[:end], 10, 64)
	if err != nil { // only digits: the one thing that can be wrong is the range
		return 0, "", errNumberTooLong
	}
	return number, lower(trim(text[end:])), nil
}

// trim removes what Java's String.trim does: everything up to and including the space, so that a text means the same
// here and in Flink.
func trim(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return r <= ' ' })
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// lower and upper change ASCII letters only: the Kelvin sign is not a k, and the long s no S.
func lower(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, text)
}

func upper(text string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			r -= 'a' - 'A'
		}
		return r
	}, text)
}
