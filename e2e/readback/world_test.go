package readback_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"hash/crc64"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/sluice-go/sluice/e2e/readback"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

// base is where every job of these tests writes.
var base = s3fs.Path{Bucket: "data", Key: "out"}

// world is a store and the one file system on it.
type world struct {
	t     *testing.T
	store *s3test.Server
	fs    *s3fs.FS
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	bubbleWith(t, s3test.Options{}, test)
}

func bubbleWith(t *testing.T, o s3test.Options, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.Buckets, o.MinPartSize = []string{"data"}, 1
		w := &world{t: t, store: s3test.New(o)}
		t.Cleanup(w.store.Close)
		s := s3fs.DefaultSettings()
		s.Endpoint, s.PathStyle, s.Region = w.store.URL(), true, "us-east-1"
		s.AccessKey, s.SecretKey = "key", "secret"
		var err error
		w.fs, err = s3fs.NewClients(s3fs.WithDialContext(w.store.DialContext)).OpenSettings(t.Context(), s)
		require.NoError(t, err)
		t.Cleanup(func() { _ = w.fs.Close(context.WithoutCancel(t.Context())) })
		test(t, w)
	})
}

// job is one shard of a datagen-to-sink job.
type job struct {
	name   string
	shard  datagen.Shard // zero: 0/1
	source datagen.Options
	// halt stops after this many rows, as a job that is told to stop does: with a checkpoint, and with files left open. 0 runs to the end.
	halt     int64
	fileSize int64 // zero: 100 rows of randomRows
}

// randomRows are n rows of 100 characters.
func randomRows(n int64) datagen.Options {
	return datagen.Options{NumberOfRows: n, Seed: 7, Fields: []datagen.Field{datagen.RandomField("line", 100)}}
}

const rowBytes = 101 // of randomRows, with the line feed; fileRows of them are a file

// run runs a job below base with a checkpoint after every 250 rows, and one writer, so that a file holds the rows in order.
func (w *world) run(j job) {
	w.t.Helper()
	w.runAt(base, j)
}

func (w *world) runAt(path s3fs.Path, j job) {
	w.t.Helper()
	ctx := w.t.Context()
	if j.shard.Count == 0 {
		j.shard = datagen.Shard{Index: 0, Count: 1}
	}
	if j.fileSize == 0 {
		j.fileSize = fileRows * rowBytes
	}
	source, err := datagen.NewSource(j.source, j.shard)
	require.NoError(w.t, err)
	gen, err := j.source.Generator()
	require.NoError(w.t, err)
	out, err := sink.New(w.fs, sink.Raw(), sink.Options{
		Path: path, Job: j.name, Shard: j.shard, PartSize: 64 << 10, MemoryBudget: 4 << 20, Rolling: sink.Rolling{FileSize: j.fileSize},
	})
	require.NoError(w.t, err)
	store, err := checkpoint.OpenDir(w.t.TempDir(), j.name, j.shard.Dir())
	require.NoError(w.t, err)
	coord, err := checkpoint.NewCoordinator(store, checkpoint.Options{}, source, out)
	require.NoError(w.t, err)
	_, err = coord.Restore(ctx)
	require.NoError(w.t, err)

	trigger := func() { _, err := coord.Trigger(ctx); require.NoError(w.t, err) }
	var row []byte
	for ended := false; !ended && (j.halt == 0 || source.Position().Next < j.halt); {
		require.NoError(w.t, coord.Step(ctx, func() error {
			b := source.Next(50)
			ended = b.Count == 0
			for i := range b.Count {
				row = gen.Append(row[:0], b.Row(i))
				if err := out.Writer(0).Write(ctx, row); err != nil {
					return err
				}
			}
			return nil
		}))
		if source.Position().Next%250 == 0 && j.fileSize < 1<<20 {
			trigger()
		}
	}
	if j.halt == 0 {
		require.NoError(w.t, coord.Step(ctx, out.Seal))
	}
	trigger()
	require.NoError(w.t, coord.Close(ctx))
	require.NoError(w.t, out.Close(ctx))
	require.NoError(w.t, store.Close())
}

// main is the job that most tests damage: 1,000 rows in 10 files of 100 rows each, in order, published by 5 checkpoints.
func (w *world) main() job {
	j := job{name: "main", source: randomRows(1000)}
	w.run(j)
	require.Len(w.t, w.files("main"), 10)
	require.Len(w.t, w.records("main"), 5)
	return j
}

// verify reads the job back; the check itself has to succeed.
func (w *world) verify(j job) *readback.Report {
	w.t.Helper()
	r, err := readback.Verify(w.t.Context(), w.fs, readback.Target{Path: base, Job: j.name, Source: j.source}, readback.Options{Window: 256})
	require.NoError(w.t, err)
	return r
}

func (w *world) keys(prefix string) []string {
	var keys []string
	for _, k := range w.store.Keys("data") {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	return keys
}

// files are the keys of a job's part files in the order they were written.
func (w *world) files(name string) []string {
	keys := w.keys("out/part_" + name + "_")
	slices.SortFunc(keys, func(a, b string) int { return strings.Compare(padded(a), padded(b)) })
	return keys
}

// padded makes the counter at the end of a file's name sort as a number.
func padded(key string) string {
	i := strings.LastIndexByte(key, '_') + 1
	return key[:i] + strings.Repeat("0", 12-(len(key)-i)) + key[i:]
}

// records are the keys of a job's commit records, shard by shard and oldest first.
func (w *world) records(name string) []string { return w.keys("out/_sluice/" + name + "/") }

func (w *world) content(key string) []byte {
	o, found := w.store.Object("data", key)
	require.True(w.t, found, key)
	return bytes.Clone(o.Data)
}

// put replaces an object behind the back of everybody; the store keeps no checksum for it.
func (w *world) put(key string, content []byte) { w.store.PutObject("data", key, content, nil) }

// editRecord changes a commit record and signs it anew, as a bug in the writer would.
func (w *world) editRecord(key string, edit func(*sink.Record)) {
	r, err := sink.DecodeRecord(w.content(key))
	require.NoError(w.t, err)
	edit(&r)
	content, err := r.Encode()
	require.NoError(w.t, err)
	w.put(key, content)
}

// adopt puts the checksum of a file's present content into the record that lists it.
func (w *world) adopt(file string) {
	adopted := 0
	for _, key := range w.records("main") {
		w.editRecord(key, func(r *sink.Record) {
			for i := range r.Files {
				if r.Files[i].Key == file {
					r.Files[i].CRC64NVME = crcOf(w.content(file))
					adopted++
				}
			}
		})
	}
	require.Equal(w.t, 1, adopted)
}

// crcOf is a second implementation of the records' checksum.
func crcOf(content []byte) string {
	sum := crc64.Checksum(content, crc64.MakeTable(0x9a6c9329ac4bc9b5)) // NVME, reflected
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, sum))
}
