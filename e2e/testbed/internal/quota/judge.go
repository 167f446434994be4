package quota

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// pair are the jobs of one lane that differ in the mode only; one may be missing.
type pair struct {
	name               string
	writers, retries   int
	standard, adaptive *Result
}

func (p pair) lane() Lane {
	if p.standard != nil {
		return p.standard.Lane
	}
	return p.adaptive.Lane
}

func (p pair) detail() bool {
	return p.standard != nil && p.standard.Detail || p.adaptive != nil && p.adaptive.Detail
}

// pairs returns the pairs of a lane, most writers first, then fewest retries.
func pairs(results []Result) []pair {
	var all []pair
	for i := range results {
		r := &results[i]
		at := slices.IndexFunc(all, func(p pair) bool { return p.writers == r.Writers && p.retries == r.Retries })
		if at < 0 {
			at = len(all)
			all = append(all, pair{name: r.pair(), writers: r.Writers, retries: r.Retries})
		}
		if r.Mode == Adaptive {
			all[at].adaptive = r
		} else {
			all[at].standard = r
		}
	}
	slices.SortFunc(all, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.writers, a.writers), cmp.Compare(a.retries, b.retries))
	})
	return all
}

func inLane(results []Result, lane Lane) []Result {
	var of []Result
	for _, r := range results {
		if r.Lane == lane {
			of = append(of, r)
		}
	}
	return of
}

// tolerance is how much longer than standard adaptive may take where both come
// to their end. Two runs of the same job differ by as much.
const tolerance = 1.1

// judge returns what adaptive did not hold.
func judge(results []Result) (why []string) {
	for _, lane := range []Lane{SlowDown, Close} {
		for _, p := range pairs(inLane(results, lane)) {
			if p.adaptive == nil {
				continue
			}
			a := p.adaptive
			if a.died() {
				why = append(why, fmt.Sprintf("%s died after %s: %s", a.Name(), seconds(a.Write.Seconds), short(a.LastError)))
				continue
			}
			if !a.Proven {
				why = append(why, fmt.Sprintf("%s is not proven: %s", a.Name(), a.Why))
				continue
			}
			why = append(why, p.compare()...)
		}
	}
	return why
}

// compare returns where adaptive, which is proven, is not better than standard.
func (p pair) compare() (why []string) {
	s, a := p.standard, p.adaptive
	if s == nil || s.died() || !s.Proven {
		return nil
	}
	if a.Write.refusedShare() > s.Write.refusedShare() {
		why = append(why, fmt.Sprintf("%s: %s of its requests were refused, %s of standard's", a.Name(), percent(a.Write.refusedShare()), percent(s.Write.refusedShare())))
	}
	if a.Write.Seconds > tolerance*s.Write.Seconds {
		why = append(why, fmt.Sprintf("%s took %s to write, standard %s", a.Name(), seconds(a.Write.Seconds), seconds(s.Write.Seconds)))
	}
	return why
}

// verdict is the last line of an experiment in which adaptive held what it must.
func verdict(results []Result) string {
	var died, standard, adaptive int
	for _, r := range results {
		switch {
		case r.Mode == Adaptive:
			adaptive++
		case r.died():
			died++
			standard++
		default:
			standard++
		}
	}
	return fmt.Sprintf("standard died in %d of %d jobs; adaptive is proven in %d of %d and lost to standard in none", died, standard, adaptive, adaptive)
}

// usual is the least share of the quota that a job which is limited by it uses.
const usual = 0.7

// notes are what a reader of the tables has to know besides.
func notes(o Options, results []Result) (notes []string) {
	var survived []string
	for _, r := range results {
		if _, died := publishedDeaths[r.pair()]; died && r.Mode == Standard && !r.died() {
			survived = append(survived, r.pair())
		}
		if used := r.Write.perSecond(r.Write.Quota.Requests-r.Write.Quota.Refused) / o.Rate; r.Mode == Adaptive && used < usual {
			notes = append(notes, fmt.Sprintf("%s used %.0f %% of the quota only: if this machine was busy, it and not the quota was the limit", r.Name(), 100*used))
		}
	}
	if len(survived) > 0 {
		notes = append(notes, fmt.Sprintf("standard came to its end, where it died in the pull request: %s (longer jobs die more surely: --size)", strings.Join(survived, "; ")))
	}
	return notes
}
