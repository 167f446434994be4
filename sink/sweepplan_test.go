package sink_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/sink"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// facts are those of a job whose newest run, of epoch 5, is live, and whose only checkpoint names two files.
func facts(keys ...string) sink.SweepFacts {
	f := sink.SweepFacts{
		Path: s3fs.Path{Bucket: "data", Key: "out"}, Job: "job-1", Shard: checkpoint.Shard{Index: 0, Count: 1},
		Now: noon, OlderThan: time.Hour, NewestEpoch: 5, Live: true,
		Retained: []sink.NamedUpload{
			{Key: "out/part_job-1_0-of-1_e3_w0_7.raw", UploadID: "named", By: "checkpoint 9"},
			{Key: "out/part_job-1_0-of-1_e3_w1_8.raw", By: "checkpoint 9"},
		},
	}
	for _, k := range keys {
		f.Uploads = append(f.Uploads, old(k, "u"))
	}
	return f
}

func old(key, id string) s3fs.Upload {
	return s3fs.Upload{Path: s3fs.Path{Bucket: "data", Key: key}, UploadID: id, Initiated: noon.Add(-2 * time.Hour)}
}

func TestPlanSweep_AbortsOnlyWhatIsProvenToBeLeftBehind(t *testing.T) {
	const left = "out/part_job-1_0-of-1_e4_w0_0.raw"
	for name, c := range map[string]struct {
		change func(f *sink.SweepFacts)
		upload s3fs.Upload
		want   sink.SweepReason
	}{
		"finished epoch":                      {nil, old(left, "u"), sink.Abandoned},
		"newest epoch, live":                  {nil, old("out/part_job-1_0-of-1_e5_w0_0.raw", "u"), sink.LiveEpoch},
		"newest epoch, nobody holds the lock": {func(f *sink.SweepFacts) { f.Live = false }, old("out/part_job-1_0-of-1_e5_w0_0.raw", "u"), sink.Abandoned},
		"epoch of another store":              {func(f *sink.SweepFacts) { f.Live = false }, old("out/part_job-1_0-of-1_e6_w0_0.raw", "u"), sink.UnknownEpoch},
		"named":                               {nil, old("out/part_job-1_0-of-1_e3_w0_7.raw", "named"), sink.Named},
		"named, dead run":                     {func(f *sink.SweepFacts) { f.Live = false }, old("out/part_job-1_0-of-1_e3_w0_7.raw", "named"), sink.Named},
		"file named with another upload":      {nil, old("out/part_job-1_0-of-1_e3_w0_7.raw", "u"), sink.FileNamed},
		"file named without upload":           {nil, old("out/part_job-1_0-of-1_e3_w1_8.raw", "u"), sink.FileNamed},
		"file named, and nobody writes it":    {func(f *sink.SweepFacts) { f.Live = false }, old("out/part_job-1_0-of-1_e3_w1_8.raw", "u"), sink.Abandoned},
		"young": {nil, s3fs.Upload{Path: s3fs.Path{Bucket: "data", Key: left}, UploadID: "u", Initiated: noon.Add(-time.Hour + time.Second)},
			sink.Young},
		"exactly as old as the guard": {nil, s3fs.Upload{Path: s3fs.Path{Bucket: "data", Key: left}, UploadID: "u", Initiated: noon.Add(-time.Hour)},
			sink.Abandoned},
		"from the future": {func(f *sink.SweepFacts) { f.OlderThan = 0 },
			s3fs.Upload{Path: s3fs.Path{Bucket: "data", Key: left}, UploadID: "u", Initiated: noon.Add(time.Second)}, sink.Young},
		"another bucket": {nil, s3fs.Upload{Path: s3fs.Path{Bucket: "other", Key: left}, UploadID: "u"}, sink.OtherName},
		"named by a copy": {func(f *sink.SweepFacts) {
			f.Savepoints = []sink.NamedUpload{{Key: left, UploadID: "u", By: "savepoint x"}}
		}, old(left, "u"), sink.Named},
		"file of a copy": {func(f *sink.SweepFacts) {
			f.Live, f.Savepoints = false, []sink.NamedUpload{{Key: left, By: "savepoint x"}}
		}, old(left, "u"), sink.FileNamed},
		"no checkpoints":  {func(f *sink.SweepFacts) { f.WithoutCheckpoints = true }, old("out/part_job-1_0-of-1_e3_w0_7.raw", "named"), sink.Unchecked},
		"no proof at all": {func(f *sink.SweepFacts) { f.WithoutCheckpoints = true }, old("out/part_job-1_0-of-1_e9_w0_0.raw", "u"), sink.Unchecked},
		"no proof, young": {func(f *sink.SweepFacts) { f.WithoutCheckpoints, f.OlderThan = true, 3*time.Hour }, old(left, "u"), sink.Young},
		"no proof, copied": {func(f *sink.SweepFacts) {
			f.WithoutCheckpoints, f.Savepoints = true, []sink.NamedUpload{{Key: left, UploadID: "u", By: "savepoint x"}}
		}, old(left, "u"), sink.Named},
	} {
		f := facts()
		if c.change != nil {
			c.change(&f)
		}
		f.Uploads = []s3fs.Upload{c.upload}
		got := sink.PlanSweep(f)
		require.Len(t, got, 1, name)
		assert.Equal(t, c.want, got[0].Reason, "%s: %s", name, got[0].Why())
		assert.Equal(t, c.want == sink.Abandoned || c.want == sink.Unchecked, got[0].Abort, name)
		assert.Equal(t, c.upload, got[0].Upload, name)
	}
}

