package config

import (
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// flinkDurationUnits is the table of Flink's documentation, in nanoseconds, plus "us" for keyboards without a µ.
var flinkDurationUnits = []struct {
	names []string
	nanos int64
}{
	{[]string{"d", "day", "days"}, 86_400_000_000_000},
	{[]string{"h", "hour", "hours"}, 3_600_000_000_000},
	{[]string{"min", "m", "minute", "minutes"}, 60_000_000_000},
	{[]string{"s", "sec", "secs", "second", "seconds"}, 1_000_000_000},
	{[]string{"", "ms", "milli", "millis", "millisecond", "milliseconds"}, 1_000_000},
	{[]string{"\u00b5s", "\u03bcs", "us", "micro", "micros", "microsecond", "microseconds"}, 1_000},
	{[]string{"ns", "nano", "nanos", "nanosecond", "nanoseconds"}, 1},
}

func TestParseDuration_EveryUnitOfFlinksDocumentation(t *testing.T) {
	for _, u := range flinkDurationUnits {
		for _, name := range u.names {
			for _, text := range []string{"7" + name, "7 " + name, " 7\t" + name + "\n", "007" + upper(name)} {
				got, err := ParseDuration(text)
				require.NoError(t, err, "%q", text)
				assert.Equal(t, 7*u.nanos, int64(got), "%q", text)
			}
		}
	}
}

func TestParseDuration_ISO8601AsJavaReadsIt(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"PT10S":                     10 * time.Second,
		" pt10s ":                   10 * time.Second,
		"PT15M":                     15 * time.Minute,
		"PT10H":                     10 * time.Hour,
		"P2D":                       48 * time.Hour,
		"P2DT3H4M":                  51*time.Hour + 4*time.Minute,
		"PT0.5S":                    500 * time.Millisecond,
		"PT20.345S":                 20345 * time.Millisecond,
		"PT0,000000001S":            time.Nanosecond,
		"PT7.S":                     7 * time.Second,
		"PT0S":                      0,
		"P1DT1H1M1.000000001S":      25*time.Hour + time.Minute + time.Second + 1,
		"PT9223372036.854775807S":   math.MaxInt64,
		"P106751DT23H47M16.8S":      106751*24*time.Hour + 23*time.Hour + 47*time.Minute + 16800*time.Millisecond,
		"PT0000000000000000000001S": time.Second,
	} {
		got, err := ParseDuration(text)
		require.NoError(t, err, "%q", text)
		assert.Equal(t, want, got, "%q", text)
	}
}

func TestParseDuration_RefusesWhatIsNoDuration(t *testing.T) {
	overflow := "more than 106751 days, the longest duration"
	for text, reason := range map[string]string{
		"":                         "empty text",
		" \n":                      "empty text",
		"-1 s":                     errDurationStart.Error(),
		"+1 s":                     errDurationStart.Error(),
		"s":                        errDurationStart.Error(),
		"1.5 s":                    "fractions are not allowed: use a smaller unit",
		"5 ks":                     `unknown unit "ks": ` + durationGrammar,
		"1h30m":                    `unknown unit "h30m": ` + durationGrammar,
		"5 dd":                     `unknown unit "dd": ` + durationGrammar,
		"5 mins":                   `unknown unit "mins": ` + durationGrammar,
		"5 \u017f":                 "unknown unit \"\u017f\": " + durationGrammar, // the long s
		"106752 d":                 overflow,
		"9223372036855":            overflow, // milliseconds
		"9223372036854775808 ns":   "the number is more than 9223372036854775807",
		"P":                        errISO.Error(),
		"PT":                       errISO.Error(),
		"P1DT":                     errISO.Error(),
		"P1":                       errISO.Error(),
		"P1H":                      errISO.Error(),
		"PT1D":                     errISO.Error(),
		"PT1S1M":                   errISO.Error(),
		"PT1S1S":                   errISO.Error(),
		"PT1S ":                    "",
		"PT 1S":                    errISO.Error(),
		"PTS":                      errISO.Error(),
		"PT.5S":                    errISO.Error(),
		"PT1.5M":                   errISO.Error(),
		"PT0.0000000001S":          errISO.Error(),
		"P1Y":                      errISO.Error(),
		"P1W":                      errISO.Error(),
		"PT1T1S":                   errISO.Error(),
		"-PT1S":                    errDurationStart.Error(),
		"PT-1S":                    errISOSign.Error(),
		"P106752D":                 overflow,
		"P106751DT24H":             overflow,
		"PT9223372036.854775808S":  overflow,
		"PT9223372037S":            overflow,
		"PT2562047H47M16.9S":       overflow,
		"PT99999999999999999999S":  overflow,
		"PT2562047H999999999999M":  overflow,
		"PT153722867M99999999999S": overflow,
	} {
		_, err := ParseDuration(text)
		if reason == "" {
			assert.NoError(t, err, "%q", text)
			continue
		}
		assert.EqualError(t, err, reason, "%q", text)
	}
}

