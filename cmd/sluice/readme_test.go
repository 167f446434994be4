package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs/s3test"
)

func readRepositoryFile(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	require.NoError(t, err)
	return string(text)
}

// between returns what stands between two marks, of which the first occurs once.
func between(t *testing.T, text, begin, end string) string {
	t.Helper()
	parts := strings.Split(text, begin)
	require.Len(t, parts, 2, "%q stands in the text %d times", begin, len(parts)-1)
	inside, _, found := strings.Cut(parts[1], end)
	require.True(t, found, "no %q behind %q", end, begin)
	return inside
}

func TestREADME_HoldsTheTableOfOptions(t *testing.T) {
	var w world
	want := w.sluice(t.Context(), "options").stdout
	got := between(t, readRepositoryFile(t, "README.md"), "<!-- options -->\n", "<!-- /options -->")
	require.Equal(t, want, got, "the options have changed: run make docs")
}

func TestREADME_HoldsTheExampleOfEmbedding(t *testing.T) {
	source := readRepositoryFile(t, "sink", "example_test.go")
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "example_test.go", source, parser.ParseComments)
	require.NoError(t, err)
	want := ""
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "copyRows" {
			want = source[fset.Position(f.Doc.Pos()).Offset:fset.Position(f.End()).Offset] + "\n"
		}
	}
	require.NotEmpty(t, want, "sink/example_test.go has no func copyRows")
	section := between(t, readRepositoryFile(t, "README.md"), "\n## Embedding\n", "\n## ")
	require.Equal(t, want, between(t, section, "```go\n", "```\n"), "copy copyRows from sink/example_test.go into the README's section Embedding")
}

func TestREADME_ItsJobFileIsOneThatTheCommandTakes(t *testing.T) {
	w := newWorld(t, s3test.Options{})
	section := between(t, readRepositoryFile(t, "README.md"), "\n## Against your own store\n", "\n## ")
	file := w.write("readme.yaml", between(t, section, "```yaml\n", "```\n"))
	r := w.sluice(t.Context(), "options", file)
	require.Equal(t, 0, r.code, r.stderr)
	require.Empty(t, r.stderr, "no old spelling")
	require.Contains(t, r.stdout, "sink.path: s3://my-bucket/sluice-trial  # ")
}

func TestREADME_ExitCodesAreThoseOfTheCommand(t *testing.T) {
	var w world
	help := w.sluice(t.Context(), "--help").stdout
	section := between(t, readRepositoryFile(t, "README.md"), "| exit code | meaning |\n|---|---|\n", "\n\n")
	var want strings.Builder
	for line := range strings.Lines(between(t, help, "Exit codes:\n", "\n\n")) {
		code, meaning, _ := strings.Cut(strings.TrimSpace(line), "  ")
		want.WriteString("| " + code + " | " + meaning + " |\n")
	}
	require.Equal(t, strings.ReplaceAll(want.String(), "for verify:", "for `verify`:"), section+"\n")
}
