package job_test

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/e2e/job"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

func (w *world) verifyCheckpoint(id checkpoint.ID, extra map[string]string) job.CheckpointVerdict {
	w.t.Helper()
	v, err := job.VerifyCheckpoint(w.t.Context(), w.config(extra), id, slog.New(slog.DiscardHandler), s3fs.WithDialContext(w.store.DialContext))
	require.NoError(w.t, err)
	return v
}

// stopAfter runs the job and tells it to stop: the final checkpoint is durable.
func (w *world) stopAfter(d time.Duration, extra map[string]string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), d)
	defer cancel()
	_, err := w.run(ctx, extra)
	require.Equal(w.t, job.ErrStopped, err)
}

// files returns the files of the checkpoint directory whose names match.
func (w *world) files(pattern string) []string {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.keys["checkpoint.dir"], "job", "0-of-1", pattern))
	require.NoError(w.t, err)
	require.NotEmpty(w.t, found)
	slices.Sort(found)
	return found
}

// openFiles keeps every file open: after 4 seconds each of two writers has a part in the store and a tail in the checkpoint.
func openFiles() map[string]string {
	extra := maps.Clone(large)
	extra["sink.rolling-policy.file-size"], extra["sink.writers"] = "1 gb", "2"
	extra["datagen.rows-per-second"] = "50"
	return extra
}

func TestVerifyCheckpoint_SaysWhatARestoreDoesAndWritesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		extra := openFiles()
		w.stopAfter(4300*time.Millisecond, extra)
		require.Len(t, w.store.Uploads("data"), 2)
		w.store.ResetTrace()
		v := w.verifyCheckpoint(0, extra)
		require.True(t, v.Good, "%+v", v)
		require.True(t, v.Newest)
		require.Equal(t, map[job.FileOutcome]int{job.FileResumable: 2}, v.Outcomes)
		require.GreaterOrEqual(t, v.Blobs, 2, "a tail for each file")
		require.Equal(t, v.BlobBytes, v.BlobsRead)
		require.Equal(t, v.Rows, v.StagedRows, "nothing is published")
		for _, op := range []s3test.Op{s3test.CreateMultipartUpload, s3test.UploadPart, s3test.CompleteMultipartUpload, s3test.PutObject, s3test.AbortMultipartUpload} {
			require.NotContains(t, w.store.Trace(), string(op))
		}
		require.Contains(t, w.store.Trace(), string(s3test.ListParts))
		var b strings.Builder
		require.NoError(t, v.WriteText(&b))
		require.Contains(t, b.String(), "2 files are continued, 0 published, 0 recorded as published, 0 settled already\nGOOD: checkpoint ")
	})
}

func TestVerifyCheckpoint_NamesWhatIsLost(t *testing.T) {
	flip := func(t *testing.T, file string) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		text[len(text)/2] ^= 1
		require.NoError(t, os.WriteFile(file, text, 0o600))
	}
	cases := []struct {
		name    string
		harm    func(t *testing.T, w *world)
		outcome job.FileOutcome
		want    string
	}{
		{"a bit of a blob flipped", func(t *testing.T, w *world) { flip(t, w.files("blobs/*.blob")[0]) }, job.FileDamaged, "does not match its checksum"},
		{"a blob file is cut", func(t *testing.T, w *world) { require.NoError(t, os.Truncate(w.files("blobs/*.blob")[0], 1000)) }, job.FileDamaged, "1000 bytes"},
		{"a blob file is gone", func(t *testing.T, w *world) { require.NoError(t, os.Remove(w.files("blobs/*.blob")[0])) }, job.FileDamaged, "is damaged"},
		{"a bit of the manifest", func(t *testing.T, w *world) { flip(t, w.files("chk-*.json")[0]) }, "", "does not match its checksum"},
		{"the manifest is empty", func(t *testing.T, w *world) { require.NoError(t, os.Truncate(w.files("chk-*.json")[0], 0)) }, "", "not a checkpoint manifest"},
		{"the store refuses to tell", func(_ *testing.T, w *world) {
			w.store.Control(s3test.Match{Op: s3test.ListParts, Nth: 1}, s3test.Always(s3test.Status(403, "AccessDenied")))
		}, job.FileUnknown, "s3:ListMultipartUploadParts"},
		{"an upload has expired", func(_ *testing.T, w *world) { w.store.DropUpload("upload-1") }, job.FileLost, "NoSuchUpload"},
	}
	bubble(t, func(t *testing.T, w *world) {
		extra := openFiles()
		w.stopAfter(4300*time.Millisecond, extra)
		whole := w.keys["checkpoint.dir"]
		for _, c := range cases {
			w.keys["checkpoint.dir"] = t.TempDir()
			require.NoError(t, os.CopyFS(w.keys["checkpoint.dir"], os.DirFS(whole)))
			before := w.verifyCheckpoint(0, extra)
			require.True(t, before.Good, c.name)
			c.harm(t, w)
			v := w.verifyCheckpoint(0, extra)
			require.False(t, v.Good, c.name)
			var b strings.Builder
			require.NoError(t, v.WriteText(&b))
			require.Contains(t, b.String(), c.want)
			require.Contains(t, b.String(), "\nNOT GOOD: checkpoint ")
			switch {
			case c.outcome == "":
				require.Len(t, v.Problems, 1, c.name)
			case c.outcome == job.FileUnknown:
				require.Equal(t, 1, v.Outcomes[c.outcome], c.name)
				require.Zero(t, v.LostFiles)
			default:
				// One upload, but both tails in one blob file.
				require.Positive(t, v.Outcomes[c.outcome], c.name)
				var rows int64
				for _, f := range v.Files {
					if f.Outcome == c.outcome {
						rows += f.Rows
					}
				}
				require.Equal(t, rows, v.LostRows, c.name)
				require.LessOrEqual(t, v.LostRows, before.Rows)
			}
		}
	})
}

