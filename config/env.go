package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// envPrefix begins the name of every environment variable that is a setting.
const envPrefix = "SLUICE_"

// envName returns the variable of a key: upper case, "_" for a dot, "__" for a dash.
func envName(key string) string {
	return envPrefix + upper(strings.NewReplacer(".", "_", "-", "__").Replace(key))
}

// Env reads settings from an environment as os.Environ returns it: SLUICE_S3_ENDPOINT is s3.endpoint,
// SLUICE_S3_ACCESS__KEY is s3.access-key. Only keys that are not patterns can be set; any other variable that begins
// with SLUICE_ is an error that names the nearest known one. Of two entries with one name the last counts, as for a
// child process.
func Env(environ []string) Source { return &envSource{environ: environ} }

type envSource struct{ environ []string }

func (s *envSource) Load(r *Registry, set func(key, text string, at Origin) error) error {
	found := map[string]string{}
	for _, entry := range s.environ {
		if name, text, ok := strings.Cut(entry, "="); ok && strings.HasPrefix(name, envPrefix) {
			found[name] = text
		}
	}
	if len(found) == 0 {
		return nil
	}
	keys := make(map[string]string, len(r.exact))
	for key := range r.exact {
		keys[envName(key)] = key
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(found)) {
		at := Origin{Source: "environment " + name}
		key, ok := keys[name]
		if !ok {
			problems = append(problems, r.unknownVariable(name, at))
			continue
		}
		problems = append(problems, set(key, found[name], at))
	}
	return errors.Join(problems...)
}

func (r *Registry) unknownVariable(name string, at Origin) error {
	for _, p := range r.patterns {
		rest, ok := strings.CutPrefix(name, envName(p.prefix))
		if ok && len(rest) > len(envName(p.suffix))-len(envPrefix) && strings.HasSuffix(rest, envName(p.suffix)[len(envPrefix):]) {
			return &UnknownKeyError{Key: name, Origin: at,
				Hint: fmt.Sprintf("%s has a name of the user's choice in it and cannot come from the environment", p.info.Name)}
		}
	}
	return &UnknownKeyError{Key: name, Nearest: r.nearestVariable(name), Origin: at}
}

// Pairs reads settings written key=value, such as the arguments of -D; source stands in origins. Of two pairs with one
// key the last counts, as on any command line. A pair without "=" is an error that does not repeat the pair, which may
// hold a secret.
func Pairs(source string, kv []string) Source { return &pairSource{source: source, pairs: kv} }

type pairSource struct {
	source string
	pairs  []string
}

func (s *pairSource) Load(_ *Registry, set func(key, text string, at Origin) error) error {
	at := Origin{Source: s.source}
	last := map[string]int{}
	for i, pair := range s.pairs {
		key, _, _ := strings.Cut(pair, "=")
		last[key] = i
	}
	var problems []error
	for i, pair := range s.pairs {
		key, text, ok := strings.Cut(pair, "=")
		switch {
		case !ok || key == "":
			problems = append(problems, &SyntaxError{Origin: at, Err: fmt.Errorf("argument %d is not key=value", i+1)})
		case last[key] == i:
			problems = append(problems, set(key, text, at))
		}
	}
	return errors.Join(problems...)
}

// Map reads settings from a map of keys to texts; source stands in origins. The map is read when the source is loaded.
func Map(source string, m map[string]string) Source { return &mapSource{source: source, m: m} }

type mapSource struct {
	source string
	m      map[string]string
}

func (s *mapSource) Load(_ *Registry, set func(key, text string, at Origin) error) error {
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(s.m)) {
		problems = append(problems, set(key, s.m[key], Origin{Source: s.source}))
	}
	return errors.Join(problems...)
}
