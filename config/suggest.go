package config

import (
	"strings"
)

// maxSuggested is the longest misspelled key for which a nearest one is looked for; no key is near that long.
const maxSuggested = 100

// nearest returns the declared key that looks most like key, in its canonical spelling and with the user's segment in a
// pattern; "" when none is near.
func (r *Registry) nearest(key string) string {
	s := newSearch(key)
	for spelling, t := range r.exact {
		s.offer(spelling, t.info.Name)
	}
	for _, p := range r.patterns {
		filled, segment := fillLike(p.prefix+"#"+p.suffix, key)
		s.offer(filled, strings.Replace(p.info.Name, "#", segment, 1))
	}
	return s.best
}

// nearestVariable is nearest for the name of an environment variable.
func (r *Registry) nearestVariable(name string) string {
	s := newSearch(name)
	for spelling, t := range r.exact {
		s.offer(envName(spelling), envName(t.info.Name))
	}
	return s.best
}

// fillLike puts the segment of key that stands where spelling has "#" in its place, when both have as many segments.
func fillLike(spelling, key string) (filled, segment string) {
	segments, own := strings.Split(spelling, "."), strings.Split(key, ".")
	if len(segments) != len(own) {
		return spelling, "#"
	}
	for i, s := range segments {
		if s == "#" && own[i] != "" {
			return strings.Replace(spelling, "#", own[i], 1), own[i]
		}
	}
	return spelling, "#"
}

// search keeps the nearest of the candidates offered to it.
type search struct {
	key      string
	distance int // of best; candidates farther than this are out
	best     string
}

func newSearch(key string) *search {
	if len(key) > maxSuggested {
		return &search{key: "", distance: -1}
	}
	// A third of the letters may be wrong. More, and the answer is a guess that misleads.
	return &search{key: lower(key), distance: max(2, len(key)/3)}
}

// offer proposes answer for a key that looks like spelling. Of equally near answers the first in the alphabet wins, so
// that the text of an error does not depend on the order of a map.
func (s *search) offer(spelling, answer string) {
	if s.distance < 0 {
		return
	}
	spelling = lower(spelling)
	d := 1 // a key cut short at either end is as near as a typing error
	if !cutShort(s.key, spelling) {
		d = editDistance(s.key, spelling, s.distance)
	}
	if d < s.distance || d == s.distance && (s.best == "" || answer < s.best) {
		s.distance, s.best = d, answer
	}
}

// cutShort reports whether key is spelling without its first segments, or without the end of its last word.
func cutShort(key, spelling string) bool {
	if len(key) < 4 {
		return false
	}
	rest, isPrefix := strings.CutPrefix(spelling, key)
	return isPrefix && !strings.Contains(rest, ".") || strings.HasSuffix(spelling, "."+key)
}

// editDistance counts the letters to insert, delete, replace or swap with their neighbour to turn a into b. It stops at
// limit+1.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	before, previous, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := previous[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(previous[j]+1, row[j-1]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, previous, row = previous, row, before
	}
	return min(previous[len(b)], limit+1)
}
