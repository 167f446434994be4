package datagen_test

import (
	"math"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func load(t *testing.T, yaml string) (datagen.Options, error) {
	t.Helper()
	r, err := config.NewRegistry(datagen.Keys())
	require.NoError(t, err)
	c, err := config.Load(r, config.YAML("job.yaml", strings.NewReader(yaml)))
	if err != nil {
		return datagen.Options{}, err
	}
	return datagen.FromConfig(c)
}

func TestFromConfig_ReadsFlinksOptions(t *testing.T) {
	for name, c := range map[string]struct {
		yaml string
		want datagen.Options
	}{
		"defaults of a random field": {
			"datagen.fields.line.kind: random",
			datagen.Options{RowsPerSecond: 10_000, Fields: []datagen.Field{datagen.RandomField("line", 100)}},
		},
		"a field without its kind": {
			"datagen.fields.line.length: 1024",
			datagen.Options{RowsPerSecond: 10_000, Fields: []datagen.Field{datagen.RandomField("line", 1024)}},
		},
		"everything about a random field": {
			"datagen: {rows-per-second: 0, number-of-rows: 5000000000, seed: -3, fields: {line: {kind: RANDOM, length: 16}}}",
			datagen.Options{NumberOfRows: 5_000_000_000, Seed: -3, Fields: []datagen.Field{datagen.RandomField("line", 16)}},
		},
		"a sequence": {
			"datagen.fields.n: {kind: sequence, start: -1, end: 9223372036854775805}",
			datagen.Options{RowsPerSecond: 10_000, Fields: []datagen.Field{datagen.SequenceField("n", -1, math.MaxInt64-2)}},
		},
		"a sequence from zero to zero": {
			"datagen.fields.n: {kind: sequence, start: 0, end: 0}",
			datagen.Options{RowsPerSecond: 10_000, Fields: []datagen.Field{datagen.SequenceField("n", 0, 0)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := load(t, c.yaml)
			require.NoError(t, err)
			assert.Equal(t, c.want, o)
		})
	}
}

func TestFromConfig_BadInputNamesKeyAndReason(t *testing.T) {
	for name, c := range map[string]struct {
		yaml  string
		parts []string
	}{
		"no field":                {"datagen.seed: 1", []string{"datagen.fields: no field"}},
		"two fields":              {"datagen.fields: {a.length: 20, b.length: 20}", []string{"2 fields (a, b)"}},
		"negative rate":           {"datagen: {rows-per-second: -1, fields.a.kind: random}", []string{"datagen.rows-per-second", "at least 0"}},
		"no rows":                 {"datagen: {number-of-rows: 0, fields.a.kind: random}", []string{"datagen.number-of-rows", "at least 1"}},
		"rows beyond 64 bits":     {"datagen: {number-of-rows: 9223372036854775808, fields.a.kind: random}", []string{"datagen.number-of-rows", "outside"}},
		"random too short":        {"datagen.fields.a.length: 15", []string{"datagen.fields.a.length", "16"}},
		"random with start":       {"datagen.fields.a.start: 1", []string{"datagen.fields.a.start: not an option of a random field"}},
		"sequence with length":    {"datagen.fields.a: {kind: sequence, length: 20, start: 1, end: 2}", []string{"datagen.fields.a.length: not an option of a sequence field"}},
		"sequence without bounds": {"datagen.fields.a.kind: sequence", []string{"datagen.fields.a.start: not set", "datagen.fields.a.end: not set"}},
		"sequence backwards":      {"datagen.fields.a: {kind: sequence, start: 2, end: 1}", []string{"datagen.fields.a.end: 1 is below start 2"}},
		"sequence too long":       {"datagen.fields.a: {kind: sequence, start: -1, end: 9223372036854775807}", []string{"datagen.fields.a.end", "more than there are row numbers"}},
		"unknown kind":            {"datagen.fields.a.kind: uuid", []string{"datagen.fields.a.kind", "random, sequence"}},
		"problems of two fields":  {"datagen.fields: {a.start: 1, b.end: 2}", []string{"2 fields", "fields.a.start", "fields.b.end"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, c.yaml)
			require.Error(t, err)
			for _, part := range c.parts {
				assert.ErrorContains(t, err, part)
			}
		})
	}
}
