package sink_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc64"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/checkpoint/crashfs"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

// world is a store, a checkpoint directory, and what was written so far.
type world struct {
	t     *testing.T
	store *s3test.Server
	disk  *crashfs.Disk // of the checkpoints; nil: they are in files, see onDisk
	dir   string
	// wrap stands between the client and the store, if set.
	wrap func(http.RoundTripper) http.RoundTripper
	host string // another name of the store, if set
	// retain is the number of checkpoints that are kept, if set.
	retain int
}

func newWorld(t *testing.T) *world { return newWorldOn(t, s3test.Options{}) }

// newWorldOn makes a world with a store of its own kind.
func newWorldOn(t *testing.T, o s3test.Options) *world {
	t.Setenv("AWS_CA_BUNDLE", "") // a bundle is read anew by each client, which takes longer than most tests
	o.Buckets, o.MinPartSize = []string{"data"}, 1
	w := &world{t: t, store: s3test.New(o), disk: crashfs.New("chk"), dir: "chk"}
	t.Cleanup(w.store.Close)
	return w
}

// onDisk puts the checkpoints into files, for tests that do something with those. Each costs a hundred times as much to sync.
func (w *world) onDisk() { w.disk, w.dir = nil, w.t.TempDir() }

// lockFiles leaves a file where a lock was, as locks of files do: a sweep looks whether it is there.
type lockFiles struct{ *crashfs.Process }

func (l lockFiles) Lock(path, holder string) (io.Closer, error) {
	lock, err := l.Process.Lock(path, holder)
	if err != nil {
		return nil, err
	}
	if f, err := l.Create(path); err == nil { // the first time
		_ = f.Close()
	}
	return lock, nil
}

// openDir opens the checkpoint store of a job.
func (w *world) openDir(job string) *checkpoint.DirStore {
	w.t.Helper()
	open := checkpoint.OpenDir
	if w.disk != nil {
		open = func(dir, job, shard string) (*checkpoint.DirStore, error) {
			return checkpoint.OpenDirFS(lockFiles{w.disk.Process()}, dir, job, shard)
		}
	}
	store, err := open(w.dir, job, "0-of-1")
	require.NoError(w.t, err)
	return store
}

func (w *world) openFS() *s3fs.FS {
	s := s3fs.DefaultSettings()
	s.Endpoint, s.PathStyle, s.Region = w.store.URL(), true, "us-east-1"
	s.AccessKey, s.SecretKey = "key", "secret"
	if w.host != "" {
		s.Endpoint = "http://" + w.host
	}
	how := s3fs.WithDialContext(w.store.DialContext)
	if w.wrap != nil {
		transport := &http.Transport{DialContext: w.store.DialContext}
		w.t.Cleanup(transport.CloseIdleConnections)
		how = s3fs.WithHTTPClient(&http.Client{Transport: w.wrap(transport)})
	}
	fs, err := s3fs.NewClients(how).OpenSettings(w.t.Context(), s)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = fs.Close(context.WithoutCancel(w.t.Context())) })
	return fs
}

func options() sink.Options {
	return sink.Options{
		Path: s3fs.Path{Bucket: "data", Key: "out"}, Job: "main", Writers: 2,
		PartSize: 64 << 10, MemoryBudget: 4 << 20, Rolling: sink.Rolling{FileSize: 256 << 10},
	}
}

// run is one life of a process.
type run struct {
	w     *world
	fs    *s3fs.FS
	sink  *sink.Sink[[]byte]
	coord *checkpoint.Coordinator
	store *checkpoint.DirStore
}

func (w *world) start(o sink.Options) *run {
	r, err := w.tryStart(o)
	require.NoError(w.t, err)
	return r
}

func (w *world) tryStart(o sink.Options) (*run, error) {
	r := &run{w: w, fs: w.openFS()}
	var err error
	r.sink, err = sink.New(r.fs, sink.Raw(), o)
	require.NoError(w.t, err)
	r.store = w.openDir(o.Job)
	r.coord, err = checkpoint.NewCoordinator(r.store, checkpoint.Options{Retain: w.retain}, r.sink)
	require.NoError(w.t, err)
	if _, err = r.coord.Restore(w.t.Context()); err != nil {
		r.crash()
	}
	return r, err
}

