package arch

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// checkSource returns a line for each use of a banned name and for each init function.
func checkSource(files []source) []string {
	var problems []string
	for _, f := range files {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				problems = append(problems, f.path+": func init(): importing a package must do nothing; call it from main or a constructor")
			}
		}
		if f.test {
			continue
		}
		for _, b := range bans {
			if b.applies(f) {
				problems = append(problems, b.check(f)...)
			}
		}
	}
	return problems
}

func (b ban) applies(f source) bool {
	if b.pure {
		return slices.ContainsFunc(pureFiles, func(pattern string) bool {
			ok, err := path.Match(pattern, f.path)
			return ok && err == nil
		})
	}
	from, ok := roomOf(f.dir)
	return !ok || !slices.Contains(b.except, from.path)
}

// check returns a line for each banned name that f uses, in alphabetical order.
func (b ban) check(f source) []string {
	local, found := localName(f.ast, b.pkg)
	switch {
	case !found:
		return nil
	case len(b.names) == 0:
		return []string{fmt.Sprintf("%s imports %s: %s", f.path, b.pkg, b.why)}
	case local == ".":
		return []string{fmt.Sprintf("%s imports the names of %s without the package's: that hides %s", f.path, b.pkg, strings.Join(b.names, ", "))}
	}
	var used []string
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(b.names, s.Sel.Name) {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == local {
				used = append(used, s.Sel.Name)
			}
		}
		return true
	})
	slices.Sort(used)
	var problems []string
	for _, name := range slices.Compact(used) {
		problems = append(problems, fmt.Sprintf("%s uses %s.%s: %s", f.path, b.pkg, name, b.why))
	}
	return problems
}

// localName returns what a file calls a package that it imports.
func localName(file *ast.File, pkg string) (string, bool) {
	for _, spec := range file.Imports {
		if spec.Path.Value == `"`+pkg+`"` {
			if spec.Name != nil {
				return spec.Name.Name, true
			}
			return path.Base(pkg), true
		}
	}
	return "", false
}

// deadPatterns returns the entries of pureFiles that match no file of a room that exists.
func deadPatterns(files []source) []string {
	var dead []string
	for _, pattern := range pureFiles {
		roomExists, matched := false, false
		for _, f := range files {
			roomExists = roomExists || f.dir == path.Dir(pattern)
			ok, err := path.Match(pattern, f.path)
			matched = matched || ok && err == nil
		}
		if roomExists && !matched {
			dead = append(dead, pattern)
		}
	}
	return dead
}
