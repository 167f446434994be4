package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

// refused checks what a user gets for input that cannot work: the exit code, one message that has all the parts, no usage text, and
// nothing written.
func (w *world) refused(code int, args []string, parts ...string) result {
	w.t.Helper()
	w.store.ResetTrace()
	r := w.sluice(w.t.Context(), args...)
	assert.Equal(w.t, code, r.code, r.stderr)
	message := strings.Join(r.complaints(), "\n")
	assert.NotEmpty(w.t, message)
	for _, part := range parts {
		assert.Contains(w.t, message, part)
	}
	for i, line := range r.complaints() {
		assert.True(w.t, strings.HasPrefix(line, "sluice: "), line)
		assert.NotContains(w.t, r.complaints()[i+1:], line, "said once")
	}
	assert.NotContains(w.t, r.stderr+r.stdout, "Usage:")
	requireNoWrites(w.t, w.store)
	return r
}

// set changes keys of the job file; an empty value removes one.
func set(pairs ...string) func(*world) {
	return func(w *world) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i+1] == "" {
				delete(w.keys, pairs[i])
			} else {
				w.keys[pairs[i]] = pairs[i+1]
			}
		}
	}
}

func TestBadInput_InTheConfigurationIsNamedBeforeAnyRequest(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*world)
		parts []string
	}{
		"wrong key":         {set("sink.writer", "4"), []string{"job.yaml:", `unknown key "sink.writer"`, `nearest known key is "sink.writers"`}},
		"wrong variable":    {func(w *world) { w.env = []string{"SLUICE_S3_ENDPONT=x"} }, []string{"SLUICE_S3_ENDPONT", "SLUICE_S3_ENDPOINT"}},
		"bad size":          {set("sink.memory.budget", "256 mbb"), []string{"job.yaml:", "sink.memory.budget", `"256 mbb"`}},
		"bad duration":      {set("checkpoint.interval", "5 parsecs"), []string{"job.yaml:", "checkpoint.interval", `"5 parsecs"`}},
		"bad size in env":   {func(w *world) { w.env = []string{"SLUICE_SINK_MEMORY_BUDGET=much"} }, []string{"environment SLUICE_SINK_MEMORY_BUDGET", "sink.memory.budget", `"much"`}},
		"overridden, bad":   {func(w *world) { w.keys["sink.writers"] = "x"; w.env = []string{"SLUICE_SINK_WRITERS=2"} }, []string{"job.yaml:", "sink.writers", `"x"`}},
		"key set twice":     {set("execution.checkpointing.interval", "3 s"), []string{"execution.checkpointing.interval", "checkpoint.interval", "already set"}},
		"budget":            {set("sink.writers", "16", "s3.upload.min.part.size", "20 mb"), []string{"sink.memory.budget is 256 mb", "sink.writers x s3.upload.min.part.size", "16 writers with parts of 20 mb need at least 320 mb"}},
		"file of many":      {set("sink.rolling-policy.file-size", "100 gb"), []string{"sink.rolling-policy.file-size is 100 gb", "10000 parts of 5 mb", "raise s3.upload.min.part.size"}},
		"part too small":    {set("s3.upload.min.part.size", "1 mb"), []string{"s3.upload.min.part.size", `"1 mb"`}},
		"no sink.path":      {set("sink.path", ""), []string{"sink.path is required"}},
		"bad sink.path":     {set("sink.path", "/tmp/out"), []string{"sink.path", `"/tmp/out"`, "s3://bucket/key"}},
		"no checkpoint.dir": {set("checkpoint.dir", ""), []string{"checkpoint.dir is required"}},
		"no field":          {set("datagen.fields.f.length", ""), []string{"datagen.fields: no field", "datagen.fields.line.length: 1024"}},
		"two fields":        {set("datagen.fields.g.length", "99"), []string{"datagen.fields: 2 fields (f, g)"}},
		"short field":       {set("datagen.fields.f.length", "3"), []string{"datagen.fields.f.length", `"3"`}},
		"unknown kind":      {set("datagen.fields.f.kind", "sequnce"), []string{"datagen.fields.f.kind", `"sequnce"`, "random", "sequence"}},
		"endless sequence":  {set("datagen.fields.f.length", "", "datagen.fields.f.kind", "sequence", "datagen.fields.f.start", "1"), []string{"datagen.fields.f.end: not set"}},
		"foreign field key": {set("datagen.fields.f.start", "1"), []string{"datagen.fields.f.start: not an option of a random field"}},
		"negative rate":     {set("datagen.rows-per-second", "-1"), []string{"datagen.rows-per-second", `"-1"`}},
		"restart strategy":  {set("restart-strategy.type", "sometimes"), []string{"restart-strategy.type", `"sometimes"`, "fixed-delay"}},
		"restart jitter": {set("restart-strategy.type", "exponential-delay", "restart-strategy.exponential-delay.jitter-factor", "7"),
			[]string{"restart", "jitter"}},
		"shard":        {set("job.shard", "3/3"), []string{"job.shard", `"3/3"`}},
		"job name":     {set("job.name", "a_b"), []string{"job.name", `"a_b"`}},
		"half a key":   {set("s3.secret-key", ""), []string{"s3.secret-key: missing, but s3.access-key is set"}},
		"endpoint":     {set("s3.endpoint", "store:9000"), []string{"s3.endpoint", "http://host:port"}},
		"retry mode":   {set("s3.retry.mode", "brave"), []string{"s3.retry.mode", `"brave"`, "adaptive"}},
		"many at once": {set("sink.writer", "4", "sink.memory.budget", "x", "s3.retry.mode", "y"), []string{"sink.writer", "sink.memory.budget", "s3.retry.mode"}},
		"many across":  {set("sink.path", "", "checkpoint.dir", "", "datagen.fields.f.length", "", "s3.secret-key", ""), []string{"sink.path", "checkpoint.dir", "datagen.fields", "s3.secret-key"}},
		"file in the way": {func(w *world) { w.keys["checkpoint.dir"] = w.write("file", "x") },
			[]string{"checkpoint.dir = ", "/file", "not a directory"}},
		"file above": {func(w *world) { w.keys["checkpoint.dir"] = filepath.Join(w.write("file", "x"), "a", "b") },
			[]string{"checkpoint.dir = ", "/file/a/b", "not a directory"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				c.spoil(w)
				r := w.refused(2, []string{"run", "JOB"}, c.parts...)
				assert.Empty(t, r.stdout)
				assert.Empty(t, w.store.Trace())
				assert.NoDirExists(t, filepath.Join(w.dir, "checkpoints"))
				if !strings.Contains(strings.Join(c.parts, " "), "checkpoint.dir") && !strings.HasPrefix(name, "restart j") {
					w.refused(2, []string{"verify", "JOB"}, c.parts...)
				}
			})
		})
	}
}