func TestPlanSweep_O17_OnlyPartFilesOfThisJobAndShardCount(t *testing.T) {
	for _, key := range []string{
		"out/part_job-10_0-of-1_e1_w0_0.raw",    // a job whose name begins with this one's
		"out/part_job-1_0-of-10_e1_w0_0.raw",    // a shard whose name begins with this one's
		"out/part_job-1_1-of-2_e1_w0_0.raw",     // another shard
		"out/part_job_0-of-1_e1_w0_0.raw",       // another job
		"out/sub/part_job-1_0-of-1_e1_w0_0.raw", // the same job's name below another sink's path
		"part_job-1_0-of-1_e1_w0_0.raw",
		"out/part_job-1_0-of-1_e1_w0_0/x.raw", "out/part_job-1_0-of-1_e1_w0_.raw", "out/part_job-1_0-of-1_e01_w0_0.raw",
		"out/part_job-1_0-of-1_e-1_w0_0.raw", "out/part_job-1_0-of-1_e_w0_0.raw", "out/part_job-1_0-of-1_e1_w0_0x.raw",
		"out/part_job-1_0-of-1_e1_w0_+1.raw", "out/part_job-1_0-of-1_e99999999999999999999_w0_0.raw", "out/part_job-1_0-of-1_e1",
	} {
		d := sink.PlanSweep(facts(key))[0]
		assert.Equal(t, sink.OtherName, d.Reason, key)
		assert.False(t, d.Abort, key)
	}
	for _, key := range []string{"out/part_job-1_0-of-1_e1_w0_0", "out/part_job-1_0-of-1_e1_w12_345.json.gz"} {
		assert.Equal(t, sink.Abandoned, sink.PlanSweep(facts(key))[0].Reason, key)
	}
}

// Whatever the facts: what is named, live, unknown, young or somebody else's is never aborted; and the rest is.
func TestPlanSweep_KeepsItsPromisesForAllFacts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := facts()
		f.NewestEpoch = rapid.Int64Range(1, 4).Draw(t, "newest")
		f.Live = rapid.Bool().Draw(t, "live")
		f.OlderThan = time.Duration(rapid.IntRange(0, 3).Draw(t, "guard")) * time.Hour
		key := rapid.Custom(func(t *rapid.T) string {
			job := rapid.SampledFrom([]string{"job-1", "job-10"}).Draw(t, "job")
			return "out/" + sink.FileName(job, "0-of-1", rapid.Int64Range(1, 5).Draw(t, "epoch"), 0, rapid.Int64Range(0, 2).Draw(t, "counter"), ".raw")
		})
		id := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		named := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sink.NamedUpload {
			return sink.NamedUpload{Key: key.Draw(t, "key"), UploadID: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "id"), By: "x"}
		}), 0, 3)
		f.Retained, f.Savepoints = named.Draw(t, "retained"), named.Draw(t, "savepoints")
		for range rapid.IntRange(0, 6).Draw(t, "uploads") {
			u := old(key.Draw(t, "key"), id.Draw(t, "id"))
			u.Initiated = noon.Add(-time.Duration(rapid.IntRange(-1, 4).Draw(t, "age")) * time.Hour)
			f.Uploads = append(f.Uploads, u)
		}
		for _, d := range sink.PlanSweep(f) {
			var epoch, counter int64
			ours, _ := fmt.Sscanf(d.Upload.Path.Key, "out/part_job-1_0-of-1_e%d_w0_%d.raw", &epoch, &counter)
			protected := ours != 2 || epoch > f.NewestEpoch || epoch == f.NewestEpoch && f.Live || noon.Sub(d.Upload.Initiated) < f.OlderThan
			for _, n := range f.Retained {
				protected = protected || n.UploadID == d.Upload.UploadID || n.Key == d.Upload.Path.Key && f.Live
			}
			for _, n := range f.Savepoints {
				protected = protected || n.UploadID == d.Upload.UploadID || n.Key == d.Upload.Path.Key
			}
			if d.Abort == protected {
				t.Fatalf("%+v: abort %t, protected %t", d, d.Abort, protected)
			}
		}
	})
}
