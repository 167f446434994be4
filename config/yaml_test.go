package config

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// textRegistry has string options only, so that tests see the texts that YAML hands over.
func textRegistry(t testing.TB) *Registry {
	t.Helper()
	var infos []Info
	for _, name := range []string{"a", "b", "a.b", "a.b.c", "x.y", "m.#.k", "m.#.l"} {
		infos = append(infos, String(name, "", "").Info())
	}
	r, err := NewRegistry(infos, []Info{keySecret.Info()})
	require.NoError(t, err)
	return r
}

func yamlTexts(t *testing.T, text string) map[string]string {
	t.Helper()
	c, err := Load(textRegistry(t), YAML("f", strings.NewReader(text)))
	require.NoError(t, err, "%s", text)
	return c.Map()
}

func yamlProblem(t *testing.T, text string) string {
	t.Helper()
	_, err := Load(textRegistry(t), YAML("f", strings.NewReader(text)))
	require.Error(t, err, "%s", text)
	return err.Error()
}

func TestYAML_NestedFlatAndMixedSpellingsAreOneKey(t *testing.T) {
	want := map[string]string{"a.b.c": "1", "a.b": "2", "m.f0.k": "3"}
	for _, text := range []string{
		"a.b.c: 1\na.b: 2\nm.f0.k: 3\n",
		"a:\n  b.c: 1\n  b: 2\nm:\n  f0:\n    k: 3\n",
		"a.b: {c: 1}\na: {b: 2}\nm.f0: {k: 3}\n",
		"{a: {b: {c: 1}}, a.b: 2, m: {f0.k: 3}}",
		"\"a\": {'b.c': \"1\", b: '2'}\n? m\n: f0.k: 3\n",
	} {
		assert.Equal(t, want, yamlTexts(t, text), "%s", text)
	}
}

func TestYAML_AScalarKeepsTheTextOfTheFile(t *testing.T) {
	for text, want := range map[string]string{
		"a: 010":                  "010",
		"a: 0x1F":                 "0x1F",
		"a: 1_000":                "1_000",
		"a: 1.50":                 "1.50",
		"a: 2026-11-30":           "2026-11-30",
		"a: 12:30:45":             "12:30:45",
		"a: Yes":                  "Yes",
		"a: TRUE":                 "TRUE",
		"a: .inf":                 ".inf",
		"a: 128 mb":               "128 mb",
		"a: http://host:9000/x#y": "http://host:9000/x#y",
		"a: ''":                   "",
		"a: \"null\"":             "null",
		"a: '~'":                  "~",
		"a: \" b \"":              " b ",
		"a: |\n  one\n  two\n":    "one\ntwo\n",
		"a: !!str 5":              "5",
		"a: 5 # comment":          "5",
		"\ufeffa: 5":              "5",
		"a: \u00b5s":              "\u00b5s",
	} {
		assert.Equal(t, map[string]string{"a": want}, yamlTexts(t, text), "%s", text)
	}
}

func TestYAML_ADocumentWithoutKeysSetsNothing(t *testing.T) {
	for _, text := range []string{"", "\n", "# only a comment\n", "---\n", "--- ~\n", "{}", "a: {}\nb: {}"} {
		assert.Empty(t, yamlTexts(t, text), "%q", text)
	}
}

func TestYAML_OneKeySetTwiceIsAnErrorThatNamesBothLines(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: 2\na: 3\n":                   `f:3: key "a" is already set at f:1`,
		"a.b: 1\n\na:\n  b: 1\n":               `f:4: key "a.b" is already set at f:1`,
		"a:\n  b: 1\na:\n  b: 2\n":             `f:4: key "a.b" is already set at f:2`,
		"a:\n  b:\n    c: 1\na.b:\n  c: 1\n":   `f:5: key "a.b.c" is already set at f:3`,
		"s3.secret-key: 1\ns3.secret.key: 1\n": `f:2: key "s3.secret.key" is already set at f:1 as "s3.secret-key": keep "s3.secret-key"`,
	} {
		assert.Equal(t, want, yamlProblem(t, text), "%s", text)
	}
}

