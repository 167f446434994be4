package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/checkpoint/internal/flow"
	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

// world is a store and the processes on it. It outlives them.
type world struct {
	t   *testing.T
	srv *s3test.Server
	out *flow.Output
	// unconditional is a store that does not implement conditional PUT.
	unconditional bool

	mu    sync.Mutex
	procs map[string]*proc // by access key
	all   []*proc
}

// proc is a process: all its requests carry its access key, and when it is killed none of them has an effect any more.
type proc struct {
	w    *world
	fs   *s3fs.FS
	ctx  context.Context
	kill context.CancelCauseFunc

	mu   sync.Mutex
	n    int // requests so far
	dead bool
	// hook decides on request n, counted from 0.
	hook func(n int, r s3test.Request) *s3test.Reply
}

var errKilled = errors.New("killed")

// cleanAWS hides the AWS configuration of whoever runs the tests.
func cleanAWS(t testing.TB) {
	t.Helper()
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": empty, "AWS_SHARED_CREDENTIALS_FILE": empty, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_PROFILE": "", "AWS_CA_BUNDLE": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "", "HTTP_PROXY": "", "HTTPS_PROXY": "",
	} {
		t.Setenv(name, value)
	}
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	bubbleWith(t, s3test.Options{}, f)
}

func bubbleWith(t *testing.T, o s3test.Options, f func(t *testing.T, w *world)) {
	t.Helper()
	cleanAWS(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, o)
		defer w.end()
		f(t, w)
	})
}

func newWorld(t *testing.T, o s3test.Options) *world {
	o.Buckets = []string{"b"}
	w := &world{t: t, srv: s3test.New(o), out: flow.NewOutput(), procs: make(map[string]*proc)}
	w.srv.Control(s3test.Match{}, w.decide)
	return w
}

func (w *world) end() {
	for _, p := range w.all {
		p.mu.Lock()
		p.hook = nil
		p.mu.Unlock()
		p.kill(errKilled)
		require.NoError(w.t, p.fs.Close(context.Background()))
	}
	w.srv.Close()
}

// decide finds the process of a request and asks its hook.
func (w *world) decide(r s3test.Request) *s3test.Reply {
	_, rest, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	key, _, _ := strings.Cut(rest, "/")
	w.mu.Lock()
	p := w.procs[key]
	w.mu.Unlock()
	p.mu.Lock()
	n, hook, dead := p.n, p.hook, p.dead
	p.n++
	p.mu.Unlock()
	if dead {
		return s3test.ResetBefore()
	}
	if hook != nil {
		if reply := hook(n, r); reply != nil {
			return reply
		}
	}
	if w.unconditional && r.Header.Get("If-None-Match") != "" {
		return s3test.Status(501, "NotImplemented")
	}
	return nil
}

// start begins a process.
func (w *world) start() *proc { return w.startWith(func(*s3fs.Settings) {}) }

func (w *world) startWith(change func(*s3fs.Settings)) *proc {
	p := &proc{w: w}
	p.ctx, p.kill = context.WithCancelCause(context.Background())
	w.mu.Lock()
	key := fmt.Sprintf("proc-%d", len(w.all))
	w.procs[key] = p
	w.all = append(w.all, p)
	w.mu.Unlock()
	s := s3fs.DefaultSettings()
	s.Endpoint, s.PathStyle, s.Region = w.srv.URL(), true, "us-east-1"
	s.AccessKey, s.SecretKey = config.Secret(key), "secret"
	s.Retry.Mode = retrymode.Standard
	change(&s)
	fs, err := s3fs.OpenSettings(context.Background(), s, s3fs.WithDialContext(w.srv.DialContext))
	require.NoError(w.t, err)
	p.fs = fs
	return p
}

// die ends the process: what is in flight has no effect unless it had one already, and nothing comes after it.
func (p *proc) die() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.kill(errKilled)
}

// count returns the number of requests so far.
func (p *proc) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// on sets the hook.
func (p *proc) on(hook func(n int, r s3test.Request) *s3test.Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hook = hook
}

// reply lets f reply to the requests with an operation and a part of a key, or of a prefix that is listed, counted from 1.
func (p *proc) reply(op s3test.Op, part string, f func(n int) *s3test.Reply) {
	n := 0
	p.on(func(_ int, r s3test.Request) *s3test.Reply {
		if r.Op != op || !strings.Contains(r.Key+r.Query.Get("prefix"), part) {
			return nil
		}
		p.mu.Lock()
		n++
		m := n
		p.mu.Unlock()
		return f(m)
	})
}

var (
	root  = s3fs.Path{Bucket: "b", Key: "checkpoints"}
	shard = checkpoint.Shard{Index: 0, Count: 1}
)

const dir = "checkpoints/job-1/0-of-1/"

func (p *proc) open() *Store {
	s, err := Open(p.fs, root, "job-1", shard)
	require.NoError(p.w.t, err)
	return s
}

// claimedStore returns a store of a new process, which has claimed it.
func (w *world) claimedStore() (*Store, *proc, int64) {
	p := w.start()
	s := p.open()
	epoch, err := s.Claim(p.ctx)
	require.NoError(w.t, err)
	return s, p, epoch
}

// manifest returns the smallest manifest that can be saved.
func manifest(id checkpoint.ID, epoch int64, refs ...string) checkpoint.Manifest {
	return checkpoint.Manifest{
		ID: id, Epoch: epoch, CreatedAt: time.Now(), States: []checkpoint.NamedState{{Name: "p", State: []byte("s"), Refs: refs}},
	}
}

// put writes one blob of checkpoint id and returns its ref and its name.
func put(t *testing.T, s *Store, id checkpoint.ID, text string) (ref, name string) {
	t.Helper()
	w, err := s.Blobs(t.Context(), id)
	require.NoError(t, err)
	ref, err = w.Put(t.Context(), strings.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	require.NoError(t, w.Sync(t.Context()))
	require.NoError(t, w.Close())
	name, _, _ = strings.Cut(ref, ":")
	return ref, name
}

func readBlob(ctx context.Context, s *Store, ref string) (string, error) {
	in, err := s.OpenBlob(ctx, ref)
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(in)
	return string(data), errors.Join(err, in.Close())
}

// names returns what is below the prefix of the shard.
func (w *world) names() (names []string) {
	for _, key := range w.srv.Keys("b") {
		if name, ok := strings.CutPrefix(key, dir); ok {
			names = append(names, name)
		}
	}
	return names
}

// blobNames returns the blobs that are there.
func (w *world) blobNames() (names []string) {
	for _, name := range w.names() {
		if blob, ok := strings.CutPrefix(name, blobPrefix); ok {
			names = append(names, blob)
		}
	}
	return names
}

// edit changes an object behind the back of everybody.
func (w *world) edit(name string, change func([]byte) []byte) {
	o, found := w.srv.Object("b", dir+name)
	require.True(w.t, found, name)
	w.srv.PutObject("b", dir+name, change(append([]byte(nil), o.Data...)), nil)
}

func (w *world) drop(name string) { require.True(w.t, w.srv.DeleteObject("b", dir+name), name) }

// damaged returns the facts of a *checkpoint.DamagedError.
func damaged(t *testing.T, err error) *checkpoint.DamagedError {
	t.Helper()
	d, ok := errors.AsType[*checkpoint.DamagedError](err)
	require.True(t, ok, "%v", err)
	return d
}

func url(name string) string { return "s3://b/" + dir + name }
