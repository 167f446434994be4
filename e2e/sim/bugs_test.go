package sim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

// What the simulation has found, each reduced to a few steps.

// bench is a sink whose checkpoints are taken by hand.
type bench struct {
	t     *testing.T
	store *s3test.Server
	fs    *s3fs.FS
	blobs *heldBlobs
	sink  *sink.Sink[[]byte]
	rows  int
}

// onBench runs a test in virtual time.
func onBench(t *testing.T, f func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{
			t: t, store: s3test.New(s3test.Options{Buckets: []string{bucket}, MinPartSize: 1}),
			blobs: &heldBlobs{held: map[string][]byte{}},
		}
		defer b.store.Close()
		s := s3fs.DefaultSettings()
		s.Endpoint, s.PathStyle, s.Region, s.AccessKey, s.SecretKey = b.store.URL(), true, "us-east-1", "key", "secret"
		s.Retry.Mode, s.Retry.MaxRetries = retrymode.Standard, 0
		var err error
		b.fs, err = s3fs.OpenSettings(t.Context(), s, s3fs.WithDialContext(b.store.DialContext))
		require.NoError(t, err)
		f(t, b)
		require.NoError(t, b.sink.Close(t.Context()))
		require.NoError(t, b.fs.Close(context.WithoutCancel(t.Context())))
	})
}

// start begins a run from a captured state, after the one before it was killed. It commits nothing.
func (b *bench) start(epoch int64, id checkpoint.ID, state []byte) {
	if b.sink != nil {
		require.NoError(b.t, b.sink.Close(b.t.Context()))
	}
	var err error
	b.sink, err = sink.New(b.fs, sink.Raw(), sink.Options{
		Path: path, Job: jobName, Writers: 2, PartSize: 1 << 10, Rolling: sink.Rolling{FileSize: 1 << 20, OnCheckpoint: true},
	})
	require.NoError(b.t, err)
	require.NoError(b.t, b.sink.Restore(b.t.Context(), checkpoint.Restored{ID: id, Epoch: epoch, State: state, Blobs: b.blobs}))
}

// capture gives each writer a row and takes a checkpoint, which then holds two more small files.
func (b *bench) capture(id checkpoint.ID) (state []byte, refs []string) {
	for i := range 2 {
		require.NoError(b.t, b.sink.Writer(i).Write(b.t.Context(), fmt.Appendf(nil, "row %d", b.rows)))
		b.rows++
	}
	snap, err := b.sink.Capture(id)
	require.NoError(b.t, err)
	state, refs, err = snap.Store(b.t.Context(), b.blobs)
	require.NoError(b.t, err)
	return state, refs
}

func (b *bench) commit(id checkpoint.ID) { require.NoError(b.t, b.sink.Commit(b.t.Context(), id)) }

// refuse lets the store answer some calls below a key with 403 until the returned function is called.
func (b *bench) refuse(op s3test.Op, key string) (stop func()) {
	return b.store.Control(s3test.Match{Op: op, KeyPrefix: key}, s3test.Always(s3test.Status(403, "AccessDenied")))
}

// requireOneRecordEach checks that n files are published and each is in one record.
func (b *bench) requireOneRecordEach(n int) {
	b.t.Helper()
	in := map[string]int64{}
	for e, err := range sink.Records(b.t.Context(), b.fs, path) {
		require.NoError(b.t, err)
		r, err := e.Read(b.t.Context())
		require.NoError(b.t, err)
		for _, f := range r.Files {
			require.Zero(b.t, in[f.Key], "%s is in the records of two checkpoints, the second is %d", f.Key, r.Checkpoint)
			in[f.Key] = r.Checkpoint
		}
		require.Len(b.t, in, int(r.TotalFiles), "the totals of checkpoint %d's record", r.Checkpoint)
	}
	require.Len(b.t, in, n)
}

func recordKey(id int64) string { return sink.RecordKey(path.Key, jobName, shard, id) }

// heldBlobs keeps the blobs of all checkpoints.
type heldBlobs struct {
	mu   sync.Mutex
	held map[string][]byte
}

func (h *heldBlobs) Put(_ context.Context, r io.Reader, _ int64) (string, error) {
	data, err := io.ReadAll(r)
	h.mu.Lock()
	defer h.mu.Unlock()
	ref := fmt.Sprint("blob ", len(h.held))
	h.held[ref] = data
	return ref, err
}

func (h *heldBlobs) Open(_ context.Context, ref string) (io.ReadCloser, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return io.NopCloser(bytes.NewReader(h.held[ref])), nil
}

// Seed 265 of the first version: the answer to the PUT of a record came after the deadline, the next checkpoint still named the files,
// and the run that went on from there listed them again.
func TestFound_ARecordWhoseAnswerWasLostIsNotWrittenAgainByTheNextRun(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.start(1, 0, nil)
		b.capture(1)
		b.store.Control(s3test.Match{Op: s3test.PutObject, KeyPrefix: recordKey(1), First: 1}, s3test.Always(s3test.ResetAfter()))
		stop := b.refuse(s3test.GetObject, recordKey(1))
		require.Error(t, b.sink.Commit(t.Context(), 1))
		state, _ := b.capture(2)
		stop()
		b.start(2, 2, state)
		b.commit(2)
		b.requireOneRecordEach(4)
	})
}

