package lab

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAGoalIsMetWhenAllItsChecksAre(t *testing.T) {
	row := func(g Goal, oks ...bool) Row {
		r := Row{Goal: g, Rig: "10 seeds"}
		for _, ok := range oks {
			f := Finding{Goal: g, Check: good(400, 97), Median: 98.5, Low: 97.25, High: 99, OK: ok}
			r.Findings, r.Standard = append(r.Findings, f), append(r.Standard, f)
		}
		return r
	}
	rows := []Row{
		row(Goal{Name: "a, 10 retries", Retries: 10}, true, true),
		row(Goal{Name: "b", Retries: 3}, true, false),
		row(Goal{Name: "c", HeldOut: true}, true),
		row(Goal{Name: "d", Open: true}, false),
		row(Goal{Name: "e", Open: true}, true),
	}
	met, counted := Tally(rows)
	assert.Equal(t, []int{2, 3}, []int{met, counted})
	assert.Equal(t, "a, 10 retries (10 seeds)", strings.Split(rows[0].Text(), "\n")[0])
	lines := strings.Split(rows[1].Text(), "\n")
	assert.Equal(t, "b, 3 retries (10 seeds)", lines[0])
	assert.Regexp(t, `^  met +goodput, % +>= 97.0 +98.5 \(97.2-99.0\) +standard 98.5 \(97.2-99.0\)$`, lines[1])
	assert.Regexp(t, `^  missed +goodput`, lines[2])

	table := GoalsMarkdown(rows)
	assert.Equal(t, 3, strings.Count(table, "\n|---"))
	assert.Contains(t, table, "| b, 3 retries | goodput, % | >= 97.0 | 98.5 (97.2-99.0) | met | 98.5 (97.2-99.0) | 10 seeds |\n|  | goodput, % | >= 97.0 | 98.5 (97.2-99.0) | missed |")
	assert.Less(t, strings.Index(table, "### Goals\n"), strings.Index(table, "### Open problems, not counted\n"))
	assert.Greater(t, strings.Index(table, "| d, 0 retries |"), strings.Index(table, "### Open problems"))
}