func TestBadInput_ACheckpointDirectoryThatCannotBeWrittenIsNamed(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	bubble(t, func(t *testing.T, w *world) {
		closed := filepath.Join(w.dir, "closed")
		require.NoError(t, os.Mkdir(closed, 0o500))
		for _, dir := range []string{closed, filepath.Join(closed, "a", "b")} {
			w.keys["checkpoint.dir"] = dir
			w.refused(2, []string{"run", "JOB"}, "checkpoint.dir", dir, "write to "+closed+": permission denied")
		}
	})
}

func TestBadInput_OnTheCommandLineIsNamed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		missing := filepath.Join(w.dir, "nowhere", "x.json")
		for _, c := range []struct {
			args  []string
			parts []string
		}{
			{[]string{"rnu", "JOB"}, []string{`unknown command "rnu"`, "the nearest one is run", "see sluice --help"}},
			{[]string{"run"}, []string{"sluice run takes one job file, got 0 arguments", "see sluice run --help"}},
			{[]string{"verify", "JOB", "JOB"}, []string{"sluice verify takes one job file, got 2 arguments"}},
			{[]string{"options", "JOB", "JOB"}, []string{"sluice options takes one job file, got 2 arguments"}},
			{[]string{"options", "-D", "sink.writers=2"}, []string{"sluice options takes one job file, got 0 arguments"}},
			{[]string{"run", "JOB", "--reprot", "x"}, []string{"--reprot", "see sluice run --help"}},
			{[]string{"run", "nowhere.yaml"}, []string{"job file: open nowhere.yaml:"}},
			{[]string{"run", w.dir}, []string{w.dir, "is a directory"}},
			{[]string{"run", w.write("broken.yaml", "sink:\n  path: [")}, []string{"broken.yaml"}},
			{[]string{"run", w.write("list.yaml", "- a\n- b\n")}, []string{"list.yaml"}},
			{[]string{"run", "JOB", "-D", "sink.writers"}, []string{"-D", "argument 1 is not key=value"}},
			{[]string{"run", "JOB", "-D", "sink.writesr=4"}, []string{"-D", `unknown key "sink.writesr"`, `"sink.writers"`}},
			{[]string{"run", "JOB", "-D", "sink.writers=many"}, []string{"-D: sink.writers", `"many"`}},
			{[]string{"run", "JOB", "--report", missing}, []string{"--report", missing}},
			{[]string{"verify", "JOB", "--report", w.dir}, []string{"--report", w.dir, "is a directory"}},
		} {
			r := w.refused(2, c.args, c.parts...)
			assert.Len(t, r.complaints(), 1, r.stderr)
			assert.Empty(t, w.store.Trace())
		}
		r := w.sluice(t.Context())
		assert.Equal(t, 2, r.code, r.stderr)
		assert.Contains(t, r.stderr, "Usage:")
		assert.Contains(t, r.stderr, "sluice: a command is needed")
		assert.Empty(t, r.stdout)
	})
}

