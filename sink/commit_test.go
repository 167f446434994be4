package sink_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

func TestCommit_AFileIsTriedAgainWithinTheDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		o := options()
		o.CommitDeadline = 10 * time.Second
		r := w.start(o)
		w.store.Control(s3test.Match{Op: s3test.CompleteMultipartUpload, First: 3}, s3test.Always(s3test.DropEffect200()))
		r.rows(0, 1000, 1023)
		r.checkpoint()
		require.Zero(t, r.sink.Stats().PendingFiles)
		r.finish()
		w.requireRows(1000)
	})
}

func TestCommit_AfterTheDeadlineTheErrorNamesFileUploadAndVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		match   s3test.Match
		reply   *s3test.Reply
		verdict string
		is      error
		tries   int
	}{
		"missing": {s3test.Match{Op: s3test.CompleteMultipartUpload}, s3test.DropEffect200(), "missing", multipart.ErrMissing, 4},
		"unknown": {s3test.Match{Op: s3test.HeadObject}, s3test.Status(403, "AccessDenied"), "unknown", multipart.ErrUnknown, 4},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				o := options()
				o.Writers, o.CommitDeadline = 1, 3*time.Second
				r := w.start(o)
				remove := w.store.Control(c.match, s3test.Always(c.reply))
				r.rows(0, 257, 1023) // one full file and one row
				start := time.Now()
				_, err := r.coord.Trigger(t.Context())
				require.ErrorIs(t, err, c.is)
				failed, ok := errors.AsType[*sink.CommitError](err)
				require.True(t, ok)
				require.Equal(t, c.verdict, failed.Verdict())
				require.Equal(t, "out/part_main_0-of-1_e1_w0_0.raw", failed.Key)
				require.NotEmpty(t, failed.UploadID)
				require.ErrorContains(t, err, failed.Key)
				require.ErrorContains(t, err, failed.UploadID)
				require.EqualValues(t, 1, failed.Checkpoint)
				// Tries at 0, 0.25, 0.75 and 1.75 s; the next one, 2 s later, would be behind the deadline.
				require.Equal(t, c.tries, failed.Tries)
				require.Less(t, time.Since(start), 3*time.Second)
				require.Empty(t, w.records())
				remove()
				r.finish()
				w.requireRows(257)
			})
		})
	}
}

func TestCommit_AForeignObjectIsAFinalVerdictAndIsNotOverwritten(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		o := options()
		o.Writers, o.CommitDeadline = 1, time.Minute
		r := w.start(o)
		r.rows(0, 100, 1023)
		require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
		// Somebody puts an object of the same size under our key in the moment of the commit.
		foreign := make([]byte, 100<<10)
		w.store.Control(s3test.Match{Op: s3test.HeadObject}, func(q s3test.Request) *s3test.Reply {
			w.store.PutObject("data", q.Key, foreign, nil)
			return nil
		})
		start := time.Now()
		_, err := r.coord.Trigger(t.Context())
		failed, ok := errors.AsType[*sink.CommitError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, "foreign", failed.Verdict())
		require.Equal(t, 1, failed.Tries)
		require.Zero(t, time.Since(start))
		got, _ := w.store.Object("data", failed.Key)
		require.Equal(t, foreign, got.Data)
		require.Empty(t, w.records())
		r.crash()
	})
}

// The run that was replaced wrote its record after the new run had looked for one: same checkpoint, same files, same tokens.
func TestCommit_ARecordOfTheReplacedRunSettlesItsFiles(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(options())
		r.rows(0, 1000, 1023)
		r.checkpoint()
		key := sink.RecordKey("out", "main", "0-of-1", 1)
		old, found := w.store.Object("data", key)
		require.True(t, found)
		r.crash()
		require.True(t, w.store.DeleteObject("data", key))
		w.store.Control(s3test.Match{Op: s3test.PutObject, KeyPrefix: key, Nth: 1}, func(s3test.Request) *s3test.Reply {
			w.store.PutObject("data", key, old.Data, nil)
			return nil
		})
		r = w.start(options())
		synctest.Wait()
		require.Zero(t, r.sink.Stats().PendingFiles)
		r.rows(1000, 1100, 1023)
		r.finish()
		w.requireRows(1100)
	})
}

func TestCommit_ADeniedCallKeepsTheHintWhichPermissionItNeeds(t *testing.T) {
	for name, c := range map[string]struct {
		op   s3test.Op
		rows int
		want []string
	}{
		"put":      {s3test.PutObject, 1, []string{"put after 1 attempt: ", "s3:PutObject"}},
		"complete": {s3test.CompleteMultipartUpload, 200, []string{"complete after 1 attempt: ", "s3:PutObject"}},
		"head":     {s3test.HeadObject, 1, []string{"head after 1 attempt: ", "s3:GetObject"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				r := w.start(oneFile())
				r.rows(0, c.rows, 1023)
				require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
				w.store.Control(s3test.Match{Op: c.op}, s3test.Always(s3test.Status(403, "AccessDenied")))
				_, err := r.coord.Trigger(t.Context())
				for _, text := range c.want {
					require.ErrorContains(t, err, text)
				}
				r.crash()
			})
		})
	}
}
