package arch

// modulePath is the path of the module that these rules are about.
const modulePath = "github.com/sluice-go/sluice"

// room is one row of the import rules. A package belongs to the row with the longest path that is the package's own or a
// parent's, and may import the standard library, its own room and what the row lists.
type room struct {
	path  string   // below the module, "." for its root
	may   []string // rooms, and packages of other modules; "x/..." is x and everything below it
	tests []string // what test files may import besides
	why   string
}

const (
	crc64    = "github.com/minio/crc64nvme"
	xsync    = "golang.org/x/sync/..."
	aws      = "github.com/aws/aws-sdk-go-v2/..."
	smithy   = "github.com/aws/smithy-go/..."
	arrow    = "github.com/apache/arrow/..."
	otel     = "go.opentelemetry.io/..."
	yaml     = "go.yaml.in/yaml/v3"
	cobra    = "github.com/spf13/cobra"
	anything = "..."
)

// library lists the rooms that programs build on.
var library = []string{
	"config", "retrymode", "multipart", "checkpoint", "checkpoint/s3store", "s3fs", "s3fs/s3otel", "sink", "sink/columnar",
}

// rooms are the import rules of docs/design.md. A room that does not exist yet has its row already.
var rooms = []room{
	{path: "config", may: []string{yaml},
		why: "everything imports config, so it stands on the standard library and one YAML package"},
	{path: "retrymode", may: []string{"config",
		"github.com/aws/aws-sdk-go-v2/aws", "github.com/aws/aws-sdk-go-v2/aws/retry", "github.com/aws/aws-sdk-go-v2/aws/ratelimit",
		"github.com/aws/aws-sdk-go-v2/aws/middleware", "github.com/aws/aws-sdk-go-v2/aws/transport/http", smithy, "retrymode/gate"},
		tests: []string{aws},
		why:   "a retryer knows attempts, not services: it works for every client of the SDK"},
	{path: "retrymode/gate", why: "the law of the gate runs under real clients, in the simulator and in tests: it knows nothing but time"},
	{path: "multipart", may: []string{crc64, xsync},
		why: "the life of an upload has no AWS in it: its tests build in seconds and run on any store behind multipart.API"},
	{path: "checkpoint", why: "an embedder's own participants and stores must cost no module"},
	{path: "checkpoint/s3store", may: []string{"checkpoint", "config", "multipart", "retrymode", "s3fs"},
		why: "the checkpoint store on S3 reaches S3 through s3fs only"},
	{path: "s3fs", may: []string{"config", "retrymode", "multipart", aws, smithy, crc64, xsync},
		why: "s3fs adapts the SDK to multipart.API and knows nothing of checkpoints and rows"},
	{path: "s3fs/s3test", tests: []string{aws, smithy, crc64},
		why: "users test with the in-memory S3 too, so it must cost no module; and it shares no code with what it tests"},
	{path: "s3fs/s3otel", may: []string{"config", "retrymode", "s3fs", otel},
		why: "the one importer of OpenTelemetry"},
	{path: "sink", may: []string{"checkpoint", "config", "multipart", "s3fs", crc64, xsync},
		why: "the sink reaches S3 through s3fs only, and formats with heavy dependencies live in leaves above it"},
	{path: "sink/columnar", may: []string{"config", "sink", arrow},
		why: "the one importer of Arrow"},
	{path: "e2e", may: append([]string{crc64, xsync, "golang.org/x/time/rate", "github.com/cespare/xxhash/v2"}, library...),
		why: "what runs and proves the job is light, since the command links it"},
	{path: "e2e/lab", may: []string{"retrymode", "retrymode/gate"}, tests: append([]string{aws, smithy}, library...),
		why: "the simulator is in the command, so it costs no module; the lab's real clients are in its tests"},
	{path: "cmd", may: append([]string{"e2e", "e2e/lab", cobra, xsync}, library...),
		why: "the command is thin calls into the rooms"},
	{path: "internal/arch", why: "the rules need nothing"},
	{path: "internal/invariants", why: "a constant of a build tag needs nothing"},
	{path: "internal/deps", may: []string{anything},
		why: "it lists requirements and is imported by nobody"},
	{path: "internal/mutants", why: "a program that runs go test; nobody imports it"},
	{path: ".", tests: append([]string{"e2e", "cmd"}, library...),
		why: "the root of the module has no code, only tests of the README"},
}