// The store does not let anything be completed, so a checkpoint with pending files is what remains.
func TestVerifyCheckpoint_PendingFilesAreProvenLikeARestoreProvesThem(t *testing.T) {
	for name, c := range map[string]struct {
		effect bool // Complete has worked, and nobody could know
		harm   func(w *world, key string)
		want   job.FileOutcome
	}{
		"nothing has happened":    {false, func(*world, string) {}, job.FileReady},
		"published, and no proof": {true, func(*world, string) {}, job.FilePublished},
		"somebody else's object":  {false, func(w *world, key string) { w.store.PutObject("data", key, []byte("x"), nil) }, job.FileForeign},
		"published and removed":   {true, func(w *world, key string) { w.store.DeleteObject("data", key) }, job.FileLost},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				extra := maps.Clone(large)
				extra["sink.commit.deadline"], extra["sink.writers"] = "1 s", "1"
				extra["datagen.number-of-rows"], extra["sink.rolling-policy.file-size"] = "150", "6 mb"
				answer := s3test.Status(403, "AccessDenied")
				if c.effect {
					answer = answer.WithEffect()
				}
				removeComplete := w.store.Control(s3test.Match{Op: s3test.CompleteMultipartUpload}, s3test.Always(answer))
				removeHead := w.store.Control(s3test.Match{Op: s3test.HeadObject}, s3test.Always(s3test.Status(403, "")))
				_, err := w.run(t.Context(), extra)
				require.ErrorIs(t, err, s3fs.ErrAccessDenied)
				removeComplete()
				removeHead()
				v := w.verifyCheckpoint(0, extra)
				require.Positive(t, v.Pending)
				require.True(t, v.Good, "%+v", v)
				sealed := slices.IndexFunc(v.Files, func(f job.FileVerdict) bool { return f.Sealed })
				c.harm(w, v.Files[sealed].Key)
				v = w.verifyCheckpoint(0, extra)
				require.Equal(t, c.want, v.Files[sealed].Outcome, v.Files[sealed].Detail)
				require.Equal(t, c.want == job.FileReady || c.want == job.FilePublished, v.Good)
				if v.Good {
					_, err = w.run(t.Context(), extra)
					require.NoError(t, err)
					w.requireProven(150, extra)
				}
			})
		})
	}
}

func TestVerifyCheckpoint_AFileThatARecordListsIsSettledEvenWhenAConsumerMovedIt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_, err := w.run(t.Context(), nil)
		require.NoError(t, err)
		for _, key := range w.store.Keys("data") {
			if strings.Contains(key, "part_") {
				w.store.DeleteObject("data", key)
			}
		}
		v := w.verifyCheckpoint(0, nil)
		require.True(t, v.Good)
		require.Equal(t, map[job.FileOutcome]int{job.FileRecorded: 3}, v.Outcomes)
	})
}