// Nobody waits for minutes to learn of a typing error in the address.
func TestBadInput_AStoreThatCannotBeUsedIsNamedWithinSeconds(t *testing.T) {
	dial := func(answer func(ctx context.Context) error) func(*world) {
		return func(w *world) {
			w.reach = []s3fs.Option{s3fs.WithDialContext(func(ctx context.Context, network, _ string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: network, Err: answer(ctx)}
			})}
		}
	}
	for name, c := range map[string]struct {
		spoil func(*world)
		parts []string
	}{
		"refused": {dial(func(context.Context) error { return syscall.ECONNREFUSED }), []string{"s3://data/", "cannot be reached", "connection refused", "check s3.endpoint"}},
		"silent":  {dial(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }), []string{"s3://data/", "cannot be reached", "no answer within 5s", "check s3.endpoint"}},
		"unknown host": {dial(func(context.Context) error {
			return &net.DNSError{Err: "no such host", Name: "sotre", IsNotFound: true}
		}), []string{"cannot be reached", "lookup sotre: no such host", "check s3.endpoint"}},
		"missing bucket": {set("sink.path", "s3://dta/out"), []string{"s3://dta/", "NoSuchBucket", "create the bucket, or correct its name"}},
		"wrong key":      {set("s3.access-key", "AKIAWRONG"), []string{"InvalidAccessKeyId", "check s3.access-key, s3.secret-key"}},
		"wrong secret":   {set("s3.secret-key", "wrong-secret"), []string{"SignatureDoesNotMatch", "check s3.access-key, s3.secret-key"}},
		"wrong key, answered with 404": {func(w *world) {
			w.store.Control(s3test.Match{}, s3test.Always(s3test.Status(404, "XAdminUserNotFound")))
		}, []string{"XAdminUserNotFound", "check s3.access-key, s3.secret-key"}},
		"no access": {func(w *world) {
			w.store.Control(s3test.Match{}, s3test.Always(s3test.Status(403, "AccessDenied")))
		}, []string{"AccessDenied", "s3:ListBucket"}},
		"not an S3": {func(w *world) {
			w.store.Control(s3test.Match{}, s3test.Always(s3test.Raw(404, "text/html", "<html>not found</html>")))
		}, []string{"s3://data/", "correct its name or s3.endpoint"}},
	} {
		for _, command := range []string{"run", "verify"} {
			t.Run(name+"/"+command, func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					c.spoil(w)
					start := time.Now()
					r := w.refused(2, []string{command, "JOB"}, c.parts...)
					assert.Less(t, time.Since(start), 15*time.Second)
					assert.Len(t, r.complaints(), 1, r.stderr)
					assert.Empty(t, r.stdout)
					assert.NotContains(t, r.stderr, "wrong-secret")
				})
			})
		}
	}
}

// The same over a real socket, on which nobody listens any more.
func TestBadInput_AClosedPortIsNamedWithinSeconds(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	w := newWorld(t, s3test.Options{})
	w.keys["s3.endpoint"] = "http://" + l.Addr().String()
	start := time.Now()
	w.refused(2, []string{"run", "JOB"}, "cannot be reached", l.Addr().String(), "check s3.endpoint")
	assert.Less(t, time.Since(start), 10*time.Second)
}

// stopped runs the job for 12 seconds and returns the manifest of its newest checkpoint.
func (w *world) stopped() (manifest string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 12*time.Second)
	defer cancel()
	require.Equal(w.t, 4, w.sluice(ctx, "run", "JOB").code)
	found, err := filepath.Glob(filepath.Join(w.dir, "checkpoints", "job", "0-of-1", "chk-*.json"))
	require.NoError(w.t, err)
	require.NotEmpty(w.t, found)
	return slices.Max(found)
}