// everywhere lists what every room may import.
var everywhere = []string{"internal/invariants"}

// inTests lists what every test file may import.
var inTests = []string{
	"s3fs/s3test",
	"github.com/stretchr/testify/...", "pgregory.net/rapid", "go.uber.org/goleak",
	"github.com/cockroachdb/datadriven/...", "github.com/rogpeppe/go-internal/...",
}

// why explains edges better than the room's row does; the first that matches the imported package counts.
var why = []struct{ imported, reason string }{
	{"e2e/...", "arrows run down only: nobody imports e2e except e2e and cmd"},
	{"cmd/...", "arrows run down only: nobody imports cmd except e2e and cmd"},
	{"s3fs/s3test/...", "s3fs/s3test is for tests"},
	{"internal/deps", "internal/deps is a list of requirements"},
	{arrow, "Arrow costs 98 packages of gRPC and protobuf: sink/columnar is its only importer"},
	{otel, "OpenTelemetry has one importer, s3fs/s3otel"},
	{"github.com/stretchr/testify/...", "testify is a test library"},
	{"pgregory.net/rapid", "rapid is a test library"},
	{"go.uber.org/goleak", "goleak is a test library"},
	{"github.com/cockroachdb/datadriven/...", "datadriven is a test library"},
	{"github.com/rogpeppe/go-internal/...", "go-internal is a test library"},
}

// pureFiles take the time as an argument, so that one input has one output and tests need no clock. The patterns are
// those of path.Match.
var pureFiles = []string{
	"config/*.go",
	"retrymode/backoff.go", "retrymode/breaker.go", "retrymode/classify.go", "retrymode/gate/*.go", "retrymode/hints.go",
	"retrymode/mode.go", "retrymode/options.go", "retrymode/scope.go",
	"multipart/api.go", "multipart/buffer.go", "multipart/budget.go", "multipart/crc.go", "multipart/encoding.go",
	"multipart/handle.go", "multipart/proof.go",
	"checkpoint/manifest.go", "checkpoint/names.go", "checkpoint/restart.go", "checkpoint/shard.go",
	"s3fs/errors.go", "s3fs/explain.go", "s3fs/options.go", "s3fs/path.go",
	"sink/format.go", "sink/name.go", "sink/options.go", "sink/record.go", "sink/rolling.go", "sink/state.go",
	"e2e/lab/*.go", "e2e/datagen/generator.go", "e2e/datagen/kind.go", "e2e/datagen/mix.go", "e2e/datagen/position.go",
}

// ban forbids the use of some names of a package of the standard library.
type ban struct {
	pkg    string
	names  []string // empty: all of them
	pure   bool     // in pureFiles only; else in all library code
	except []string // rooms where it is allowed; test files are always
	why    string
}

var bans = []ban{
	{pkg: "time", names: []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}, pure: true,
		why: "the file is pure: take the time as an argument"},
	{pkg: "fmt", names: []string{"Print", "Printf", "Println"}, except: []string{"cmd", "internal/mutants"},
		why: "libraries do not print: return the text, or write it to the caller's io.Writer or *slog.Logger"},
	{pkg: "log", except: []string{"cmd"},
		why: "libraries log through the injected *slog.Logger"},
	{pkg: "log/slog", names: []string{"Debug", "DebugContext", "Info", "InfoContext", "Warn", "WarnContext", "Error", "ErrorContext", "Log", "LogAttrs", "Default", "SetDefault"},
		except: []string{"cmd"}, why: "libraries log through the injected *slog.Logger; without one use slog.DiscardHandler"},
	{pkg: "os", names: []string{"Stdout", "Stderr", "Stdin"}, except: []string{"cmd"},
		why: "the standard streams belong to the command: take an io.Writer or io.Reader"},
	{pkg: "os", names: []string{"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Setenv", "Unsetenv", "Clearenv"}, except: []string{"config", "cmd"},
		why: "only config and the command see the environment: declare an option"},
	{pkg: "syscall", names: []string{"Getenv", "Environ", "Setenv", "Unsetenv", "Clearenv"}, except: []string{"config", "cmd"},
		why: "only config and the command see the environment: declare an option"},
}
