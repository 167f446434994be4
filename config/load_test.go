package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The options most tests of this package load.
var (
	keyMode     = Enum("s3.retry.mode", darkBlue, []color{red, darkBlue}, "Mode.")
	keyRetries  = Int("s3.retry.max-num-retries", 3, "Retries.", Range[int64](0, 1000))
	keyEndpoint = String("s3.endpoint", "", "Endpoint.", NoDefault[string]())
	keyAccess   = SecretText("s3.access-key", "Access key.", WithAliases[Secret]("s3.access.key"))
	keySecret   = SecretText("s3.secret-key", "Secret key.", WithAliases[Secret]("s3.secret.key"))
	keyBudget   = Size("sink.memory.budget", 256<<20, "Budget.", AtLeast[MemorySize](1<<20))
	keyInterval = Duration("checkpoint.interval", 10*time.Second, "Interval.", WithAliases[time.Duration]("execution.checkpointing.interval"))
	keyKind     = Enum("datagen.fields.#.kind", red, []color{red, darkBlue}, "Kind.", WithAliases[color]("fields.#.kind"))
	keyLength   = Int("datagen.fields.#.length", 100, "Length.")
)

func testRegistry(t testing.TB) *Registry {
	t.Helper()
	r, err := NewRegistry(
		[]Info{keyMode.Info(), keyRetries.Info(), keyEndpoint.Info(), keyAccess.Info(), keySecret.Info()},
		[]Info{keyBudget.Info(), keyInterval.Info(), keyKind.Info(), keyLength.Info()})
	require.NoError(t, err)
	return r
}

func load(t *testing.T, sources ...Source) *Config {
	t.Helper()
	c, err := Load(testRegistry(t), sources...)
	require.NoError(t, err)
	return c
}

// problems loads what must fail and returns the lines of the error.
func problems(t *testing.T, sources ...Source) []string {
	t.Helper()
	c, err := Load(testRegistry(t), sources...)
	require.Error(t, err)
	assert.Nil(t, c)
	return strings.Split(err.Error(), "\n")
}

func TestLoad_LaterSourcesWinKeyByKey(t *testing.T) {
	c := load(t,
		YAML("job.yaml", strings.NewReader("s3:\n  retry: {mode: red, max-num-retries: 5}\n  endpoint: http://file\n")),
		Env([]string{"SLUICE_S3_RETRY_MODE=dark-blue", "SLUICE_S3_RETRY_MAX__NUM__RETRIES=6"}),
		Pairs("-D", []string{"s3.retry.max-num-retries=7"}))
	assert.Equal(t, "http://file", Get(c, keyEndpoint))
	assert.Equal(t, darkBlue, Get(c, keyMode))
	assert.Equal(t, int64(7), Get(c, keyRetries))
	assert.Equal(t, MemorySize(256<<20), Get(c, keyBudget), "a default")
}

func TestLoad_ReportsEveryProblemOfEverySourceInOrder(t *testing.T) {
	sources := func() []Source {
		return []Source{
			YAML("job.yaml", strings.NewReader("s3.retry.mod: red\ns3.retry.mode: green\nsink: [1]\ns3.endpoint: a\ns3: {endpoint: b}\n")),
			Env([]string{"SLUICE_S3_ENDPOIT=x", "SLUICE_CHECKPOINT_INTERVAL=soon", "HOME=/"}),
			Pairs("-D", []string{"sink.memory.budget=1kb", "broken"}),
			Map("test", map[string]string{"zzz": "1", "s3.retry.max-num-retries": "-1"}),
		}
	}
	want := []string{
		`job.yaml:1: unknown key "s3.retry.mod", the nearest known key is "s3.retry.mode"`,
		`job.yaml:2: s3.retry.mode = "green": must be one of red, dark-blue`,
		`job.yaml:3: "sink" is a list: write one text`,
		`job.yaml:5: key "s3.endpoint" is already set at job.yaml:4`,
		`environment SLUICE_CHECKPOINT_INTERVAL: checkpoint.interval = "soon": begins neither with a digit nor as ISO-8601 (PT10S)`,
		`environment SLUICE_S3_ENDPOIT: unknown key "SLUICE_S3_ENDPOIT", the nearest known key is "SLUICE_S3_ENDPOINT"`,
		`-D: sink.memory.budget = "1kb": must be at least 1 mb`,
		`-D: argument 2 is not key=value`,
		`test: s3.retry.max-num-retries = "-1": must be between 0 and 1000`,
		`test: unknown key "zzz"`,
	}
	for range 20 {
		assert.Equal(t, want, problems(t, sources()...))
	}
}

func TestLoad_ChecksTheTextThatALaterSourceOverrides(t *testing.T) {
	assert.Equal(t, []string{`job.yaml:1: s3.retry.max-num-retries = "x": not a whole number`}, problems(t,
		YAML("job.yaml", strings.NewReader("s3.retry.max-num-retries: x")), Pairs("-D", []string{"s3.retry.max-num-retries=1"})))
}