func TestBadInput_ADamagedCheckpointIsNamedWithTheOlderOne(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"flipped byte": func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"cut short":    func(b []byte) []byte { return b[:len(b)/2] },
		"empty":        func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.keys["checkpoint.num-retained"] = "2"
				w.keys["restart-strategy.type"] = "fixed-delay" // trying again would not help
				manifest := w.stopped()
				text, err := os.ReadFile(manifest)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(manifest, damage(bytes.Clone(text)), 0o600))
				r := w.refused(1, []string{"run", "JOB"}, manifest+" is damaged", "newest older intact checkpoint: 2")
				assert.Equal(t, "not started: no row was generated, and what earlier runs have published is as it was\n", r.stdout)
				assert.NotContains(t, r.stderr, "restarting")

				require.NoError(t, os.WriteFile(manifest, text, 0o600))
				again := w.sluice(t.Context(), "run", "JOB")
				assert.Equal(t, 0, again.code, "nothing was lost by the attempt: %s", again.stderr)
				assert.Equal(t, 0, w.sluice(t.Context(), "verify", "JOB").code)
			})
		})
	}
}

func TestBadInput_ACheckpointWhoseBytesAreGoneIsNamed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		manifest := w.stopped()
		blobs, err := filepath.Glob(filepath.Join(filepath.Dir(manifest), "blobs", "*.blob"))
		require.NoError(t, err)
		require.NotEmpty(t, blobs)
		for _, b := range blobs {
			require.NoError(t, os.Remove(b))
		}
		w.refused(1, []string{"run", "JOB"}, "checkpoint 3", "is damaged", ".blob")
	})
}

func TestBadInput_AFileInThePlaceOfTheJobsCheckpointsIsNamed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		dir := filepath.Join(w.keys["checkpoint.dir"], "job")
		require.NoError(t, os.MkdirAll(dir, 0o700))
		place := filepath.Join(dir, "0-of-1")
		require.NoError(t, os.WriteFile(place, nil, 0o600))
		r := w.refused(1, []string{"run", "JOB"}, place, "not a directory")
		assert.Contains(t, r.stdout, "not started:")
	})
}

func TestBadInput_AnotherJobsCheckpointIsNotTakenOver(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*world)
		parts []string
	}{
		"seed":  {set("datagen.seed", "5"), []string{"datagen.seed", "0", "5"}},
		"field": {set("datagen.fields.f.length", "98"), []string{"datagen.fields", "99", "98"}},
		"path":  {set("sink.path", "s3://data/elsewhere"), []string{"s3://data/out", "s3://data/elsewhere"}},
		"checkpoints gone": {func(w *world) { w.keys["checkpoint.dir"] = filepath.Join(w.dir, "others") },
			[]string{"newer commit record exists", "out/_sluice/job/0-of-1/record-", "job.name"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.keys["restart-strategy.type"] = "fixed-delay" // trying again would not help
				w.stopped()
				c.spoil(w)
				r := w.refused(1, []string{"run", "JOB"}, c.parts...)
				assert.Contains(t, r.stdout, "not started:")
				assert.NotContains(t, r.stderr, "restarting")
			})
		})
	}
}

func TestBadInput_ASecondRunBesideALiveOneIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		// A store of its own, so that its transcript is that of the second run alone.
		second := newWorld(t, s3test.Options{})
		second.reach = []s3fs.Option{s3fs.WithDialContext(second.store.DialContext)}
		second.keys["checkpoint.dir"] = w.keys["checkpoint.dir"]

		first := make(chan result)
		go func() { first <- w.sluice(t.Context(), "run", "JOB") }()
		time.Sleep(7 * time.Second)
		r := second.refused(1, []string{"run", "JOB"},
			filepath.Join(w.dir, "checkpoints", "job", "0-of-1")+": epoch taken by a live run", fmt.Sprintf("pid %d since ", os.Getpid()))
		assert.Contains(t, r.stdout, "not started:")
		assert.Len(t, r.complaints(), 1)

		assert.Equal(t, 0, (<-first).code, "the first run is not disturbed")
		assert.Equal(t, 0, w.sluice(t.Context(), "verify", "JOB").code)
	})
}

// A wish to stop that comes while the store is looked for is no complaint about the configuration.
func TestRun_StoppedBeforeItBeganIsAFailureNotBadInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, s3test.Options{})
		w.reach = []s3fs.Option{s3fs.WithDialContext(func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, command := range []string{"run", "verify"} {
			r := w.sluice(ctx, command, "JOB")
			assert.Equal(t, 1, r.code, r.stderr)
			assert.Contains(t, r.complaints()[0], "check bucket s3://data/: context deadline exceeded")
		}
	})
}
