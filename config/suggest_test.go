package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestNearest_IsTheDeclaredKeyThatLooksMostAlike(t *testing.T) {
	r := testRegistry(t)
	for key, want := range map[string]string{
		"s3.retry.mod":             "s3.retry.mode",
		"s3.rerty.mode":            "s3.retry.mode",
		"S3.Retry.Mode":            "s3.retry.mode",
		"s3.retry.max_num_retries": "s3.retry.max-num-retries",
		"s3.retry.max-retries":     "s3.retry.max-num-retries",
		"max-num-retries":          "s3.retry.max-num-retries",
		"retry.mode":               "s3.retry.mode",
		"s3.acces.key":             "s3.access-key", // nearest is the other spelling, the answer the right one
		"fs.s3.endpoint":           "s3.endpoint",
		"datagen.field.f0.kind":    "datagen.fields.f0.kind",
		"datagen.fields.f0.knid":   "datagen.fields.f0.kind",
		"datagen.fields.f0.len":    "datagen.fields.f0.length",
		"fields.f0.kimd":           "datagen.fields.f0.kind",
		"execution.checkpoint":     "",
		"parallelism":              "",
		"":                         "",
		strings.Repeat("s3.", 999): "",
	} {
		assert.Equal(t, want, r.nearest(key), "%q", key)
	}
}

// plainDistance is the textbook recursion for the same distance.
func plainDistance(a, b string) int {
	switch {
	case a == "":
		return len(b)
	case b == "":
		return len(a)
	}
	cost := 0
	if a[0] != b[0] {
		cost = 1
	}
	d := min(plainDistance(a[1:], b)+1, plainDistance(a, b[1:])+1, plainDistance(a[1:], b[1:])+cost)
	if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
		d = min(d, plainDistance(a[2:], b[2:])+1)
	}
	return d
}

func TestEditDistance_AgreesWithTheRecursion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.StringMatching(`[ab.]{0,6}`).Draw(t, "a")
		b := rapid.StringMatching(`[ab.]{0,6}`).Draw(t, "b")
		limit := rapid.IntRange(0, 8).Draw(t, "limit")
		if got, want := editDistance(a, b, limit), min(plainDistance(a, b), limit+1); got != want {
			t.Fatalf("editDistance(%q, %q, %d) = %d, want %d", a, b, limit, got, want)
		}
	})
}
