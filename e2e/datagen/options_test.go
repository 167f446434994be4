package datagen_test

import (
	"math"
	"testing"

	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func options(f ...datagen.Field) datagen.Options {
	o := datagen.DefaultOptions()
	o.Fields = f
	return o
}

func TestOptions_SmallerOfRowCountAndSequenceBoundsTheJob(t *testing.T) {
	line := datagen.RandomField("line", 100)
	for name, c := range map[string]struct {
		number  int64
		field   datagen.Field
		rows    int64
		bounded bool
	}{
		"neither":               {0, line, math.MaxInt64, false},
		"number of rows":        {1000, line, 1000, true},
		"beyond 32 bits":        {1 << 40, line, 1 << 40, true},
		"sequence":              {0, datagen.SequenceField("n", 5, 14), 10, true},
		"number below sequence": {3, datagen.SequenceField("n", 5, 14), 3, true},
		"sequence below number": {300, datagen.SequenceField("n", 5, 14), 10, true},
		"one value":             {0, datagen.SequenceField("n", 5, 5), 1, true},
		"longest sequence":      {0, datagen.SequenceField("n", math.MinInt64, -2), math.MaxInt64, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(c.field)
			o.NumberOfRows = c.number
			require.NoError(t, o.Validate())
			rows, bounded := o.Rows()
			assert.Equal(t, c.rows, rows)
			assert.Equal(t, c.bounded, bounded)
		})
	}
}

func TestOptions_EveryProblemIsReportedAtOnce(t *testing.T) {
	o := datagen.Options{RowsPerSecond: -1, NumberOfRows: -2, Fields: []datagen.Field{
		datagen.RandomField("a", 15), datagen.SequenceField("b", 9, 3), datagen.SequenceField("c", math.MinInt64, math.MaxInt64), {Name: "d"},
		datagen.RandomField("e", 1<<30),
	}}
	err := o.Validate()
	for _, part := range []string{
		"datagen.rows-per-second: -1 is negative", "datagen.number-of-rows: -2 is negative", "5 fields (a, b, c, d, e); the raw format takes exactly one",
		"datagen.fields.a.length: 15 is too short: the first 16 characters", "datagen.fields.b.end: 3 is below start 9",
		"datagen.fields.c.end: -9223372036854775808 to 9223372036854775807 holds more than", "datagen.fields.d.kind", "datagen.fields.e.length: 1073741824 is above",
	} {
		assert.ErrorContains(t, err, part)
	}
}

func TestOptions_AFieldHasToBeNamed(t *testing.T) {
	assert.ErrorContains(t, datagen.DefaultOptions().Validate(), "datagen.fields: no field")
	_, err := datagen.DefaultOptions().Generator()
	assert.Error(t, err)
}

func TestField_SettingsOfTheOtherKindAreRefused(t *testing.T) {
	assert.Error(t, datagen.Field{Name: "f", Kind: datagen.Random, Length: 100, End: 3}.Validate())
	assert.Error(t, datagen.Field{Name: "f", Kind: datagen.Sequence, Length: 100, End: 3}.Validate())
}

func TestKind_TextRoundTripsInAnyCase(t *testing.T) {
	for _, k := range datagen.Kinds() {
		text, err := k.MarshalText()
		require.NoError(t, err)
		var got datagen.Kind
		require.NoError(t, got.UnmarshalText(text))
		assert.Equal(t, k, got)
	}
	k, err := datagen.ParseKind("SEQUENCE")
	require.NoError(t, err)
	assert.Equal(t, datagen.Sequence, k)
	_, err = datagen.ParseKind("uuid")
	assert.Error(t, err)
	_, err = datagen.Kind(0).MarshalText()
	assert.Error(t, err)
}