// As above, but the PUT is still on its way when the next run has looked for the record.
func TestFound_ARecordThatIsStillOnItsWayFindsItsPlaceTaken(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.start(1, 0, nil)
		b.capture(1)
		stopPut, stopGet := b.refuse(s3test.PutObject, recordKey(1)), b.refuse(s3test.GetObject, recordKey(1))
		require.Error(t, b.sink.Commit(t.Context(), 1))
		state, _ := b.capture(2)
		stopPut()
		stopGet()
		b.start(2, 2, state)
		b.commit(2)
		late := b.fs.PutIfAbsent(t.Context(), s3fs.Path{Bucket: bucket, Key: recordKey(1)}, []byte("the record of the dead run"))
		require.ErrorIs(t, late, s3fs.ErrExists)
		b.requireOneRecordEach(4)
	})
}

// Within one run too: a record that was not found after its PUT has failed may still arrive, so it is put again as it is.
func TestFound_ARecordWhosePutHasFailedIsFinishedBeforeTheNextOne(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.start(1, 0, nil)
		b.capture(1)
		stop := b.refuse(s3test.PutObject, recordKey(1))
		require.Error(t, b.sink.Commit(t.Context(), 1))
		stop()
		b.capture(2)
		b.commit(2)
		_, there := b.store.Object(bucket, recordKey(1))
		require.True(t, there)
		b.requireOneRecordEach(4)
	})
}

// A run that goes on without having proven anything must still take the place of its checkpoint's record: the run it has replaced may be about to
// write it.
func TestFound_ARunThatCouldProveNothingStillTakesThePlaceOfTheRecord(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.start(1, 0, nil)
		state, _ := b.capture(1)
		b.start(2, 1, state)
		stop := b.refuse(s3test.HeadObject, path.Key)
		require.Error(t, b.sink.Commit(t.Context(), 1))
		stop()
		zombie := b.fs.PutIfAbsent(t.Context(), s3fs.Path{Bucket: bucket, Key: recordKey(1)}, []byte("the record of the replaced run"))
		require.ErrorIs(t, zombie, s3fs.ErrExists)
		b.capture(2)
		b.commit(2)
		b.requireOneRecordEach(4)
	})
}

// Seed 12307: the first commit of a run has failed before it came to the restored checkpoint's record. The next one must take that place
// before it lists the files in a record of its own.
func TestFound_ARunWhoseFirstCommitBrokeOffTakesThePlacesWithTheNextOne(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.start(1, 0, nil)
		b.capture(1)
		state, _ := b.capture(2)
		b.start(2, 2, state)
		stop := b.refuse(s3test.PutObject, recordKey(1))
		require.Error(t, b.sink.Commit(t.Context(), 2))
		stop()
		b.capture(3)
		b.commit(3)
		for _, id := range []int64{1, 2} {
			zombie := b.fs.PutIfAbsent(t.Context(), s3fs.Path{Bucket: bucket, Key: recordKey(id)}, []byte("the record of the replaced run"))
			require.ErrorIs(t, zombie, s3fs.ErrExists)
		}
		b.requireOneRecordEach(6)
	})
}

// The run that was replaced has written the record, and it lists a file that its successor could not prove.
func TestFound_ARecordOfTheReplacedRunSettlesWhatItsSuccessorCouldNotProve(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.start(1, 0, nil)
		state, _ := b.capture(1)
		b.commit(1)
		zombie, there := b.store.Object(bucket, recordKey(1))
		require.True(t, there)
		require.True(t, b.store.DeleteObject(bucket, recordKey(1)))
		b.start(2, 1, state)
		b.store.Control(s3test.Match{Op: s3test.PutObject, KeyPrefix: recordKey(1), First: 1}, func(s3test.Request) *s3test.Reply {
			b.store.PutObject(bucket, recordKey(1), zombie.Data, nil)
			return nil
		})
		stop := b.refuse(s3test.HeadObject, path.Key+"/part_main_0-of-1_e1_w1")
		require.ErrorIs(t, b.sink.Commit(t.Context(), 1), s3fs.ErrAccessDenied)
		stop()
		require.Zero(t, b.sink.Stats().PendingFiles)
		require.Zero(t, b.sink.Stats().Budget.Used)
		b.capture(2)
		b.commit(2)
		b.requireOneRecordEach(4)
	})
}

// With commits behind the next checkpoints, a file could have bytes in two of them, and the third named those of the first: they go when the
// first is committed late. What a checkpoint carries on must be named by the one before it.
func TestFound_ACheckpointCarriesOnOnlyBlobsThatTheOneBeforeItNames(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.start(1, 0, nil)
		_, first := b.capture(1)
		_, second := b.capture(2)
		stop := b.refuse(s3test.PutObject, path.Key+"/part")
		require.Error(t, b.sink.Commit(t.Context(), 1))
		stop()
		_, third := b.capture(3)
		for _, ref := range first {
			require.False(t, slices.Contains(third, ref) && !slices.Contains(second, ref), "%s is named by checkpoints 1 and 3 only", ref)
		}
		b.commit(2)
		b.commit(3)
		b.requireOneRecordEach(6)
	})
}

// The simulation itself: a dead life reaches the store no more.
func TestNetwork_ADeadLifeReachesTheStoreNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(newPlan(1), newStats())
		defer w.store.Close()
		l := w.newLife(1, w.plan.lives[0])
		fs, err := w.openFS(t.Context(), &network{w: w, life: l}, l.plan)
		require.NoError(t, err)
		failed := make(chan error, 1)
		go func() { failed <- fs.Put(t.Context(), path.Join("x"), strings.NewReader("x")) }()
		synctest.Wait()
		require.Len(t, w.waiting, 1)
		w.kill(l, byKill)
		require.Error(t, <-failed)
		require.Empty(t, w.waiting)
		require.Error(t, fs.Put(t.Context(), path.Join("y"), strings.NewReader("y")))
		time.Sleep(time.Hour)
		_, there := w.store.Object(bucket, path.Join("y").Key)
		require.False(t, there)
		require.NoError(t, fs.Close(t.Context()))
	})
}
