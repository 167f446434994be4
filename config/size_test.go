package config

import (
	"math"
	"math/big"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParseSize_EveryUnitOfFlinksDocumentation(t *testing.T) {
	units := []struct {
		names  []string
		factor MemorySize
	}{
		{[]string{"", "b", "bytes"}, 1},
		{[]string{"k", "kb", "kibibytes"}, 1024},
		{[]string{"m", "mb", "mebibytes"}, 1024 * 1024},
		{[]string{"g", "gb", "gibibytes"}, 1024 * 1024 * 1024},
		{[]string{"t", "tb", "tebibytes"}, 1024 * 1024 * 1024 * 1024},
	}
	for _, u := range units {
		for _, name := range u.names {
			for _, text := range []string{"7" + name, "7 " + name, " 7\t" + name + "\n", "007" + upper(name)} {
				got, err := ParseSize(text)
				require.NoError(t, err, "%q", text)
				assert.Equal(t, 7*u.factor, got, "%q", text)
			}
		}
	}
}

func TestParseSize_Limits(t *testing.T) {
	for text, want := range map[string]MemorySize{
		"0":                   0,
		"0 tb":                0,
		"9223372036854775807": math.MaxInt64,
		"8388607 tb":          8388607 << 40,
		"8589934591 gb":       8589934591 << 30,
		"128mebibytes":        134217728,
	} {
		got, err := ParseSize(text)
		require.NoError(t, err, "%q", text)
		assert.Equal(t, want, got, "%q", text)
	}
}

func TestParseSize_RefusesWhatIsNoSize(t *testing.T) {
	for text, reason := range map[string]string{
		"":                              "empty text",
		" \t\n":                         "empty text",
		"9223372036854775808":           "the number is more than 9223372036854775807",
		"99999999999999999999999999":    "the number is more than 9223372036854775807",
		"8388608t":                      "more than 9223372036854775807 bytes",
		"99999999t":                     "more than 9223372036854775807 bytes",
		"9007199254740992k":             "more than 9223372036854775807 bytes",
		"1.5 gb":                        "fractions are not allowed: use a smaller unit",
		"1,5 gb":                        "fractions are not allowed: use a smaller unit",
		"-1":                            "does not begin with a digit",
		"+1":                            "does not begin with a digit",
		"mb":                            "does not begin with a digit",
		"\u0661 mb":                     "does not begin with a digit", // an Arabic one
		"5 mib":                         `unknown unit "mib": ` + sizeGrammar,
		"5 m b":                         `unknown unit "m b": ` + sizeGrammar,
		"5 byte":                        `unknown unit "byte": ` + sizeGrammar,
		"5 5 mb":                        `unknown unit "5 mb": ` + sizeGrammar,
		"5 \u212ab":                     "unknown unit \"\u212ab\": " + sizeGrammar, // the Kelvin sign
		"5 pb":                          `unknown unit "pb": ` + sizeGrammar,
		"0x10":                          `unknown unit "x10": ` + sizeGrammar,
		"1_000":                         `unknown unit "_000": ` + sizeGrammar,
		"9223372036854775808 kibibytes": "the number is more than 9223372036854775807",
	} {
		_, err := ParseSize(text)
		assert.EqualError(t, err, reason, "%q", text)
	}
}

func TestMemorySize_StringIsTheLargestUnitThatDivides(t *testing.T) {
	for size, want := range map[MemorySize]string{
		0: "0 bytes", 1: "1 bytes", 1000: "1000 bytes", 1023: "1023 bytes", 1024: "1 kb", 1025: "1025 bytes",
		5 << 20: "5 mb", 128 << 20: "128 mb", 1 << 30: "1 gb", 1 << 40: "1 tb", 2048 << 40: "2048 tb", 1<<40 + 1<<10: "1073741825 kb",
		math.MaxInt64: "9223372036854775807 bytes", -1024: "-1 kb", math.MinInt64: "-8388608 tb",
	} {
		assert.Equal(t, want, size.String())
	}
}

func TestMemorySize_StringReadsBackToTheSameSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shift := rapid.IntRange(0, 45).Draw(t, "shift")
		size := MemorySize(rapid.Int64Range(0, math.MaxInt64).Draw(t, "size") >> shift << (shift / 2))
		if size < 0 {
			t.Skip("shifted out of range")
		}
		got, err := ParseSize(size.String())
		if err != nil || got != size {
			t.Fatalf("ParseSize(%q) = %d, %v; want %d", size.String(), got, err, size)
		}
	})
}

// sizeOracle is a second reading of the grammar, with a regular expression and unbounded integers.
var sizeOracle = regexp.MustCompile(`^[\x00- ]*([0-9]+)[\x00- ]*(?:([bB]|[bB][yY][tT][eE][sS])|([kK]|[kK][bB]|[kK][iI][bB][iI][bB][yY][tT][eE][sS])|` +
	`([mM]|[mM][bB]|[mM][eE][bB][iI][bB][yY][tT][eE][sS])|([gG]|[gG][bB]|[gG][iI][bB][iI][bB][yY][tT][eE][sS])|` +
	`([tT]|[tT][bB]|[tT][eE][bB][iI][bB][yY][tT][eE][sS]))?[\x00- ]*$`)

func oracleSize(text string) *big.Int {
	m := sizeOracle.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	n, _ := new(big.Int).SetString(m[1], 10)
	for unit := range 5 {
		if m[2+unit] != "" {
			n.Lsh(n, uint(10*unit))
		}
	}
	return n
}

func FuzzParseSize(f *testing.F) {
	for _, seed := range []string{"", "0", "128 mb", "128MB", " 5mb ", "9223372036854775807", "9223372036854775808", "99999999t", "8388608 tb", "1.5g", "5 mib", "-1 b", "1e3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseSize(text)
		want := oracleSize(text)
		if want == nil || !want.IsInt64() {
			if err == nil {
				t.Fatalf("ParseSize(%q) = %d, want an error", text, got)
			}
			return
		}
		if err != nil || int64(got) != want.Int64() || got < 0 {
			t.Fatalf("ParseSize(%q) = %d, %v; want %s", text, got, err, want)
		}
		if again, err := ParseSize(got.String()); err != nil || again != got {
			t.Fatalf("ParseSize(%q) = %d, %v; want %d", got.String(), again, err, got)
		}
	})
}