// crash ends the run as a killed process does: nothing is published, nothing is cleaned up.
func (r *run) crash() {
	ctx := r.w.t.Context()
	require.NoError(r.w.t, r.coord.Close(ctx))
	require.NoError(r.w.t, r.sink.Close(ctx))
	require.NoError(r.w.t, r.store.Close())
}

// rows writes the numbered rows [from, to) round robin, each with a body of the given size.
func (r *run) rows(from, to, size int) {
	for i := range to - from {
		n := from + i
		err := r.coord.Step(r.w.t.Context(), func() error {
			return r.sink.Writer(n%r.sink.Writers()).Write(r.w.t.Context(), row(n, size))
		})
		require.NoError(r.w.t, err)
	}
}

func row(n, size int) []byte {
	head := fmt.Sprintf("%08d:", n)
	return []byte(head + strings.Repeat("x", max(0, size-len(head))))
}

func (r *run) checkpoint() { _, err := r.coord.Trigger(r.w.t.Context()); require.NoError(r.w.t, err) }

// finish publishes everything and ends the run.
func (r *run) finish() {
	require.NoError(r.w.t, r.coord.Step(r.w.t.Context(), r.sink.Seal))
	r.checkpoint()
	require.Zero(r.w.t, r.sink.Stats().PendingFiles)
	require.Zero(r.w.t, r.sink.Stats().Budget.Used, "pages that were not given back")
	r.crash()
}

// published returns the numbers of the rows in all objects that records list, after checking every listed object against its
// entry with a second implementation of the checksum.
func (w *world) published() []int {
	table := crc64.MakeTable(0x9a6c9329ac4bc9b5) // NVME, reflected
	var rows []int
	listed := map[string]bool{}
	for _, r := range w.records() {
		for _, f := range r.Files {
			require.False(w.t, listed[f.Key], "%s is in two records", f.Key)
			listed[f.Key] = true
			o, found := w.store.Object("data", f.Key)
			require.True(w.t, found, f.Key)
			require.Equal(w.t, f.Bytes, int64(len(o.Data)))
			sum := binary.BigEndian.AppendUint64(nil, crc64.Checksum(o.Data, table))
			require.Equal(w.t, base64.StdEncoding.EncodeToString(sum), f.CRC64NVME)
			lines := bytes.Split(bytes.TrimSuffix(o.Data, []byte("\n")), []byte("\n"))
			require.Len(w.t, lines, int(f.Rows))
			for _, l := range lines {
				var n int
				_, err := fmt.Sscanf(string(l), "%d:", &n)
				require.NoError(w.t, err)
				rows = append(rows, n)
			}
		}
	}
	for _, key := range w.dataKeys() {
		require.True(w.t, listed[key], "%s is visible and in no record", key)
	}
	return rows
}

func (w *world) dataKeys() []string {
	var keys []string
	for _, k := range w.store.Keys("data") {
		if !strings.Contains(k, "_sluice/") {
			keys = append(keys, k)
		}
	}
	return keys
}

func (w *world) records() []sink.Record {
	var out []sink.Record
	for _, k := range w.store.Keys("data") {
		if strings.Contains(k, "_sluice/") {
			o, _ := w.store.Object("data", k)
			r, err := sink.DecodeRecord(o.Data)
			require.NoError(w.t, err)
			out = append(out, r)
		}
	}
	return out
}

// requireRows checks that exactly the rows [0, n) are published, each once.
func (w *world) requireRows(n int) {
	w.t.Helper()
	want := make([]int, n)
	for i := range want {
		want[i] = i
	}
	got := w.published()
	slices.Sort(got)
	require.True(w.t, slices.Equal(want, got), "rows %v", got)
	require.NotContains(w.t, w.store.Trace(), "AbortMultipartUpload")
}
