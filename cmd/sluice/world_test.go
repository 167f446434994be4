package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

// asCommand is set in the environment of a test binary that is to be the command.
const asCommand = "RUN_AS_SLUICE_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	// The AWS configuration of whoever runs the tests is none of theirs.
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "AWS_") {
			_ = os.Unsetenv(name)
		}
	}
	for _, name := range []string{"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"} {
		_ = os.Setenv(name, os.DevNull)
	}
	_ = os.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	goleak.VerifyTestMain(m)
}

const (
	testKey    = "AKIATESTKEYID0000001"
	testSecret = "not-to-be-printed-anywhere"
)

// world is a store and a job file for it.
type world struct {
	t     *testing.T
	store *s3test.Server
	dir   string
	keys  map[string]string // the content of the job file
	env   []string
	reach []s3fs.Option // how the command reaches the store
}

// newWorld describes a job of 3,000 rows that takes 30 seconds. Two writers make part files of 200 rows.
func newWorld(t *testing.T, o s3test.Options) *world {
	o.Buckets = []string{"data"}
	o.AccessKey, o.SecretKey = testKey, testSecret
	w := &world{t: t, store: s3test.New(o), dir: t.TempDir()}
	t.Cleanup(w.store.Close)
	w.keys = map[string]string{
		"s3.endpoint": w.store.URL(), "s3.path-style-access": "true", "s3.region": "us-east-1",
		"s3.access-key": testKey, "s3.secret-key": testSecret,
		"sink.path": "s3://data/out", "sink.writers": "2", "sink.rolling-policy.file-size": "20000",
		"checkpoint.dir": filepath.Join(w.dir, "checkpoints"), "checkpoint.interval": "5 s",
		"datagen.number-of-rows": "3000", "datagen.rows-per-second": "100", "datagen.fields.f.length": "99",
	}
	return w
}

// bubble runs a test in virtual time on an in-memory network.
func bubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, s3test.Options{})
		w.reach = []s3fs.Option{s3fs.WithDialContext(w.store.DialContext)}
		test(t, w)
	})
}

// jobFile writes the job file and returns its name.
func (w *world) jobFile() string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(w.keys)) {
		b.WriteString(key + ": " + w.keys[key] + "\n")
	}
	return w.write("job.yaml", b.String())
}

func (w *world) write(name, content string) string {
	w.t.Helper()
	file := filepath.Join(w.dir, name)
	require.NoError(w.t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

// result is what a user sees of a command.
type result struct {
	code           int
	stdout, stderr string
}

// sluice runs a command line. JOB stands for the job file.
func (w *world) sluice(ctx context.Context, args ...string) result {
	args = slices.Clone(args)
	for i := range args {
		if args[i] == "JOB" {
			args[i] = w.jobFile()
		}
	}
	var stdout, stderr bytes.Buffer
	p := process{environ: w.env, stdout: &stdout, stderr: &stderr, store: w.reach}
	code := p.run(ctx, args)
	return result{code, stdout.String(), stderr.String()}
}

// complaints are the lines of the command itself on stderr, without the log.
func (r result) complaints() []string {
	var lines []string
	for line := range strings.Lines(r.stderr) {
		if !strings.HasPrefix(line, "time=") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

// requireNoWrites checks that nothing but reads has reached the store since its transcript was emptied.
func requireNoWrites(t *testing.T, store *s3test.Server) {
	t.Helper()
	for line := range strings.Lines(store.Trace()) {
		op, _, _ := strings.Cut(line, " ")
		require.Contains(t, []s3test.Op{s3test.HeadBucket, s3test.ListObjectsV2, s3test.HeadObject, s3test.GetObject}, s3test.Op(op), line)
	}
}
