package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// NoneText is the Default of an option without one, and what [Config.Effective] shows for it while it is not set.
const NoneText = "(none)"

// Info describes an option without its Go type. Only the constructors of this package make one that a Registry accepts:
// an Info carries its parser with it.
type Info struct {
	Name    string   // dotted key, lower case
	Type    string   // string, int, float, bool, size, duration, secret, or enum with its values
	Default string   // as a user would write it; NoneText when there is none
	Doc     string   // one or two sentences, limits included
	Aliases []string // other spellings that are accepted with a warning
	Secret  bool     // the value never prints
	Pattern bool     // Name has a segment "#" that stands for one path segment chosen by the user

	parse      func(text string) (any, error) // text to a checked T
	format     func(value any) string         // T to the text of Default's form
	hasDefault bool
	problem    string // what the declaration got wrong; NewRegistry reports it
}

// Option is the declaration of one key with values of type T. It is immutable and safe for concurrent use; the zero
// Option belongs to no registry.
type Option[T any] struct {
	info Info
	def  T
}

// Info returns the declaration without its type, for a [Registry] or a table.
func (o Option[T]) Info() Info { return o.info }

// Name returns the dotted key.
func (o Option[T]) Name() string { return o.info.Name }

// With returns the option for one name chosen by the user: datagen.fields.#.kind with f0 is datagen.fields.f0.kind. The
// names that are set come from [Config.Segments]; for any other the option has its default. It panics when the option
// is not a pattern.
func (o Option[T]) With(segment string) Option[T] {
	if !o.info.Pattern {
		panic(fmt.Sprintf("config: With(%q) on %s, which is not a pattern", segment, o.info.Name))
	}
	o.info.Name = strings.Replace(o.info.Name, "#", segment, 1)
	o.info.Pattern = false
	return o
}

// Mod changes a declaration while it is made.
type Mod[T any] func(*declaration[T])

type declaration[T any] struct {
	aliases   []string
	checks    []func(T) error
	limits    []string
	noDefault bool
	problem   string
}

// WithAliases adds spellings that are accepted with a warning, such as the key of an older version. An alias of a
// pattern has a segment "#" too.
func WithAliases[T any](names ...string) Mod[T] {
	return func(d *declaration[T]) { d.aliases = append(d.aliases, names...) }
}

// WithCheck adds a check that every value has to pass when it is loaded, the default included. The error should say what
// is wrong with the value, not repeat the key.
func WithCheck[T any](check func(T) error) Mod[T] {
	return func(d *declaration[T]) { d.checks = append(d.checks, check) }
}

// NoDefault declares that the option has no value until it is set: Default reads "(none)", Get returns the zero T, and
// IsSet tells. The checks apply to set values only.
func NoDefault[T any]() Mod[T] {
	return func(d *declaration[T]) { d.noDefault = true }
}

// Range allows values from low to high, both included, and says so in the option's text.
func Range[T cmp.Ordered](low, high T) Mod[T] {
	return func(d *declaration[T]) {
		if low > high {
			d.problem = fmt.Sprintf("the range %s to %s is empty", formatAny(low), formatAny(high))
		}
		d.limits = append(d.limits, fmt.Sprintf("Allowed: %s to %s.", formatAny(low), formatAny(high)))
		d.checks = append(d.checks, func(v T) error {
			if v < low || v > high {
				return fmt.Errorf("must be between %s and %s", formatAny(low), formatAny(high))
			}
			return nil
		})
	}
}

// AtLeast allows values from low, included, and says so in the option's text.
func AtLeast[T cmp.Ordered](low T) Mod[T] {
	return func(d *declaration[T]) {
		d.limits = append(d.limits, fmt.Sprintf("At least %s.", formatAny(low)))
		d.checks = append(d.checks, func(v T) error {
			if v < low {
				return fmt.Errorf("must be at least %s", formatAny(low))
			}
			return nil
		})
	}
}

// NotEmpty refuses the empty text.
func NotEmpty[T ~string]() Mod[T] {
	return WithCheck(func(v T) error {
		if len(v) == 0 {
			return errors.New("must not be empty")
		}
		return nil
	})
}

// String declares an option whose value is the text as the source has it.
func String(name, def, doc string, mods ...Mod[string]) Option[string] {
	return declare(name, "string", def, doc, func(text string) (string, error) { return text, nil }, mods)
}