// The commit of a checkpoint ends after the next one was taken, so a later checkpoint still names what an earlier record lists.
func TestVerifyCheckpoint_AFileInTheRecordOfAnUncommittedCheckpointIsSettled(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		extra := maps.Clone(large)
		extra["sink.commit.deadline"], extra["sink.writers"], extra["checkpoint.interval"] = "1 s", "1", "1 s"
		extra["datagen.number-of-rows"], extra["sink.rolling-policy.file-size"] = "400", "6 mb"
		extra["checkpoint.num-retained"] = "100"
		w.store.Control(s3test.Match{Op: s3test.CompleteMultipartUpload}, func(r s3test.Request) *s3test.Reply {
			if r.N == 1 {
				return s3test.Delay(5 * time.Second)
			}
			return s3test.Status(403, "AccessDenied")
		})
		_, err := w.run(t.Context(), extra)
		require.ErrorIs(t, err, s3fs.ErrAccessDenied)
		published := slices.DeleteFunc(w.store.Keys("data"), func(key string) bool { return !strings.Contains(key, "part_") })
		require.Len(t, published, 1)
		w.store.DeleteObject("data", published[0]) // a consumer has taken it

		list, err := job.ListCheckpoints(t.Context(), w.config(extra))
		require.NoError(t, err)
		looks := 0
		for _, c := range list {
			d, err := job.ShowCheckpoint(t.Context(), w.config(extra), c.ID)
			require.NoError(t, err)
			if len(d.Uncommitted) == 0 || !slices.ContainsFunc(d.Files, func(f job.FileDetails) bool { return f.Key == published[0] }) {
				continue
			}
			v := w.verifyCheckpoint(c.ID, extra)
			require.True(t, v.Good, "%+v", v)
			require.Equal(t, 1, v.Outcomes[job.FileRecorded])
			looks++
		}
		require.Positive(t, looks)
	})
}

func TestVerifyCheckpoint_GoingBackBehindARecordIsNotGood(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		extra := map[string]string{"checkpoint.num-retained": "3"}
		_, err := w.run(t.Context(), extra)
		require.NoError(t, err)
		list, err := job.ListCheckpoints(t.Context(), w.config(extra))
		require.NoError(t, err)
		require.Len(t, list, 3)
		require.True(t, w.verifyCheckpoint(list[2].ID, extra).Good)
		v := w.verifyCheckpoint(list[0].ID, extra)
		require.False(t, v.Good)
		require.False(t, v.Newest)
		require.Contains(t, v.Problems[0], "a newer commit record exists")
		require.Zero(t, v.LostRows, "its files were published since")

		_, err = job.VerifyCheckpoint(t.Context(), w.config(extra), 999, slog.New(slog.DiscardHandler), s3fs.WithDialContext(w.store.DialContext))
		require.ErrorIs(t, err, checkpoint.ErrNoCheckpoint)
	})
}

func TestVerifyCheckpoint_OpenFilesThatWerePublishedSinceAreNotCalledLost(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		extra := maps.Clone(large)
		extra["checkpoint.num-retained"] = "100"
		_, err := w.run(t.Context(), extra)
		require.NoError(t, err)
		v := w.verifyCheckpoint(4, extra)
		require.False(t, v.Good)
		require.Equal(t, 3, v.Outcomes[job.FileMovedOn])
		require.Zero(t, v.LostRows)
	})
}

func TestVerifyCheckpoint_OfAnotherPathSaysThatARestoreIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.stopAfter(3*time.Second, nil)
		v := w.verifyCheckpoint(0, map[string]string{"sink.path": "s3://data/elsewhere"})
		require.False(t, v.Good)
		require.Contains(t, v.Problems[0], "path s3://data/out; the configuration says")
	})
}

func TestVerifyCheckpoint_BesideALiveRunTheNewestIsAlwaysGood(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		extra := maps.Clone(large)
		extra["checkpoint.interval"] = "1 s"
		// Looking takes time, so that checkpoints come and go and files are published meanwhile.
		w.store.Control(s3test.Match{Op: s3test.ListParts}, s3test.Always(s3test.Delay(400*time.Millisecond)))
		done := make(chan error)
		go func() {
			_, err := w.run(t.Context(), extra)
			done <- err
		}()
		tick := time.NewTicker(900 * time.Millisecond)
		defer tick.Stop()
		looks := 0
		for {
			select {
			case err := <-done:
				require.NoError(t, err)
				require.Greater(t, looks, 3)
				w.requireProven(420, extra)
				return
			case <-tick.C:
				if list, err := job.ListCheckpoints(t.Context(), w.config(extra)); err != nil || len(list) == 0 {
					require.NoError(t, err)
					continue
				}
				v := w.verifyCheckpoint(0, extra)
				require.True(t, v.Good, "%+v", v)
				looks++
			}
		}
	})
}

