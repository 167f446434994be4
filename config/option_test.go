package config

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type color int

const (
	red color = iota + 1
	darkBlue
)

func (c color) String() string { return map[color]string{red: "Red", darkBlue: "Dark-Blue"}[c] }

// one loads a single option from a single text.
func one[T any](t *testing.T, o Option[T], text string) (T, error) {
	t.Helper()
	r, err := NewRegistry([]Info{o.Info()})
	require.NoError(t, err)
	c, err := Load(r, Map("test", map[string]string{o.Name(): text}))
	if err != nil {
		var zero T
		return zero, err
	}
	return Get(c, o), nil
}

func reads[T any](t *testing.T, o Option[T], text string, want T) {
	t.Helper()
	got, err := one(t, o, text)
	require.NoError(t, err, "%q", text)
	assert.Equal(t, want, got, "%q", text)
}

func refuses[T any](t *testing.T, o Option[T], text, reason string) {
	t.Helper()
	_, err := one(t, o, text)
	ve, ok := errors.AsType[*ValueError](err)
	require.True(t, ok, "%q: %v", text, err)
	assert.EqualError(t, ve.Err, reason, "%q", text)
}

func TestInfo_DescribesTheDeclaration(t *testing.T) {
	infos := []Info{
		String("a.string", "x", "Doc.").Info(),
		SecretText("a.secret", "Doc.").Info(),
		Int("a.int", -3, "Doc.", WithAliases[int64]("old.int")).Info(),
		Float("a.float", 0.5, "Doc.").Info(),
		Bool("a.bool", true, "Doc.").Info(),
		Size("a.size", 5<<20, "Doc.", Range[MemorySize](5<<20, 5<<30)).Info(),
		Duration("a.duration", 5*time.Minute, "Doc.", AtLeast(time.Second)).Info(),
		Enum("a.enum", darkBlue, []color{red, darkBlue}, "Doc.").Info(),
		Duration("a.#.none", time.Hour, "Doc.", NoDefault[time.Duration]()).Info(),
	}
	type row struct {
		name, kind, def, doc string
		secret, pattern      bool
		aliases              []string
	}
	want := []row{
		{name: "a.string", kind: "string", def: "x", doc: "Doc."},
		{name: "a.secret", kind: "secret", def: "(none)", doc: "Doc.", secret: true},
		{name: "a.int", kind: "int", def: "-3", doc: "Doc.", aliases: []string{"old.int"}},
		{name: "a.float", kind: "float", def: "0.5", doc: "Doc."},
		{name: "a.bool", kind: "bool", def: "true", doc: "Doc."},
		{name: "a.size", kind: "size", def: "5 mb", doc: "Doc. Allowed: 5 mb to 5 gb."},
		{name: "a.duration", kind: "duration", def: "5 min", doc: "Doc. At least 1 s."},
		{name: "a.enum", kind: "enum (red, dark-blue)", def: "dark-blue", doc: "Doc."},
		{name: "a.#.none", kind: "duration", def: "(none)", doc: "Doc.", pattern: true},
	}
	for i, info := range infos {
		assert.Equal(t, want[i], row{info.Name, info.Type, info.Default, info.Doc, info.Secret, info.Pattern, info.Aliases})
	}
}

func TestInt_ReadsWholeDecimalNumbers(t *testing.T) {
	o := Int("n", 0, "")
	reads(t, o, "010", 10)
	reads(t, o, " -5 ", -5)
	reads(t, o, "-9223372036854775808", math.MinInt64)
	refuses(t, o, "9223372036854775808", "outside -9223372036854775808 to 9223372036854775807")
	for _, text := range []string{"1.0", "0x10", "1_000", "1e3", "ten", "1 2"} {
		refuses(t, o, text, "not a whole number")
	}
	refuses(t, o, " ", "empty text")
}