// SecretText declares an option whose value never prints. A secret has no default.
func SecretText(name, doc string, mods ...Mod[Secret]) Option[Secret] {
	mods = append(mods[:len(mods):len(mods)], NoDefault[Secret]())
	o := declare(name, "secret", "", doc, func(text string) (Secret, error) { return Secret(text), nil }, mods)
	o.info.Secret = true
	return o
}

// Int declares an option with whole numbers in decimal.
func Int(name string, def int64, doc string, mods ...Mod[int64]) Option[int64] {
	return declare(name, "int", def, doc, parseInt, mods)
}

// Float declares an option with decimal numbers; infinities and NaN are not numbers here.
func Float(name string, def float64, doc string, mods ...Mod[float64]) Option[float64] {
	return declare(name, "float", def, doc, parseFloat, mods)
}

// Bool declares an option that is true or false, in any case.
func Bool(name string, def bool, doc string, mods ...Mod[bool]) Option[bool] {
	return declare(name, "bool", def, doc, parseBool, mods)
}

// Size declares an option with a number of bytes, written as [ParseSize] reads it.
func Size(name string, def MemorySize, doc string, mods ...Mod[MemorySize]) Option[MemorySize] {
	return declare(name, "size", def, doc, ParseSize, mods)
}

// Duration declares an option with a duration, written as [ParseDuration] reads it.
func Duration(name string, def time.Duration, doc string, mods ...Mod[time.Duration]) Option[time.Duration] {
	return declare(name, "duration", def, doc, ParseDuration, mods)
}

// Enum declares an option with one of the given values, named by their String methods and read in any case.
func Enum[T interface{ String() string }](name string, def T, values []T, doc string, mods ...Mod[T]) Option[T] {
	known := make(map[string]T, len(values))
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = strings.ToLower(v.String())
		known[names[i]] = v
	}
	list := strings.Join(names, ", ")
	parse := func(text string) (T, error) {
		v, ok := known[strings.ToLower(trim(text))]
		if !ok {
			return v, fmt.Errorf("must be one of %s", list)
		}
		return v, nil
	}
	o := declare(name, "enum ("+list+")", def, doc, parse, mods)
	if len(known) != len(values) || len(values) == 0 {
		o.info.problem = "an enum needs values, and their names must differ"
	}
	return o
}

// declare makes an option from its parts; parse reads and range-checks the text of one value.
func declare[T any](name, kind string, def T, doc string, parse func(string) (T, error), mods []Mod[T]) Option[T] {
	var d declaration[T]
	for _, mod := range mods {
		mod(&d)
	}
	o := Option[T]{info: Info{
		Name: name, Type: kind, Default: NoneText,
		Doc:     strings.Join(append([]string{doc}, d.limits...), " "),
		Aliases: d.aliases, Pattern: strings.Contains(name, "#"),
		format: func(value any) string { return formatAny(value) },
		parse: func(text string) (any, error) {
			v, err := parse(text)
			if err != nil {
				return nil, err
			}
			for _, check := range d.checks {
				if err := check(v); err != nil {
					return nil, err
				}
			}
			return v, nil
		},
		hasDefault: !d.noDefault, problem: d.problem,
	}}
	if !d.noDefault {
		o.def, o.info.Default = def, formatAny(def)
	}
	return o
}

// formatAny writes a value in the form in which its option reads it.
func formatAny(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case time.Duration:
		return FormatDuration(v)
	case MemorySize:
		return v.String()
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case Secret:
		return masked
	case fmt.Stringer: // an enum
		return strings.ToLower(v.String())
	default:
		return fmt.Sprint(v)
	}
}

func parseInt(text string) (int64, error) {
	text = trim(text)
	if text == "" {
		return 0, errEmpty
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("outside %d to %d", int64(math.MinInt64), int64(math.MaxInt64))
	case err != nil:
		return 0, errors.New("not a whole number")
	}
	return n, nil
}

func parseFloat(text string) (float64, error) {
	text = trim(text)
	if text == "" {
		return 0, errEmpty
	}
	// strconv also reads hexadecimal, underscores, "inf" and "nan", none of which a user means here.
	if strings.Trim(text, "0123456789+-.eE") != "" {
		return 0, errors.New("not a number")
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errors.New("too large")
	case err != nil:
		return 0, errors.New("not a number")
	}
	return f, nil
}

func parseBool(text string) (bool, error) {
	switch lower(trim(text)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "":
		return false, errEmpty
	}
	return false, errors.New("must be true or false")
}
