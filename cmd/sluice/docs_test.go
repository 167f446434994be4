package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testFunctions returns the names of all tests of this repository, those of other modules in it included.
func testFunctions(t *testing.T) map[string]bool {
	t.Helper()
	declaration := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	names := map[string]bool{}
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range declaration.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
		return err
	})
	require.NoError(t, err)
	return names
}

func TestDocs_EveryTestThatATableNamesExists(t *testing.T) {
	exists := testFunctions(t)
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	for page, least := range map[string]int{"flink-behaviours.md": 60, "public-bugs.md": 48} {
		names := named.FindAllStringSubmatch(readRepositoryFile(t, "docs", page), -1)
		require.Greater(t, len(names), least, page)
		for _, m := range names {
			require.True(t, exists[m[1]], "docs/%s names %s, which does not exist", page, m[1])
		}
	}
}

// Every number has its line: none is left out silently.
func TestDocs_TheTablesAreWhole(t *testing.T) {
	behaviours, bugs := readRepositoryFile(t, "docs", "flink-behaviours.md"), readRepositoryFile(t, "docs", "public-bugs.md")
	number := func(n int) string { return string([]byte{byte('0' + n/10), byte('0' + n%10)}) }
	for n := 17; n <= 63; n++ {
		require.Contains(t, behaviours, "\n| "+number(n)+" | ")
	}
	for n := 1; n <= 40; n++ {
		require.Contains(t, bugs, "\n| O-"+number(n)+" | ")
	}
	require.Contains(t, bugs, "\n| O-61 | ")
	require.Contains(t, bugs, "\n| O-62 | ")
}
