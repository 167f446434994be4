package lab

import (
	"fmt"
	"strings"
)

// Row is a goal and what was found.
type Row struct {
	Goal     Goal
	Findings []Finding
	Standard []Finding // the same figures of standard retries, where they were asked for
	Rig      string    // what ran it: "10 seeds", "3 seeds, 7 simulated"
}

// OK reports whether all checks of the goal are met.
func (r Row) OK() bool {
	for _, f := range r.Findings {
		if !f.OK {
			return false
		}
	}
	return true
}

// Section is the part of the table that the row belongs to.
func (r Row) Section() Section {
	switch {
	case r.Goal.Open:
		return Open
	case r.Goal.HeldOut:
		return HeldOutStores
	default:
		return MustHold
	}
}

// Section is a part of the table of goals.
type Section int

// The sections, in their order. Open problems are shown and not counted.
const (
	MustHold Section = iota + 1
	HeldOutStores
	Open
)

// String is the heading.
func (s Section) String() string {
	switch s {
	case MustHold:
		return "Goals"
	case HeldOutStores:
		return "Goals on stores that nothing was tuned on"
	case Open:
		return "Open problems, not counted"
	default:
		return fmt.Sprintf("Section(%d)", int(s))
	}
}

// Text is the row for a terminal: the goal, and a line for each check.
func (r Row) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)\n", r.name(), r.Rig)
	for i, f := range r.Findings {
		fmt.Fprintf(&b, "  %-6s  %-40s  %-9s  %-24s  standard %s\n", f.mark(), f.Check.What, f.Check.Bound(), f.Text(), r.standard(i))
	}
	return b.String()
}

// name is that of the goal with its retries.
func (r Row) name() string {
	retries := fmt.Sprintf(", %d retries", r.Goal.Retries)
	return strings.TrimSuffix(r.Goal.Name, retries) + retries
}

// standard is the text of the figure of check i with standard retries.
func (r Row) standard(i int) string {
	if i >= len(r.Standard) {
		return "-"
	}
	return r.Standard[i].Text()
}

func (f Finding) mark() string {
	if f.OK {
		return "met"
	}
	return "missed"
}

// GoalsMarkdown is the table of goals: the rows of each section under its heading.
func GoalsMarkdown(rows []Row) string {
	var b strings.Builder
	for s := MustHold; s <= Open; s++ {
		head := false
		for _, r := range rows {
			if r.Section() != s {
				continue
			}
			if !head {
				fmt.Fprintf(&b, "### %v\n\n| goal | figure | must be | gate | | standard | measured by |\n|---|---|---|---|---|---|---|\n", s)
				head = true
			}
			r.markdown(&b)
		}
		if head {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func (r Row) markdown(b *strings.Builder) {
	for i, f := range r.Findings {
		name, rig := "", ""
		if i == 0 {
			name, rig = r.name(), r.Rig
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s |\n", name, f.Check.What, f.Check.Bound(), f.Text(), f.mark(), r.standard(i), rig)
	}
}

// Tally counts the rows that are not open problems, and those of them that are met.
func Tally(rows []Row) (met, counted int) {
	for _, r := range rows {
		if r.Section() == Open {
			continue
		}
		counted++
		if r.OK() {
			met++
		}
	}
	return met, counted
}
