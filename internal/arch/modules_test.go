package arch

import (
	"fmt"
	"slices"
	"strings"
)

// requirements returns the module paths that the text of a go.mod requires, direct and indirect, sorted.
func requirements(gomod string) []string {
	var paths []string
	block := ""
	for line := range strings.Lines(gomod) {
		line, _, _ = strings.Cut(line, "//")
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
		case block != "" && fields[0] == ")":
			block = ""
		case len(fields) == 2 && fields[1] == "(":
			block = fields[0]
		case block == "require":
			paths = append(paths, fields[0])
		case block == "" && fields[0] == "require" && len(fields) > 1:
			paths = append(paths, fields[1])
		}
	}
	slices.Sort(paths)
	return paths
}

// checkModules compares the requirements of a go.mod with the golden list, one path a line and # for comments.
func checkModules(gomod, golden string) []string {
	required := requirements(gomod)
	var listed, problems []string
	for line := range strings.Lines(golden) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			listed = append(listed, line)
		}
	}
	for _, module := range required {
		if !slices.Contains(listed, module) {
			problems = append(problems, fmt.Sprintf("go.mod requires %s, which internal/arch/modules.txt does not list: "+
				"every embedder gets it too, so add the line and a page in docs/decisions/, or do without it", module))
		}
	}
	for _, module := range listed {
		if !slices.Contains(required, module) {
			problems = append(problems, fmt.Sprintf("internal/arch/modules.txt lists %s, which go.mod does not require: remove the line", module))
		}
	}
	if !slices.IsSorted(listed) {
		problems = append(problems, "internal/arch/modules.txt is not sorted")
	}
	return problems
}