func TestYAML_AMappingMayComeInPieces(t *testing.T) {
	assert.Equal(t, map[string]string{"a.b": "1", "a.b.c": "2"}, yamlTexts(t, "a:\n  b: 1\na:\n  b.c: 2\n"))
}

func TestYAML_RefusesWhatIsNoMappingOfKeysToTexts(t *testing.T) {
	for text, want := range map[string]string{
		"a: [1, 2]":                 `f:1: "a" is a list: write one text`,
		"b: 1\na:\n  - 1\n":         `f:2: "a" is a list: write one text`,
		"- a\n":                     "f:1: the document is not a mapping of keys to values",
		"just a text":               "f:1: the document is not a mapping of keys to values",
		"a:\n":                      `f:1: "a" has no value: remove the line, or write "" for an empty text`,
		"a: null":                   `f:1: "a" has no value: remove the line, or write "" for an empty text`,
		"a: {b: }":                  `f:1: "a.b" has no value: remove the line, or write "" for an empty text`,
		"a: !!int 5":                `f:1: "a" has a tag: a text that begins with ! needs quotes`,
		"a: !own 5":                 `f:1: "a" has a tag: a text that begins with ! needs quotes`,
		"~: 1":                      "f:1: a key is not a plain text",
		"[a]: 1":                    "f:1: a key is not a plain text",
		"{a: 1}: 1":                 "f:1: a key is not a plain text",
		"a: &x {b: 1}\nx: {<<: *x}": "f:2: merge keys (<<) are not supported: write the keys out",
		"a: 1\n---\nb: 2\n":         "f:2: a second document begins: one file is one configuration",
		"a: *nowhere":               "f: alias without an anchor: a text that begins with * needs quotes",
		"a: 1\n b: 2\n":             "f:2: mapping values are not allowed in this context",
		"a: \"open\n":               "f:2: found unexpected end of stream",
		"a: 1\n---\n@":              "f:3: found character that cannot start any token",
		"s3: {secret-key: {a: b}}":  "f:1: s3.secret-key is a mapping, not a text: a text that begins with { needs quotes",
	} {
		assert.Equal(t, want, yamlProblem(t, text), "%s", text)
	}
}

func TestYAML_AnAnchorMayBeUsedAgain(t *testing.T) {
	assert.Equal(t, map[string]string{"a": "5 mb", "b": "5 mb"}, yamlTexts(t, "a: &size 5 mb\nb: *size\n"))
	assert.Equal(t, map[string]string{"m.f0.k": "1", "m.f0.l": "2", "m.f1.k": "1", "m.f1.l": "2"},
		yamlTexts(t, "m:\n  f0: &field {k: 1, l: 2}\n  f1: *field\n"))
	assert.Equal(t, map[string]string{"a": "b", "b": "1"}, yamlTexts(t, "a: &b b\n*b : 1\n"))
}

func TestYAML_AFileThatExpandsItselfEndsInAnError(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("l0: &l0 {a: 1}\n")
	for i := 1; i <= 30; i++ {
		fmt.Fprintf(&laughs, "l%d: &l%d {a: *l%d, b: *l%d}\n", i, i, i-1, i-1)
	}
	assert.Contains(t, yamlProblem(t, laughs.String()), "more than 10000 values")
	assert.Contains(t, yamlProblem(t, "a: &a {b: *a}\n"), "nested deeper than 64 levels")
	assert.Contains(t, yamlProblem(t, "a: &a {b: *a, c: *a}\n"), "more than 10000 values")
	assert.Contains(t, yamlProblem(t, strings.Repeat("{a: ", 100)+"1"+strings.Repeat("}", 100)), "nested deeper than 64 levels")
	assert.Contains(t, yamlProblem(t, strings.Repeat("k", 600)+": 1"), "a key is longer than 512 bytes")
	half := strings.Repeat("k", 300)
	assert.Contains(t, yamlProblem(t, half+": {"+half+": {c: 1}}"), "a key longer than 512 bytes")
}

