package config

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// Registry is the set of options a program knows. It is immutable and safe for concurrent use.
type Registry struct {
	infos    []Info            // sorted by name
	exact    map[string]target // every spelling without "#"
	patterns []pattern         // every spelling with "#"
}

// target is what a spelling stands for.
type target struct {
	info  *Info
	alias bool // the spelling is not the canonical one
}

// pattern is a spelling with a segment "#", cut there.
type pattern struct {
	target
	prefix, suffix string
}

// NewRegistry collects the declarations of a program's packages. Two options with one spelling, patterns that overlap,
// names that are no dotted lower-case keys, and defaults that fail their own checks are errors (*DeclarationError), all
// reported together.
func NewRegistry(infos ...[]Info) (*Registry, error) {
	r := &Registry{infos: slices.Concat(infos...), exact: map[string]target{}}
	slices.SortStableFunc(r.infos, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	var problems []error
	for i := range r.infos {
		info := &r.infos[i]
		if reason := declarationProblem(info); reason != "" {
			problems = append(problems, &DeclarationError{Key: info.Name, Reason: reason})
			continue
		}
		problems = append(problems, r.add(info, info.Name, false))
		for _, alias := range info.Aliases {
			problems = append(problems, r.add(info, alias, true))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return r, nil
}

// All returns the options, sorted by name. The caller must not change the aliases in them.
func (r *Registry) All() []Info { return slices.Clone(r.infos) }

// declarationProblem says what is wrong with info by itself, "" when nothing is.
func declarationProblem(info *Info) string {
	switch {
	case info.parse == nil:
		return "is not made by a constructor of package config"
	case info.problem != "":
		return info.problem
	case info.Pattern != strings.Contains(info.Name, "#"):
		return "is changed after its declaration"
	}
	for _, name := range append([]string{info.Name}, info.Aliases...) {
		if !validName(name) {
			return "spelling " + quote(name) + ` is not a dotted key of lower-case letters, digits and inner dashes, with at most one segment "#"`
		}
		if strings.Contains(name, "#") != info.Pattern {
			return "alias " + quote(name) + ` must have a segment "#" exactly when the option has one`
		}
	}
	if !info.hasDefault {
		return ""
	}
	if _, err := info.parse(info.Default); err != nil {
		return "default " + quote(info.Default) + ": " + err.Error()
	}
	return ""
}

// validName reports whether name can be a key. The rules make the environment variable of a key unique: with no
// underscore in a name and no dash at the edge of a segment, "_" and "__" cannot be confused.
func validName(name string) bool {
	choices := 0
	for segment := range strings.SplitSeq(name, ".") {
		if segment == "#" {
			choices++
			continue
		}
		if segment == "" || segment[0] == '-' || segment[len(segment)-1] == '-' {
			return false
		}
		for i := range len(segment) {
			if c := segment[i]; !isDigit(c) && c != '-' && (c < 'a' || c > 'z') {
				return false
			}
		}
	}
	return choices <= 1
}

// add makes spelling stand for info, unless it could already stand for something.
func (r *Registry) add(info *Info, spelling string, alias bool) error {
	if other, taken := r.overlapping(spelling); taken {
		return &DeclarationError{Key: spelling, Reason: "is also a spelling of " + quote(other)}
	}
	t := target{info: info, alias: alias}
	if prefix, suffix, isPattern := strings.Cut(spelling, "#"); isPattern {
		r.patterns = append(r.patterns, pattern{target: t, prefix: prefix, suffix: suffix})
	} else {
		r.exact[spelling] = t
	}
	return nil
}

// overlapping returns the option that some key of spelling already belongs to.
func (r *Registry) overlapping(spelling string) (name string, taken bool) {
	for _, key := range slices.Sorted(maps.Keys(r.exact)) {
		if overlap(key, spelling) {
			return r.exact[key].info.Name, true
		}
	}
	for _, p := range r.patterns {
		if overlap(p.prefix+"#"+p.suffix, spelling) {
			return p.info.Name, true
		}
	}
	return "", false
}

// overlap reports whether one key could match both spellings.
func overlap(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	if len(as) != len(bs) {
		return false
	}
	for i := range as {
		if as[i] != bs[i] && as[i] != "#" && bs[i] != "#" {
			return false
		}
	}
	return true
}

// match is the answer to a lookup: the option, its canonical key with the user's segment filled in, and whether the
// spelling was an alias.
type match struct {
	target
	key     string
	segment string // what the user chose for "#"; "" for other options
}

// lookup finds the option that key is a spelling of.
func (r *Registry) lookup(key string) (match, bool) {
	if t, ok := r.exact[key]; ok {
		return match{target: t, key: t.info.Name}, true
	}
	for _, p := range r.patterns {
		if segment, ok := p.segment(key); ok {
			return match{target: p.target, key: strings.Replace(p.info.Name, "#", segment, 1), segment: segment}, true
		}
	}
	return match{}, false
}

// segment returns what stands for "#" in key.
func (p pattern) segment(key string) (string, bool) {
	rest, ok := strings.CutPrefix(key, p.prefix)
	if !ok {
		return "", false
	}
	segment, ok := strings.CutSuffix(rest, p.suffix)
	if !ok || segment == "" || strings.ContainsAny(segment, ".#") {
		return "", false
	}
	return segment, true
}
