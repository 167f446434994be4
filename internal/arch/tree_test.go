package arch

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// source is one parsed Go file of the module.
type source struct {
	path    string // below the module, with slashes
	dir     string // path's directory; "." for the root
	test    bool
	ast     *ast.File
	imports []string
}

// readTree parses every Go file below root that belongs to the module: not those of nested modules, and not those the go
// command ignores by the name of a directory. Build constraints do not matter, so that the rules hold on every system. A
// file that does not parse is reported; the rest is returned nevertheless.
func readTree(root fs.FS) ([]source, error) {
	var files []source
	var problems []error
	set := token.NewFileSet()
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return skipDir(root, name)
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(set, name, data, parser.SkipObjectResolution)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s does not parse: %w", name, err))
			return nil
		}
		s := source{path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), ast: file}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, imported)
		}
		files = append(files, s)
		return nil
	})
	return files, errors.Join(append(problems, err)...)
}

// skipDir returns fs.SkipDir for a directory whose files are not of the module.
func skipDir(root fs.FS, name string) error {
	base := path.Base(name)
	if name == "." {
		return nil
	}
	if base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_' {
		return fs.SkipDir
	}
	if _, err := fs.Stat(root, path.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// roomOf returns the row that dir belongs to.
func roomOf(dir string) (room, bool) {
	best, found := room{}, false
	for _, r := range rooms {
		if (r.path == dir || strings.HasPrefix(dir, r.path+"/")) && (!found || len(r.path) > len(best.path)) {
			best, found = r, true
		}
	}
	return best, found
}

// matches reports whether a package, or a room, is one of the patterns.
func matches(imported string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		prefix, below := strings.CutSuffix(pattern, "...")
		return pattern == imported || below && strings.HasPrefix(imported+"/", prefix)
	})
}

// checkImports returns a line for each import that the rules forbid.
func checkImports(files []source) []string {
	var problems []string
	for _, f := range files {
		from, ok := roomOf(f.dir)
		if !ok {
			problems = append(problems, fmt.Sprintf("%s: the directory %s has no row in internal/arch/rules_test.go: say what it may import and why", f.path, f.dir))
			continue
		}
		for _, imported := range f.imports {
			if !allowed(f, from, imported) {
				problems = append(problems, explain(f, from, imported))
			}
		}
	}
	return problems
}

// allowed reports whether f, a file of the room from, may import a package.
func allowed(f source, from room, imported string) bool {
	target, ours := ownPath(imported)
	if first, _, _ := strings.Cut(imported, "/"); !ours && !strings.Contains(first, ".") {
		return imported != "C" // the standard library; C would end cross-compiling
	}
	if ours {
		to, ok := roomOf(target)
		if !ok {
			return false
		}
		if to.path == from.path {
			return true
		}
		target = to.path
	}
	lists := [][]string{from.may, everywhere}
	if f.test {
		lists = append(lists, from.tests, inTests)
	}
	return matches(target, slices.Concat(lists...))
}

// ownPath returns where below the module a package lives; for other modules the package itself.
func ownPath(imported string) (target string, ours bool) {
	if imported == modulePath {
		return ".", true
	}
	return strings.CutPrefix(imported, modulePath+"/")
}

// explain says which edge is forbidden, why, and what the room may import instead.
func explain(f source, from room, imported string) string {
	target, _ := ownPath(imported)
	reason := from.why
	for _, w := range why {
		if matches(target, []string{w.imported}) {
			reason = w.reason
			break
		}
	}
	may := slices.Concat([]string{"the standard library"}, from.may)
	if f.test {
		may = append(may, from.tests...)
	}
	return fmt.Sprintf("%s: %s imports %s: %s (%s may import %s)", f.path, from.path, target, reason, from.path, strings.Join(may, ", "))
}
