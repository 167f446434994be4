package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNewRegistry_SortsTheOptionsOfAllPackages(t *testing.T) {
	r, err := NewRegistry([]Info{Int("b", 0, "").Info(), Int("a", 0, "").Info()}, nil, []Info{Int("a.b", 0, "").Info()})
	require.NoError(t, err)
	var names []string
	for _, info := range r.All() {
		names = append(names, info.Name)
	}
	assert.Equal(t, []string{"a", "a.b", "b"}, names)
}

func TestNewRegistry_RefusesTwoOptionsWithOneSpelling(t *testing.T) {
	alias := func(names ...string) Mod[int64] { return WithAliases[int64](names...) }
	for reason, infos := range map[string][]Info{
		`option "a": is also a spelling of "a"`:         {Int("a", 0, "").Info(), Bool("a", false, "").Info()},
		`option "a": is also a spelling of "b"`:         {Int("b", 0, "", alias("a")).Info(), Int("d", 0, "", alias("a")).Info()},
		`option "old": is also a spelling of "old"`:     {Int("old", 0, "", alias("old")).Info()},
		`option "b": is also a spelling of "a"`:         {Int("a", 0, "", alias("b")).Info(), Int("b", 0, "").Info()},
		`option "a.b.#": is also a spelling of "a.#.c"`: {Int("a.b.#", 0, "").Info(), Int("a.#.c", 0, "").Info()},
		`option "a.b.c": is also a spelling of "a.#.c"`: {Int("a.#.c", 0, "").Info(), Int("a.b.c", 0, "").Info()},
		`option "a.#": is also a spelling of "b"`:       {Int("b", 0, "", alias("a.x", "a.y")).Info(), Int("c.#", 0, "", alias("a.#")).Info()},
	} {
		_, err := NewRegistry(infos)
		assert.EqualError(t, err, reason)
		_, ok := errors.AsType[*DeclarationError](err)
		assert.True(t, ok)
	}
}

func TestNewRegistry_AllowsAKeyThatIsThePrefixOfAnother(t *testing.T) {
	_, err := NewRegistry([]Info{Int("s3.retry", 0, "").Info(), Int("s3.retry.mode", 0, "").Info(), Int("s3.#.mode.x", 0, "").Info()})
	assert.NoError(t, err)
}

func TestNewRegistry_RefusesNamesThatAreNoKeys(t *testing.T) {
	for _, name := range []string{"", ".", "a.", ".a", "a..b", "A", "a_b", "a b", "a.-b", "a-.b", "a.#b", "#.#", "\u00e4", "a=b"} {
		_, err := NewRegistry([]Info{Int(name, 0, "").Info()})
		assert.ErrorContains(t, err, "is not a dotted key", "%q", name)
		_, err = NewRegistry([]Info{Int("fine", 0, "", WithAliases[int64](name)).Info()})
		assert.Error(t, err, "alias %q", name)
	}
	_, err := NewRegistry([]Info{Int("a.#", 0, "", WithAliases[int64]("old")).Info()})
	assert.EqualError(t, err, `option "a.#": alias "old" must have a segment "#" exactly when the option has one`)
}

func TestNewRegistry_RefusesDeclarationsThatCannotWork(t *testing.T) {
	changed := Int("a", 0, "").Info()
	changed.Name = "a.#"
	for reason, info := range map[string]Info{
		`option "a": is not made by a constructor of package config`:      {Name: "a", Default: "1"},
		`option "a": default "0": must be at least 1`:                     Int("a", 0, "", AtLeast[int64](1)).Info(),
		`option "a": the range 2 to 1 is empty`:                           Int("a", 1, "", Range[int64](2, 1)).Info(),
		`option "a": default "": must not be empty`:                       String("a", "", "", NotEmpty[string]()).Info(),
		`option "a": default "": must be one of red`:                      Enum("a", color(0), []color{red}, "").Info(),
		`option "a": an enum needs values, and their names must differ`:   Enum("a", red, []color{red, red}, "").Info(),
		`option "a": default "-1 kb": does not begin with a digit`:        Size("a", -1024, "").Info(),
		`option "a.#": is changed after its declaration`:                  changed,
		`option "a.b": an enum needs values, and their names must differ`: Enum("a.b", red, nil, "").Info(),
	} {
		_, err := NewRegistry([]Info{info})
		assert.EqualError(t, err, reason)
	}
}

func TestNewRegistry_ReportsAllProblemsTogether(t *testing.T) {
	_, err := NewRegistry([]Info{Int("B", 0, "").Info(), Int("a", 0, "", AtLeast[int64](1)).Info(), Int("c", 0, "").Info(), Int("c", 0, "").Info()})
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 3)
	assert.Contains(t, lines[0], `"B"`)
	assert.Contains(t, lines[1], `"a"`)
	assert.Contains(t, lines[2], `"c"`)
}

func TestAll_GivesACopy(t *testing.T) {
	r, err := NewRegistry([]Info{Int("a", 0, "").Info()})
	require.NoError(t, err)
	r.All()[0].Name = "changed"
	assert.Equal(t, "a", r.All()[0].Name)
}