func TestShowCheckpoint_TellsEveryFileWithItsUploadPartsAndBytes(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		extra := openFiles()
		w.stopAfter(4300*time.Millisecond, extra)
		time.Sleep(4 * 24 * time.Hour)
		d, err := job.ShowCheckpoint(t.Context(), w.config(extra), 0)
		require.NoError(t, err)
		require.Empty(t, d.Warnings())
		require.Len(t, d.Files, 2)
		uploads := w.store.Uploads("data")
		var rows int64
		for _, f := range d.Files {
			at := slices.IndexFunc(uploads, func(u s3test.Upload) bool { return u.Key == f.Key })
			require.Equal(t, uploads[at].ID, f.UploadID)
			require.Len(t, f.Parts, len(uploads[at].Parts))
			require.Equal(t, uploads[at].Parts[0].ETag, f.Parts[0].ETag)
			require.Equal(t, int64(len(uploads[at].Parts[0].Data)), f.Parts[0].Bytes)
			var size int64
			for _, p := range slices.Concat(f.Parts, f.Pieces) {
				size += p.Bytes
			}
			require.Equal(t, f.Offset, size)
			require.Equal(t, f.Rows<<16, f.Offset, "rows of 64 KiB")
			require.False(t, f.Sealed)
			rows += f.Rows
		}
		require.Equal(t, rows, d.Rows)
		require.Equal(t, "5 mb", d.Config["s3.upload.min.part.size"])

		var b strings.Builder
		require.NoError(t, d.WriteText(&b))
		for _, text := range []string{
			"of job job, shard 0-of-1, epoch 1, taken 2000-01-0", "path s3://data/out", "state of source: {", "2 open and 0 pending files",
			"parts in the store: 1 of 5242880 bytes", "bytes in the checkpoint: 2 of ", "  s3.secret-key: ******",
		} {
			require.Contains(t, b.String(), text)
		}
		require.NotContains(t, b.String(), "warning")

		time.Sleep(25 * time.Hour)
		d, err = job.ShowCheckpoint(t.Context(), w.config(extra), d.ID)
		require.NoError(t, err)
		require.Len(t, d.Warnings(), 2)
		require.Contains(t, d.Warnings()[0], "older than 5 d")
		require.Len(t, w.verifyCheckpoint(0, extra).Warnings, 2)
	})
}

func TestListCheckpoints_ShowsDamagedOnesToo(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		extra := map[string]string{"checkpoint.num-retained": "3"}
		list, err := job.ListCheckpoints(t.Context(), w.config(extra))
		require.NoError(t, err)
		require.Empty(t, list)
		_, err = job.ShowCheckpoint(t.Context(), w.config(extra), 0)
		require.ErrorIs(t, err, checkpoint.ErrNoCheckpoint)

		w.stopAfter(17*time.Second, extra)
		list, err = job.ListCheckpoints(t.Context(), w.config(extra))
		require.NoError(t, err)
		require.Len(t, list, 3)
		for i, c := range list {
			require.Equal(t, []int{3, 0}, []int{c.Open, c.Pending})
			require.Equal(t, c.Rows*100, c.BlobBytes, "rows of 100 bytes, all in tails")
			if i > 0 {
				require.Equal(t, list[i-1].ID+1, c.ID)
				require.Greater(t, c.Rows, list[i-1].Rows)
			}
		}
		require.InDelta(t, 1700, list[2].Rows, 5)

		require.NoError(t, os.Truncate(w.files("chk-*.json")[1], 77))
		list, err = job.ListCheckpoints(t.Context(), w.config(extra))
		require.ErrorContains(t, err, "is damaged")
		require.Len(t, list, 3)
		require.NotEmpty(t, list[1].Problem)
		var b strings.Builder
		require.NoError(t, job.WriteCheckpoints(&b, list))
		require.Equal(t, 4, strings.Count(b.String(), "\n"))
		require.Contains(t, b.String(), "unreadable")
	})
}