func TestFormatDuration_IsTheLargestUnitThatDivides(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 1: "1 ns", 1500: "1500 ns", 2000: "2 \u00b5s", 100 * time.Millisecond: "100 ms", 1500 * time.Millisecond: "1500 ms",
		time.Second: "1 s", 90 * time.Second: "90 s", 5 * time.Minute: "5 min", time.Hour: "1 h", 36 * time.Hour: "36 h",
		48 * time.Hour: "2 d", -5 * time.Second: "-5 s", math.MaxInt64: "9223372036854775807 ns",
	} {
		assert.Equal(t, want, FormatDuration(d))
	}
}

func TestFormatDuration_ReadsBackToTheSameDuration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom(flinkDurationUnits).Draw(t, "unit").nanos
		d := time.Duration(rapid.Int64Range(0, math.MaxInt64/unit).Draw(t, "count") * unit)
		got, err := ParseDuration(FormatDuration(d))
		if err != nil || got != d {
			t.Fatalf("ParseDuration(%q) = %d, %v; want %d", FormatDuration(d), got, err, d)
		}
	})
}

// The oracle is a second reading of the grammar, with regular expressions and unbounded rational numbers.
var (
	plainOracle = regexp.MustCompile(`^[\x00- ]*([0-9]+)[\x00- ]*([^\x00- ](?s:.*?))?[\x00- ]*$`)
	isoOracle   = regexp.MustCompile(`^[\x00- ]*[pP](?:([0-9]+)[dD])?([tT](?:([0-9]+)[hH])?(?:([0-9]+)[mM])?(?:([0-9]+(?:[.,][0-9]{0,9})?)[sS])?)?[\x00- ]*$`)
)

// oracleDuration returns nanoseconds, or nil when text is no duration.
func oracleDuration(text string) *big.Int {
	if m := plainOracle.FindStringSubmatch(text); m != nil {
		for _, u := range flinkDurationUnits {
			for _, name := range u.names {
				// Unicode folds the capital Greek Mu to µ; Flink and we do not.
				if m[2] == name || strings.EqualFold(m[2], name) && len(m[2]) == len(name) && !strings.Contains(m[2], "\u039c") {
					n, _ := new(big.Int).SetString(m[1], 10)
					return n.Mul(n, big.NewInt(u.nanos))
				}
			}
		}
		return nil
	}
	m := isoOracle.FindStringSubmatch(text)
	if m == nil || m[1]+m[3]+m[4]+m[5] == "" || len(m[2]) == 1 {
		return nil
	}
	total := new(big.Rat)
	for part, seconds := range map[string]int64{m[1] + "@d": 86400, m[3] + "@h": 3600, m[4] + "@m": 60, m[5] + "@s": 1} {
		number := strings.Replace(part[:len(part)-2], ",", ".", 1)
		if number == "" {
			continue
		}
		r, _ := new(big.Rat).SetString(strings.TrimSuffix(number, "."))
		total.Add(total, r.Mul(r, new(big.Rat).SetInt64(seconds*1e9)))
	}
	return total.Num()
}

func FuzzParseDuration(f *testing.F) {
	for _, seed := range []string{"", "0", "10 s", "5min", "500", "1 d", "106752 d", "7 \u00b5s", "PT10S", "p1dt2h3m4.5s", "PT0.5S", "P", "PT", "1.5 s", "-1 s", "PT-1S", "PT9223372036.854775807S"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1000 {
			t.Skip("the oracle's rationals are slow")
		}
		got, err := ParseDuration(text)
		want := oracleDuration(text)
		if want == nil || !want.IsInt64() {
			if err == nil {
				t.Fatalf("ParseDuration(%q) = %d, want an error", text, got)
			}
			return
		}
		if err != nil || int64(got) != want.Int64() || got < 0 {
			t.Fatalf("ParseDuration(%q) = %d, %v; want %s", text, got, err, want)
		}
		if again, err := ParseDuration(FormatDuration(got)); err != nil || again != got {
			t.Fatalf("ParseDuration(%q) = %d, %v; want %d", FormatDuration(got), again, err, got)
		}
	})
}