func TestLoad_ErrorsAreTyped(t *testing.T) {
	_, err := Load(testRegistry(t), YAML("f", strings.NewReader("s3.retry.mode: green\nsink.memory.bugdet: 1\ns3.endpoint: a\ns3: {endpoint: b}\n")),
		Pairs("-D", []string{"x"}))
	value, ok := errors.AsType[*ValueError](err)
	require.True(t, ok)
	assert.Equal(t, "s3.retry.mode", value.Key)
	assert.Equal(t, "green", value.Value)
	assert.Equal(t, Origin{Source: "f", Line: 1}, value.Origin)
	unknown, ok := errors.AsType[*UnknownKeyError](err)
	require.True(t, ok)
	assert.Equal(t, UnknownKeyError{Key: "sink.memory.bugdet", Nearest: "sink.memory.budget", Origin: Origin{Source: "f", Line: 2}}, *unknown)
	duplicate, ok := errors.AsType[*DuplicateKeyError](err)
	require.True(t, ok)
	assert.Equal(t, [2]int{3, 4}, [2]int{duplicate.First.Line, duplicate.Second.Line})
	_, ok = errors.AsType[*SyntaxError](err)
	require.True(t, ok)
}

func TestLoad_AnotherSpellingIsAcceptedWithAWarning(t *testing.T) {
	c := load(t,
		YAML("job.yaml", strings.NewReader("execution.checkpointing.interval: 1 s\nfields: {f0: {kind: dark-blue}}\n")),
		Env([]string{"SLUICE_S3_ACCESS_KEY=k"}))
	assert.Equal(t, time.Second, Get(c, keyInterval))
	assert.Equal(t, darkBlue, Get(c, keyKind.With("f0")))
	assert.Equal(t, "k", Get(c, keyAccess).Reveal())
	assert.Equal(t, []string{
		"job.yaml:1: execution.checkpointing.interval is another spelling of checkpoint.interval: write checkpoint.interval",
		"job.yaml:2: fields.f0.kind is another spelling of datagen.fields.f0.kind: write datagen.fields.f0.kind",
		"environment SLUICE_S3_ACCESS_KEY: s3.access.key is another spelling of s3.access-key: write s3.access-key",
	}, c.Warnings())
	assert.Empty(t, load(t).Warnings())
}

func TestLoad_BothSpellingsInOneSourceAreAnError(t *testing.T) {
	assert.Equal(t, []string{
		`a.yaml:2: key "execution.checkpointing.interval" is already set at a.yaml:1 as "checkpoint.interval": keep "checkpoint.interval"`,
		`environment SLUICE_S3_ACCESS__KEY: key "s3.access-key" is already set at environment SLUICE_S3_ACCESS_KEY as "s3.access.key": keep "s3.access-key"`,
		`-D: key "datagen.fields.a.kind" is already set at -D as "fields.a.kind": keep "datagen.fields.a.kind"`,
	}, problems(t,
		YAML("a.yaml", strings.NewReader("checkpoint.interval: 1 s\nexecution.checkpointing.interval: 2 s\n")),
		Env([]string{"SLUICE_S3_ACCESS__KEY=a", "SLUICE_S3_ACCESS_KEY=b"}),
		Pairs("-D", []string{"fields.a.kind=red", "datagen.fields.a.kind=red"})))

	c := load(t, Map("one", map[string]string{"checkpoint.interval": "1 s"}), Map("two", map[string]string{"execution.checkpointing.interval": "2 s"}))
	assert.Equal(t, 2*time.Second, Get(c, keyInterval), "in two sources the later wins")
}

func TestIsSet_TellsASetValueFromADefault(t *testing.T) {
	c := load(t, Map("test", map[string]string{"s3.retry.max-num-retries": "3", "datagen.fields.a.length": "1"}))
	assert.True(t, IsSet(c, keyRetries))
	assert.False(t, IsSet(c, keyMode))
	assert.True(t, IsSet(c, keyLength.With("a")))
	assert.False(t, IsSet(c, keyLength.With("b")))
	assert.Equal(t, int64(100), Get(c, keyLength.With("b")))
}

func TestGet_PanicsOnlyOnTheProgramsOwnMistakes(t *testing.T) {
	c := load(t, Map("test", map[string]string{"s3.retry.max-num-retries": "3"}))
	assert.PanicsWithValue(t, `config: option "other" is not in the registry, or a pattern without a name for #`, func() { Get(c, Int("other", 0, "")) })
	assert.Panics(t, func() { Get(c, keyKind) }, "a pattern without a name")
	assert.Panics(t, func() { IsSet(c, String("s3.access.key", "", "")) }, "an alias is not the option")
	assert.PanicsWithValue(t, "config: option s3.retry.max-num-retries is registered with type int, not string",
		func() { Get(c, String("s3.retry.max-num-retries", "", "")) })
}

