package arch

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tree makes a module from the texts of its files.
func tree(t *testing.T, texts map[string]string) []source {
	t.Helper()
	root := fstest.MapFS{}
	for name, text := range texts {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	files, err := readTree(root)
	require.NoError(t, err)
	return files
}

// importing is the text of a file that imports packages; a path without a dot is below our module.
func importing(packages ...string) string {
	text := "package p\n"
	for _, p := range packages {
		if !strings.Contains(p, ".") && !strings.HasPrefix(p, "std:") {
			p = modulePath + "/" + p
		}
		text += "import _ \"" + strings.TrimPrefix(p, "std:") + "\"\n"
	}
	return text
}

func TestCheckImports_AllowsTheArrowsOfTheDesign(t *testing.T) {
	assert.Empty(t, checkImports(tree(t, map[string]string{
		"config/a.go":                importing("std:net/url", "go.yaml.in/yaml/v3", "internal/invariants"),
		"config/a_test.go":           importing("config", "github.com/stretchr/testify/assert", "pgregory.net/rapid"),
		"retrymode/a.go":             importing("config", "github.com/aws/aws-sdk-go-v2/aws", "github.com/aws/aws-sdk-go-v2/aws/retry", "github.com/aws/smithy-go", "github.com/aws/smithy-go/middleware"),
		"retrymode/a_test.go":        importing("s3fs/s3test", "github.com/aws/aws-sdk-go-v2/service/s3"),
		"multipart/a.go":             importing("github.com/minio/crc64nvme", "golang.org/x/sync/errgroup"),
		"multipart/internal/b/a.go":  importing("multipart"),
		"s3fs/a.go":                  importing("config", "retrymode", "multipart", "s3fs/internal/x", "github.com/aws/aws-sdk-go-v2/service/s3/types"),
		"s3fs/a_test.go":             importing("s3fs/s3test", "s3fs"),
		"sink/a.go":                  importing("checkpoint", "s3fs", "config", "multipart"),
		"sink/columnar/a.go":         importing("sink", "github.com/apache/arrow/go/v17/arrow"),
		"e2e/datagen/a.go":           importing("checkpoint", "golang.org/x/time/rate", "e2e/readback"),
		"cmd/sluice/a.go":            importing("e2e/job", "sink", "s3fs", "github.com/spf13/cobra"),
		"readme_test.go":             importing("sink", "s3fs/s3test"),
		"e2e/testbed/go.mod":         "module x\n",
		"e2e/testbed/a.go":           importing("github.com/Shopify/toxiproxy/v2"),
		"config/testdata/a.go":       importing("sink"),
		".hidden/a.go":               importing("sink"),
		"checkpoint/s3store/a.go":    importing("checkpoint", "s3fs"),
		"internal/deps/deps.go":      importing("github.com/spf13/cobra", "pgregory.net/rapid"),
		"internal/invariants/off.go": importing(),
	})))
}

func TestCheckImports_NamesEachForbiddenEdgeAndWhy(t *testing.T) {
	for name, c := range map[string]struct{ file, imported, want string }{
		"config up":              {"config/a.go", "s3fs", "config/a.go: config imports s3fs: everything imports config"},
		"config third party":     {"config/a.go", "golang.org/x/sync/errgroup", "config imports golang.org/x/sync/errgroup: everything imports config"},
		"config tests too":       {"config/a_test.go", "sink", "config/a_test.go: config imports sink"},
		"retrymode service":      {"retrymode/a.go", "github.com/aws/aws-sdk-go-v2/service/s3", "retrymode imports github.com/aws/aws-sdk-go-v2/service/s3: a retryer knows attempts"},
		"retrymode other aws":    {"retrymode/a.go", "github.com/aws/aws-sdk-go-v2/aws/signer/v4", "retrymode imports github.com/aws/aws-sdk-go-v2/aws/signer/v4"},
		"multipart aws":          {"multipart/a.go", "github.com/aws/aws-sdk-go-v2/aws", "multipart imports github.com/aws/aws-sdk-go-v2/aws: the life of an upload"},
		"multipart aws in tests": {"multipart/a_test.go", "github.com/aws/aws-sdk-go-v2/aws", "the life of an upload"},
		"multipart config":       {"multipart/a.go", "config", "multipart imports config"},
		"multipart child":        {"multipart/x/a.go", "s3fs", "multipart/x/a.go: multipart imports s3fs"},
		"checkpoint config":      {"checkpoint/a.go", "config", "checkpoint imports config: an embedder's own participants"},
		"checkpoint its store":   {"checkpoint/a.go", "checkpoint/s3store", "checkpoint imports checkpoint/s3store: an embedder's own participants"},
		"s3test aws":             {"s3fs/s3test/a.go", "github.com/aws/aws-sdk-go-v2/aws", "s3fs/s3test imports github.com/aws/aws-sdk-go-v2/aws: users test with the in-memory S3"},
		"s3test its parent":      {"s3fs/s3test/a_test.go", "s3fs", "s3fs/s3test imports s3fs: users test with"},
		"s3fs s3test":            {"s3fs/a.go", "s3fs/s3test", "s3fs imports s3fs/s3test: s3fs/s3test is for tests"},
		"s3fs checkpoint":        {"s3fs/a.go", "checkpoint", "s3fs imports checkpoint: s3fs adapts the SDK"},
		"s3fs sink in tests":     {"s3fs/a_test.go", "sink", "s3fs imports sink"},
		"sink aws":               {"sink/a.go", "github.com/aws/aws-sdk-go-v2/service/s3", "sink imports github.com/aws/aws-sdk-go-v2/service/s3: the sink reaches S3 through s3fs only"},
		"sink retrymode":         {"sink/a.go", "retrymode", "sink imports retrymode"},
		"sink its leaf":          {"sink/a.go", "sink/columnar", "sink imports sink/columnar"},
		"sink arrow":             {"sink/a.go", "github.com/apache/arrow/go/v17/arrow", "Arrow costs 98 packages"},
		"sink e2e":               {"sink/a.go", "e2e/datagen", "sink imports e2e/datagen: arrows run down only: nobody imports e2e except e2e and cmd"},
		"sink tests e2e":         {"sink/a_test.go", "e2e/datagen", "nobody imports e2e except e2e and cmd"},
		"sink cmd":               {"sink/a.go", "cmd/sluice", "nobody imports cmd except e2e and cmd"},
		"e2e arrow":              {"e2e/job/a.go", "github.com/apache/arrow/go/v17/arrow", "e2e imports github.com/apache/arrow/go/v17/arrow: Arrow costs"},
		"e2e testify":            {"e2e/job/a.go", "github.com/stretchr/testify/require", "testify is a test library"},
		"cmd yaml":               {"cmd/sluice/a.go", "go.yaml.in/yaml/v3", "cmd imports go.yaml.in/yaml/v3: the command is thin calls"},
		"sink otel":              {"sink/a.go", "go.opentelemetry.io/otel/metric", "OpenTelemetry has one importer"},
		"deps":                   {"s3fs/a.go", "internal/deps", "internal/deps is a list of requirements"},
		"no such room":           {"sink/a.go", "utils/x", "sink imports utils/x"},
		"root code":              {"a.go", "sink", "a.go: . imports sink: the root of the module has no code"},
		"another system":         {"checkpoint/lock_windows.go", "golang.org/x/sys/windows", "checkpoint/lock_windows.go: checkpoint imports golang.org/x/sys/windows"},
		"cgo":                    {"checkpoint/a.go", "std:C", "checkpoint imports C"},
		"directory without row":  {"utils/a.go", "std:fmt", "utils/a.go: the directory utils has no row in internal/arch/rules_test.go"},
		"look-alike of a room":   {"sinks/a.go", "std:fmt", "the directory sinks has no row"},
	} {
		t.Run(name, func(t *testing.T) {
			problems := checkImports(tree(t, map[string]string{c.file: importing(c.imported)}))
			require.Len(t, problems, 1)
			assert.Contains(t, problems[0], c.want)
		})
	}
}

func TestCheckImports_AllowsTheRootNoCodeOfItsOwn(t *testing.T) {
	assert.Empty(t, checkImports(tree(t, map[string]string{"doc.go": importing()})))
}

func TestReadTree_ReportsAFileThatDoesNotParseAndGoesOn(t *testing.T) {
	files, err := readTree(fstest.MapFS{"config/a.go": {Data: []byte("package")}, "config/b.go": {Data: []byte("package config")}})
	assert.ErrorContains(t, err, "config/a.go does not parse")
	assert.Len(t, files, 1)
}

func TestCheckSource_NamesEachForbiddenUse(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		want       []string
	}{
		"clock in a pure file": {"multipart/handle.go", `import "time"; var _ = time.Since(time.Now())`, []string{
			"multipart/handle.go uses time.Now: the file is pure: take the time as an argument",
			"multipart/handle.go uses time.Since: the file is pure: take the time as an argument"}},
		"clock under another name":     {"config/x.go", `import t "time"; var _ = t.Now`, []string{"config/x.go uses time.Now: the file is pure: take the time as an argument"}},
		"clock elsewhere":              {"multipart/upload.go", `import "time"; var _ = time.Now()`, nil},
		"time without clock":           {"config/x.go", `import "time"; var _ = time.Second`, nil},
		"clock in a test":              {"config/x_test.go", `import "time"; var _ = time.Now()`, nil},
		"print":                        {"sink/a.go", `import "fmt"; func f() { fmt.Println(1); fmt.Printf("x"); fmt.Fprintln(nil) }`, []string{"sink/a.go uses fmt.Printf: libraries", "sink/a.go uses fmt.Println: libraries"}},
		"print in the command":         {"cmd/sluice/a.go", `import "fmt"; func f() { fmt.Println(1) }`, nil},
		"print in an example":          {"sink/example_test.go", `import "fmt"; func f() { fmt.Println(1) }`, nil},
		"dot import":                   {"sink/a.go", `import . "fmt"; func f() { Println(1) }`, []string{"sink/a.go imports the names of fmt"}},
		"log":                          {"e2e/job/a.go", `import "log"; func f() { log.Fatal(1) }`, []string{"e2e/job/a.go imports log: libraries log through the injected *slog.Logger"}},
		"a variable named log":         {"sink/a.go", `import "log/slog"; func f(log *slog.Logger) { log.Info("x") }`, nil},
		"global slog":                  {"sink/a.go", `import "log/slog"; func f() { slog.Info("x"); _ = slog.Default() }`, []string{"uses log/slog.Default", "uses log/slog.Info"}},
		"streams":                      {"e2e/readback/a.go", `import "os"; var _ = os.Stdout`, []string{"e2e/readback/a.go uses os.Stdout: the standard streams"}},
		"environment":                  {"s3fs/a.go", `import "os"; var _, _ = os.LookupEnv("A"); var _ = os.Getenv("A")`, []string{"s3fs/a.go uses os.Getenv: only config", "s3fs/a.go uses os.LookupEnv: only config"}},
		"environment below":            {"s3fs/s3test/a.go", `import "syscall"; var _ = syscall.Environ`, []string{"s3fs/s3test/a.go uses syscall.Environ"}},
		"environment in config":        {"config/a.go", `import "os"; var _ = os.Environ()`, nil},
		"environment in the command":   {"cmd/sluice/a.go", `import "os"; var _ = os.Environ()`, nil},
		"environment in a test":        {"s3fs/a_test.go", `import "os"; var _ = os.Environ()`, nil},
		"init":                         {"cmd/sluice/a.go", `func init() {}`, []string{"cmd/sluice/a.go: func init(): importing a package must do nothing"}},
		"init in a test":               {"sink/a_test.go", `func init() {}`, []string{"sink/a_test.go: func init()"}},
		"a method named init":          {"sink/a.go", `type T int; func (T) init() {}`, nil},
		"a directory without a row":    {"utils/a.go", `import "os"; var _ = os.Getenv("A")`, []string{"utils/a.go uses os.Getenv"}},
		"a field that looks like time": {"config/a.go", `type c struct { time clock }; type clock struct{ Now int }; func f(x c) int { return x.time.Now }`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			problems := checkSource(tree(t, map[string]string{c.file: "package p\n" + c.text}))
			require.Len(t, problems, len(c.want))
			for i := range problems {
				assert.Contains(t, problems[i], c.want[i])
			}
		})
	}
}

