package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// durationUnits lists the units of a duration, largest first. The first name is the one that FormatDuration writes, as
// Flink does. Both code points that look like µ are accepted: keyboards differ.
var durationUnits = [...]struct {
	names []string
	unit  time.Duration
}{
	{[]string{"d", "day", "days"}, day},
	{[]string{"h", "hour", "hours"}, time.Hour},
	{[]string{"min", "m", "minute", "minutes"}, time.Minute},
	{[]string{"s", "sec", "secs", "second", "seconds"}, time.Second},
	{[]string{"ms", "milli", "millis", "millisecond", "milliseconds"}, time.Millisecond},
	{[]string{"\u00b5s", "\u03bcs", "us", "micro", "micros", "microsecond", "microseconds"}, time.Microsecond},
	{[]string{"ns", "nano", "nanos", "nanosecond", "nanoseconds"}, time.Nanosecond},
}

// durationGrammar closes every error of ParseDuration about a unit.
const durationGrammar = "units are d/day, h/hour, min/m/minute, s/sec/second, ms/milli/millisecond, µs/us/micro/microsecond " +
	"and ns/nano/nanosecond"

var (
	errDurationOverflow = fmt.Errorf("more than %d days, the longest duration", int64(math.MaxInt64/day))
	errDurationFraction = errors.New("fractions are not allowed: use a smaller unit")
	errDurationStart    = errors.New("begins neither with a digit nor as ISO-8601 (PT10S)")
	errISO              = errors.New("not an ISO-8601 duration: P, days (2D), then T and hours, minutes and seconds (PT1H30M0.5S)")
	errISOSign          = errors.New("negative parts are not allowed")
)

// ParseDuration reads a duration in Flink's grammar: a whole number and an optional unit in any case, with or without
// spaces around either. The units are d/day, h/hour, min/m/minute, s/sec/second, ms/milli/millisecond,
// µs/us/micro/microsecond and ns/nano/nanosecond, the words also in the plural; without a unit the number is
// milliseconds. A text that begins with P is read as ISO-8601 with days and times, such as PT10S or P1DT0.5S.
//
// The result is never negative. A text that is empty, has a sign, a fraction (except in ISO seconds) or an unknown unit,
// or means more than about 292 years is an error.
func ParseDuration(text string) (time.Duration, error) {
	if iso := trim(text); iso != "" && !isDigit(iso[0]) {
		return parseISO(iso)
	}
	number, unit, err := splitNumber(text)
	if err != nil {
		return 0, err
	}
	factor, err := durationFactor(unit)
	if err != nil {
		return 0, err
	}
	return multiply(number, factor)
}

// durationFactor returns the length of one unit, written in lower case.
func durationFactor(unit string) (time.Duration, error) {
	if unit == "" {
		return time.Millisecond, nil
	}
	for _, u := range durationUnits {
		for _, name := range u.names {
			if unit == name {
				return u.unit, nil
			}
		}
	}
	if unit[0] == '.' || unit[0] == ',' {
		return 0, errDurationFraction
	}
	return 0, fmt.Errorf("unknown unit %q: %s", shorten(unit), durationGrammar)
}

// multiply returns n times unit for n >= 0.
func multiply(n int64, unit time.Duration) (time.Duration, error) {
	if n > math.MaxInt64/int64(unit) {
		return 0, errDurationOverflow
	}
	return time.Duration(n) * unit, nil
}

// isoParts lists the parts of an ISO-8601 duration in the only order they may come in; time says that a part stands
// behind the T.
var isoParts = [...]struct {
	letter byte
	time   bool
	unit   time.Duration
}{
	{'D', false, day},
	{'H', true, time.Hour},
	{'M', true, time.Minute},
	{'S', true, time.Second},
}

// parseISO reads the subset of ISO-8601 that java.time.Duration reads, which is what Flink falls back to, without signs.
func parseISO(text string) (time.Duration, error) {
	rest, ok := strings.CutPrefix(upper(text), "P")
	if !ok {
		return 0, errDurationStart
	}
	if strings.ContainsAny(rest, "+-") {
		return 0, errISOSign
	}
	dayText, timeText, hasTime := strings.Cut(rest, "T")
	if rest == "" || hasTime && timeText == "" {
		return 0, errISO
	}
	total, err := parseISOSection(dayText, false)
	if err != nil {
		return 0, err
	}
	clock, err := parseISOSection(timeText, true)
	if err != nil {
		return 0, err
	}
	if total > math.MaxInt64-clock {
		return 0, errDurationOverflow
	}
	return total + clock, nil
}

// parseISOSection sums the parts of text, which stands before the T or behind it.
func parseISOSection(text string, behindT bool) (time.Duration, error) {
	var total time.Duration
	for _, part := range isoParts {
		if part.time != behindT || text == "" {
			continue
		}
		number, rest, found := strings.Cut(text, string(part.letter))
		if !found {
			continue // a part that is not there; a letter out of order stays in text and fails as a number
		}
		amount, err := parseISONumber(number, part.unit)
		if err != nil {
			return 0, err
		}
		if total > math.MaxInt64-amount {
			return 0, errDurationOverflow
		}
		total, text = total+amount, rest
	}
	if text != "" {
		return 0, errISO
	}
	return total, nil
}

// parseISONumber reads the digits of one part; seconds may have up to nine decimals behind a point or a comma.
func parseISONumber(text string, unit time.Duration) (time.Duration, error) {
	whole, decimals := text, ""
	if i := strings.IndexAny(text, ".,"); i >= 0 && unit == time.Second {
		whole, decimals = text[:i], text[i+1:]
	}
	if whole == "" || len(decimals) > 9 || !allDigits(whole) || !allDigits(decimals) {
		return 0, errISO
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return 0, errDurationOverflow
	}
	amount, err := multiply(n, unit)
	if err != nil || decimals == "" {
		return amount, err
	}
	nanos, err := strconv.ParseInt(decimals+strings.Repeat("0", 9-len(decimals)), 10, 64)
	if err != nil || int64(amount) > math.MaxInt64-nanos {
		return 0, errDurationOverflow
	}
	return amount + time.Duration(nanos), nil
}

func allDigits(text string) bool {
	for i := range len(text) {
		if !isDigit(text[i]) {
			return false
		}
	}
	return true
}

// FormatDuration returns d in the largest unit that divides it, such as "5 min", "100 ms" or "90 s"; zero is "0 ms".
// ParseDuration reads it back to the same duration, unless d is negative.
func FormatDuration(d time.Duration) string {
	for _, u := range durationUnits {
		if d != 0 && d%u.unit == 0 {
			return strconv.FormatInt(int64(d/u.unit), 10) + " " + u.names[0]
		}
	}
	return "0 ms"
}