func TestFloat_ReadsDecimalNumbers(t *testing.T) {
	o := Float("f", 0, "")
	reads(t, o, "0.25", 0.25)
	reads(t, o, " -1e3 ", -1000)
	refuses(t, o, "1e999", "too large")
	for _, text := range []string{"NaN", "inf", "0x1p4", "1_000", "1,5", "e", "+-1"} {
		refuses(t, o, text, "not a number")
	}
	refuses(t, o, "", "empty text")
}

func TestBool_IsTrueOrFalseInAnyCaseAndNothingElse(t *testing.T) {
	o := Bool("b", false, "")
	reads(t, o, "true", true)
	reads(t, o, " TRUE", true)
	reads(t, o, "False", false)
	for _, text := range []string{"1", "0", "yes", "no", "on", "off", "t", "y"} {
		refuses(t, o, text, "must be true or false")
	}
	refuses(t, o, "", "empty text")
}

func TestEnum_IsReadInAnyCase(t *testing.T) {
	o := Enum("e", red, []color{red, darkBlue}, "")
	reads(t, o, "red", red)
	reads(t, o, " DARK-blue ", darkBlue)
	refuses(t, o, "dark_blue", "must be one of red, dark-blue")
	refuses(t, o, "", "must be one of red, dark-blue")
}

func TestString_KeepsTheTextAsItIs(t *testing.T) {
	reads(t, String("s", "", ""), "  two  spaces\n", "  two  spaces\n")
	reads(t, String("s", "default", ""), "", "")
	refuses(t, String("s", "default", "", NotEmpty[string]()), "", "must not be empty")
}

func TestSizeAndDuration_UseFlinksGrammar(t *testing.T) {
	reads(t, Size("s", 0, ""), "128 MB", MemorySize(134217728))
	refuses(t, Size("s", 0, ""), "128 mib", `unknown unit "mib": `+sizeGrammar)
	reads(t, Duration("d", 0, ""), "10", 10*time.Millisecond)
	refuses(t, Duration("d", 0, ""), "10x", `unknown unit "x": `+durationGrammar)
}

func TestRange_IncludesBothEndsAndNamesThemInTheUnitsOfTheOption(t *testing.T) {
	o := Size("s", 5<<20, "", Range[MemorySize](5<<20, 5<<30))
	reads(t, o, "5 mb", 5<<20)
	reads(t, o, "5 gb", 5<<30)
	refuses(t, o, "5242879", "must be between 5 mb and 5 gb")
	refuses(t, o, "5368709121", "must be between 5 mb and 5 gb")
	refuses(t, Duration("d", time.Second, "", AtLeast(time.Second)), "999", "must be at least 1 s")
	reads(t, Duration("d", time.Second, "", AtLeast(time.Second)), "1000", time.Second)
}

func TestChecks_RunInTheOrderOfTheDeclaration(t *testing.T) {
	odd := func(n int64) error {
		if n%2 == 0 {
			return errors.New("must be odd")
		}
		return nil
	}
	o := Int("n", 1, "", WithCheck(odd), AtLeast[int64](1))
	refuses(t, o, "-2", "must be odd")
	refuses(t, o, "-1", "must be at least 1")
	reads(t, o, "3", 3)
}

func TestNoDefault_GivesTheZeroValueAndItsChecksApplyToSetValuesOnly(t *testing.T) {
	o := Int("n", 7, "", NoDefault[int64](), AtLeast[int64](1))
	r, err := NewRegistry([]Info{o.Info()})
	require.NoError(t, err)
	c, err := Load(r)
	require.NoError(t, err)
	assert.Zero(t, Get(c, o))
	assert.False(t, IsSet(c, o))
	refuses(t, o, "0", "must be at least 1")
}

func TestWith_FillsThePatternAndLeavesTheOriginalAlone(t *testing.T) {
	o := String("datagen.fields.#.kind", "random", "")
	assert.Equal(t, "datagen.fields.f0.kind", o.With("f0").Name())
	assert.Equal(t, "datagen.fields.#.kind", o.Name())
	assert.PanicsWithValue(t, `config: With("x") on s.plain, which is not a pattern`, func() { String("s.plain", "", "").With("x") })
}
