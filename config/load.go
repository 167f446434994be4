package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Source is one layer of settings. Load calls set for each setting it has, in the order in which problems should be
// reported. An error of set is about that one setting: a source goes on and returns all errors joined, its own
// included. The built-in sources are [YAML], [Env], [Pairs] and [Map].
type Source interface {
	Load(r *Registry, set func(key, text string, at Origin) error) error
}

// Config is the result of a [Load]: an immutable map from keys to checked values. It is safe for concurrent use. It does
// not print its values; [Config.Effective] does, with secrets masked.
type Config struct {
	registry *Registry
	settings map[string]setting // by canonical key; only what a source has set
	warnings []string
}

// setting is one value that a source has set.
type setting struct {
	info    *Info
	segment string // what the user chose for "#"
	text    string // as the source has it
	value   any    // parsed and checked
	origin  Origin
}

// Setting is one row of the effective configuration.
type Setting struct {
	Key    string
	Value  string // in the form of the option's default; "******" for a set secret, "(none)" for what has no value
	Origin Origin
}

// Load reads the sources in order; later ones win, key by key. Every text is parsed and checked, whether or not a later
// source overrides it. The error joins all problems in the order of the sources: *UnknownKeyError, *ValueError,
// *DuplicateKeyError, *SyntaxError, and what an own Source returns.
func Load(r *Registry, sources ...Source) (*Config, error) {
	c := &Config{registry: r, settings: map[string]setting{}}
	var problems []error
	for _, source := range sources {
		l := loader{config: c, seen: map[string]place{}}
		problems = append(problems, source.Load(r, l.set))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return c, nil
}

// loader takes the settings of one source into a Config.
type loader struct {
	config *Config
	seen   map[string]place // by canonical key
}

// place is where a source has set a key, and how it spells it.
type place struct {
	key string
	at  Origin
}

func (l *loader) set(key, text string, at Origin) error {
	m, ok := l.config.registry.lookup(key)
	if !ok {
		return &UnknownKeyError{Key: key, Nearest: l.config.registry.nearest(key), Origin: at}
	}
	if first, ok := l.seen[m.key]; ok {
		return &DuplicateKeyError{Key: m.key, First: first.at, Second: at, FirstKey: first.key, NextKey: key}
	}
	l.seen[m.key] = place{key: key, at: at}
	if m.alias {
		l.config.warnings = append(l.config.warnings,
			fmt.Sprintf("%s: %s is another spelling of %s: write %s", at, key, m.key, m.key))
	}
	value, err := m.info.parse(text)
	if err != nil {
		return valueError(m, text, at, err)
	}
	l.config.settings[m.key] = setting{info: m.info, segment: m.segment, text: text, value: value, origin: at}
	return nil
}

// valueError keeps the text of a secret out of the error, also when a check has put it into its own.
func valueError(m match, text string, at Origin, err error) error {
	if m.info.Secret {
		if text != "" && strings.Contains(err.Error(), text) {
			err = errors.New("does not pass the option's check")
		}
		text = masked
	}
	return &ValueError{Key: m.key, Value: text, Origin: at, Err: err}
}

// Get returns the value of o: what the last source set, or the default. It panics when o is not in the registry that c
// was loaded with, or is a pattern whose "#" was not filled by [Option.With]: both are mistakes of the program.
func Get[T any](c *Config, o Option[T]) T {
	s, ok := c.find(o.info.Name)
	if !ok {
		return o.def
	}
	value, ok := s.value.(T)
	if !ok {
		panic(fmt.Sprintf("config: option %s is registered with type %s, not %T", o.info.Name, s.info.Type, o.def))
	}
	return value
}

// IsSet reports whether a source has set o. It panics where Get does.
func IsSet[T any](c *Config, o Option[T]) bool {
	_, ok := c.find(o.info.Name)
	return ok
}

// find returns the setting of a canonical key of the registry.
func (c *Config) find(name string) (setting, bool) {
	if s, ok := c.settings[name]; ok {
		return s, true
	}
	if m, known := c.registry.lookup(name); !known || m.key != name {
		panic(fmt.Sprintf("config: option %q is not in the registry, or a pattern without a name for #", name))
	}
	return setting{}, false
}

// Segments returns the names that users chose for the "#" of a pattern, sorted: for datagen.fields.#.kind those whose
// kind is set, for datagen.fields.# those of which any option is set. It panics when no declared option has that
// pattern.
func (c *Config) Segments(pattern string) []string {
	matches := func(name string) bool {
		return name == pattern || strings.HasSuffix(pattern, "#") && strings.HasPrefix(name, pattern+".")
	}
	if !strings.Contains(pattern, "#") || !slices.ContainsFunc(c.registry.infos, func(i Info) bool { return matches(i.Name) }) {
		panic(fmt.Sprintf("config: no option has the pattern %q", pattern))
	}
	var names []string
	for _, s := range c.settings {
		if s.info.Pattern && matches(s.info.Name) {
			names = append(names, s.segment)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Effective returns every known key that is not a pattern and every key of a pattern that is set, sorted, with the value
// in effect and where it comes from. Secrets are masked.
func (c *Config) Effective() []Setting {
	var rows []Setting
	for _, info := range c.registry.infos {
		if _, set := c.settings[info.Name]; !set && !info.Pattern {
			rows = append(rows, Setting{Key: info.Name, Value: info.Default, Origin: defaultOrigin})
		}
	}
	for key, s := range c.settings {
		rows = append(rows, Setting{Key: key, Value: s.display(), Origin: s.origin})
	}
	slices.SortFunc(rows, func(a, b Setting) int { return strings.Compare(a.Key, b.Key) })
	return rows
}

// display returns the value in canonical form, so that a bare number shows the unit it was read with.
func (s setting) display() string {
	if s.info.Secret {
		return masked
	}
	return s.info.format(s.value)
}

// Warnings returns a line for each key that a source spells in another way than its option's name, in the order of the
// sources.
func (c *Config) Warnings() []string { return slices.Clone(c.warnings) }

// Map returns the keys that a source has set, with the texts as the sources have them and under their canonical
// spellings. Secrets are left out: a checkpoint may hold the map. Load(r, Map(name, m)) gives the same values.
func (c *Config) Map() map[string]string {
	m := make(map[string]string, len(c.settings))
	for key, s := range c.settings {
		if !s.info.Secret {
			m[key] = s.text
		}
	}
	return m
}

// Format writes which keys are set and no value, whatever the verb: fmt would otherwise walk into the values and print
// secrets.
func (c Config) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "config%v", slices.Sorted(maps.Keys(c.settings)))
}