func TestYAML_AFileOfOneMiBIsTheLargest(t *testing.T) {
	pad := func(size int) string { return "a: 1\n#" + strings.Repeat("x", size-len("a: 1\n#")) }
	assert.Equal(t, map[string]string{"a": "1"}, yamlTexts(t, pad(1<<20)))
	assert.Equal(t, "f: larger than 1 mb", yamlProblem(t, pad(1<<20+1)))
}

func TestYAML_AReaderThatFailsIsAnErrorWithItsCause(t *testing.T) {
	_, err := Load(textRegistry(t), YAML("job.yaml", iotest.ErrReader(io.ErrUnexpectedEOF)))
	assert.EqualError(t, err, "job.yaml: unexpected EOF")
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// flatten is what a second reader makes of a document: the keys of nested maps joined by dots.
func flatten(prefix string, value any, into map[string]any) {
	m, ok := value.(map[string]any)
	if !ok {
		into[prefix] = value
		return
	}
	for key, v := range m {
		if prefix != "" {
			key = prefix + "." + key
		}
		flatten(key, v, into)
	}
}

func FuzzYAML(f *testing.F) {
	for _, seed := range []string{
		"", "a: 1", "a: {b: {c: x}}\na.b: y\n", "a: 1\na: 2", "a: &a {b: *a}", "a: [1]", "m: {f0: {k: 1, l: 2}, f1.k: 3}", "a: |\n  b\n", "{a: b, x: {y: z}}",
		"---\na: 1\n---\nb: 2", "a: !!binary aGk=", "? [a]\n: b", "<<: {a: 1}", "a: 'it''s'\nb: \"\\u00e9\"", "a:\tb", "%YAML 1.1\n---\na: b", "s3.secret-key: x",
	} {
		f.Add(seed)
	}
	r := textRegistry(f)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Load(r, YAML("f", strings.NewReader(text)))
		_, again := Load(r, YAML("f", strings.NewReader(text)))
		if fmt.Sprint(err) != fmt.Sprint(again) {
			t.Fatalf("two loads of one text: %v and %v", err, again)
		}
		if err != nil {
			if hidden, secretErr := Load(r, YAML("f", strings.NewReader("s3.secret-key: "+password+"\n"+text))); secretErr != nil {
				if strings.Contains(secretErr.Error(), password) {
					t.Fatalf("the error holds the secret: %v", secretErr)
				}
			} else if Get(hidden, keySecret).Reveal() == "" {
				t.Fatal("a secret was lost")
			}
			return
		}
		checkYAML(t, r, c, text)
	})
}

// checkYAML compares an accepted document with what the YAML library itself decodes, and with a second load of its map.
// The library refuses two mappings under one key, which are two pieces of one for us; there is nothing to compare then.
func checkYAML(t *testing.T, r *Registry, c *Config, text string) {
	var decoded map[string]any
	if err := yaml.Unmarshal([]byte(text), &decoded); err == nil {
		leaves := map[string]any{}
		flatten("", decoded, leaves)
		for key, value := range leaves {
			s, isText := value.(string)
			if m, ok := r.lookup(key); isText && ok && !m.info.Secret && c.Map()[m.key] != s {
				t.Fatalf("%s = %q in %q, the library reads %q", key, c.Map()[m.key], text, s)
			}
		}
	}
	copied, err := Load(r, Map("copy", c.Map()))
	if err != nil || fmt.Sprint(copied.Map()) != fmt.Sprint(c.Map()) {
		t.Fatalf("%q: the map %v loads to %v, %v", text, c.Map(), copied, err)
	}
}
