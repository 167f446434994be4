package datagen

import (
	"errors"
	"fmt"
	"math"

	"github.com/sluice-go/sluice/config"
)

// The keys of the source, named as in Flink with the prefix "datagen.".
var (
	KeyRowsPerSecond = config.Int("datagen.rows-per-second", DefaultRowsPerSecond,
		"Rows per second of this process, all its writers together, spread evenly. An upper bound. 0 = unlimited, which Flink does not have.",
		config.AtLeast[int64](0))
	KeyNumberOfRows = config.Int("datagen.number-of-rows", 0,
		"Rows of the whole job, all shards together, after which the source ends; unbounded when not set. A sequence that is shorter ends it earlier.",
		config.NoDefault[int64](), config.AtLeast[int64](1))
	KeySeed = config.Int("datagen.seed", 0,
		"Selects the content of random strings: each row is a pure function of seed, field name and row number.")
	KeyFieldKind = config.Enum("datagen.fields.#.kind", Random, Kinds(),
		"How the values of field # come about: random strings or a sequence. The raw format takes exactly one field.")
	KeyFieldLength = config.Int("datagen.fields.#.length", DefaultLength,
		fmt.Sprintf("Characters of a random string; the first %d carry the row number.", MinLength),
		config.Range[int64](MinLength, MaxLength))
	KeyFieldStart = config.Int("datagen.fields.#.start", 0,
		"First value of a sequence. A sequence needs start and end.", config.NoDefault[int64]())
	KeyFieldEnd = config.Int("datagen.fields.#.end", 0,
		"Last value of a sequence, included; the source ends behind it.", config.NoDefault[int64]())
)

// Keys lists the keys of the source for a [config.Registry].
func Keys() []config.Info {
	return []config.Info{
		KeyRowsPerSecond.Info(), KeyNumberOfRows.Info(), KeySeed.Info(),
		KeyFieldKind.Info(), KeyFieldLength.Info(), KeyFieldStart.Info(), KeyFieldEnd.Info(),
	}
}

// FromConfig reads the options of the source. A field exists when any of its keys is set; a key
// that belongs to the other kind of field is an error, as in Flink. All problems are reported
// together.
func FromConfig(c *config.Config) (Options, error) {
	o := Options{
		RowsPerSecond: config.Get(c, KeyRowsPerSecond),
		NumberOfRows:  config.Get(c, KeyNumberOfRows),
		Seed:          config.Get(c, KeySeed),
	}
	var errs []error
	for _, name := range c.Segments("datagen.fields.#") {
		f, err := fieldFromConfig(c, name)
		if err == nil {
			err = f.Validate()
		}
		o.Fields, errs = append(o.Fields, f), append(errs, err)
	}
	if err := errors.Join(o.validateJob(), errors.Join(errs...)); err != nil {
		return Options{}, err
	}
	return o, nil
}

// fieldFromConfig reads one field and reports the keys that are missing or do not belong to it.
func fieldFromConfig(c *config.Config, name string) (Field, error) {
	length, start, end := KeyFieldLength.With(name), KeyFieldStart.With(name), KeyFieldEnd.With(name)
	f := Field{Name: name, Kind: config.Get(c, KeyFieldKind.With(name))}
	var errs []error
	foreign := func(key string) {
		errs = append(errs, fmt.Errorf("%s: not an option of a %s field", key, f.Kind))
	}
	if f.Kind == Sequence {
		if config.IsSet(c, length) {
			foreign(length.Name())
		}
		for _, o := range []config.Option[int64]{start, end} {
			if !config.IsSet(c, o) {
				errs = append(errs, fmt.Errorf("%s: not set; a sequence needs start and end", o.Name()))
			}
		}
		f.Start, f.End = config.Get(c, start), config.Get(c, end)
		return f, errors.Join(errs...)
	}
	for _, o := range []config.Option[int64]{start, end} {
		if config.IsSet(c, o) {
			foreign(o.Name())
		}
	}
	f.Length = int(min(config.Get(c, length), math.MaxInt32)) // Range has bounded it
	return f, errors.Join(errs...)
}