func TestSegments_AreTheNamesUsersChose(t *testing.T) {
	c := load(t, Map("test", map[string]string{
		"datagen.fields.f1.kind": "red", "datagen.fields.f0.kind": "red", "datagen.fields.f0.length": "1", "datagen.fields.z.length": "1"}))
	assert.Equal(t, []string{"f0", "f1"}, c.Segments("datagen.fields.#.kind"))
	assert.Equal(t, []string{"f0", "z"}, c.Segments("datagen.fields.#.length"))
	assert.Equal(t, []string{"f0", "f1", "z"}, c.Segments("datagen.fields.#"), "any option of a field")
	assert.Empty(t, load(t).Segments("datagen.fields.#"))
	assert.Panics(t, func() { c.Segments("datagen.fields.#.kin") })
	assert.Panics(t, func() { c.Segments("s3.endpoint") })
}

func TestLoad_AChosenNameIsOneSegment(t *testing.T) {
	assert.Equal(t, []string{
		`test: unknown key "datagen.fields.#.kind", the nearest known key is "datagen.fields.#.kind"`,
		`test: unknown key "datagen.fields..kind", the nearest known key is "datagen.fields.#.kind"`,
		`test: unknown key "datagen.fields.a.b.kind", the nearest known key is "datagen.fields.#.kind"`,
	}, problems(t, Map("test", map[string]string{"datagen.fields..kind": "red", "datagen.fields.a.b.kind": "red", "datagen.fields.#.kind": "red"})))
}

func TestEffective_ShowsEveryKeyWithItsCanonicalValueAndOrigin(t *testing.T) {
	c := load(t,
		YAML("job.yaml", strings.NewReader("s3.retry.mode: RED\n\ncheckpoint.interval: 10\nsink.memory.budget: 131072 KB\ns3.secret-key: hunter2\n")),
		Env([]string{"SLUICE_S3_RETRY_MAX__NUM__RETRIES=007"}),
		Pairs("-D", []string{"datagen.fields.f0.kind=dark-blue"}))
	assert.Equal(t, []Setting{
		{"checkpoint.interval", "10 ms", Origin{"job.yaml", 3}},
		{"datagen.fields.f0.kind", "dark-blue", Origin{"-D", 0}},
		{"s3.access-key", "(none)", Origin{"default", 0}},
		{"s3.endpoint", "(none)", Origin{"default", 0}},
		{"s3.retry.max-num-retries", "7", Origin{"environment SLUICE_S3_RETRY_MAX__NUM__RETRIES", 0}},
		{"s3.retry.mode", "red", Origin{"job.yaml", 1}},
		{"s3.secret-key", "******", Origin{"job.yaml", 5}},
		{"sink.memory.budget", "128 mb", Origin{"job.yaml", 4}},
	}, c.Effective())
}

func TestMap_HasTheSetTextsWithoutSecretsAndLoadsToTheSameValues(t *testing.T) {
	c := load(t,
		YAML("job.yaml", strings.NewReader("s3.retry.max-num-retries: 007\nexecution.checkpointing.interval: 1  S\ns3.secret-key: hunter2\n")),
		Pairs("-D", []string{"datagen.fields.f0.length=5"}))
	want := map[string]string{"s3.retry.max-num-retries": "007", "checkpoint.interval": "1  S", "datagen.fields.f0.length": "5"}
	assert.Equal(t, want, c.Map())
	again := load(t, Map("checkpoint", c.Map()))
	assert.Equal(t, want, again.Map())
	assert.Equal(t, Get(c, keyInterval), Get(again, keyInterval))
	assert.Equal(t, Get(c, keyLength.With("f0")), Get(again, keyLength.With("f0")))
}

// stopping is a Source of a user that gives up at its first problem.
type stopping struct{}

func (stopping) Load(r *Registry, set func(key, text string, at Origin) error) error {
	for _, info := range r.All() {
		if err := set(info.Name+"x", "", Origin{Source: "own"}); err != nil {
			return err
		}
	}
	return nil
}

func TestLoad_TakesSourcesOfUsers(t *testing.T) {
	assert.Equal(t, []string{`own: unknown key "checkpoint.intervalx", the nearest known key is "checkpoint.interval"`}, problems(t, stopping{}))
}

func TestErrors_DoNotRepeatMoreOfATextThanALine(t *testing.T) {
	long := strings.Repeat("\u00e9", 100_000)
	for _, line := range problems(t, Map("test", map[string]string{long: "x", "s3.retry.mode": long, "sink.memory.budget": "5" + long})) {
		assert.Less(t, len(line), 600)
		assert.NotContains(t, line, `\x`, "cut inside a character")
	}
}
