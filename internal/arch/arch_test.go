package arch

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// root is the directory of the module: tests run in the directory of their package.
var root = filepath.Join("..", "..")

// parsed is the tree of the module, read once.
var parsed = sync.OnceValues(func() ([]source, error) { return readTree(os.DirFS(root)) })

func moduleTree(t *testing.T) []source {
	t.Helper()
	files, err := parsed()
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func TestImportsRunDownOnly(t *testing.T) {
	for _, problem := range checkImports(moduleTree(t)) {
		t.Error(problem)
	}
}

func TestLibrariesLeaveClockStreamsAndEnvironmentAlone(t *testing.T) {
	files := moduleTree(t)
	for _, problem := range checkSource(files) {
		t.Error(problem)
	}
	for _, pattern := range deadPatterns(files) {
		t.Logf("pureFiles lists %s, which matches no file", pattern)
	}
}

func TestEveryModuleIsOnTheList(t *testing.T) {
	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(gomod), "module "+modulePath+"\n"), "the rules are about %s", modulePath)
	golden, err := os.ReadFile("modules.txt")
	require.NoError(t, err)
	for _, problem := range checkModules(string(gomod), string(golden)) {
		t.Error(problem)
	}
}

func TestEveryRowOfTheRulesSaysWhy(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rooms {
		assert.NotEmpty(t, r.why, r.path)
		assert.False(t, seen[r.path], "two rows for %s", r.path)
		seen[r.path] = true
	}
	for _, r := range rooms {
		for _, target := range append(r.may, r.tests...) {
			if !strings.Contains(target, ".") {
				assert.True(t, seen[target], "%s may import %s, which has no row", r.path, target)
			}
		}
	}
}

func TestNoCycleIsAllowedBetweenRooms(t *testing.T) {
	below := map[string][]string{}
	for _, r := range rooms {
		below[r.path] = r.may
	}
	var visit func(trail []string, at string)
	visit = func(trail []string, at string) {
		for _, earlier := range trail {
			require.NotEqual(t, earlier, at, "the rules allow a cycle: %v", append(trail, at))
		}
		for _, next := range below[at] {
			if _, isRoom := below[next]; isRoom {
				visit(append(trail[:len(trail):len(trail)], at), next)
			}
		}
	}
	for _, r := range rooms {
		visit(nil, r.path)
	}
}