func TestDeadPatterns_AreThoseOfRoomsThatExist(t *testing.T) {
	dead := deadPatterns(tree(t, map[string]string{"sink/name.go": "package p", "checkpoint/s3store/a.go": "package p"}))
	assert.Contains(t, dead, "sink/record.go")
	assert.NotContains(t, dead, "sink/name.go")
	assert.NotContains(t, dead, "checkpoint/names.go")
}

const exampleGoMod = `module example.com/m

go 1.26.0

require example.com/single v1.0.0 // a comment

require (
	example.com/b v1.0.0
	example.com/a/v2 v2.0.0 // indirect
)

replace (
	example.com/not => ../x
)

tool example.com/tool
`

func TestCheckModules_ComparesGoModWithTheList(t *testing.T) {
	assert.Equal(t, []string{"example.com/a/v2", "example.com/b", "example.com/single"}, requirements(exampleGoMod))
	assert.Empty(t, checkModules(exampleGoMod, "# a list\nexample.com/a/v2\nexample.com/b # why\n\nexample.com/single\n"))
	assert.Equal(t, []string{
		"go.mod requires example.com/b, which internal/arch/modules.txt does not list: every embedder gets it too, so add the line and a page in docs/decisions/, or do without it",
		"internal/arch/modules.txt lists example.com/gone, which go.mod does not require: remove the line",
		"internal/arch/modules.txt is not sorted",
	}, checkModules(exampleGoMod, "example.com/single\nexample.com/a/v2\nexample.com/gone\n"))
}
