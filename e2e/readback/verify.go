package readback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/minio/crc64nvme"

	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/sink"
)

// Target is what Verify reads back.
type Target struct {
	Path   s3fs.Path       // the sink's path
	Job    string          // the job's name
	Source datagen.Options // what the rows have to be
}

// Verify reads back what a job has published, all its shards, and compares it with the commit records (missing, foreign,
// wrong size, wrong checksum) and with the generator (each row exactly once). A bounded source is expected whole; of an
// unbounded one, what the sink had taken at each shard's newest record. Memory does not depend on the number of rows.
//
// What is wrong with the data is in the report; the error says that the check could not be finished.
func Verify(ctx context.Context, files *s3fs.FS, t Target, o Options) (*Report, error) {
	if o.ListLimit == 0 {
		o.ListLimit = DefaultListLimit
	}
	start := time.Now()
	v := &verification{files: files, target: t, options: o, report: NewReport(t.Path.String(), t.Job), entries: map[string]sink.FileEntry{}}
	generator, err := t.Source.Generator()
	if err != nil {
		return nil, err
	}
	shards, err := v.readRecords(ctx)
	if err != nil {
		return nil, err
	}
	expected, err := v.expect(shards)
	if err != nil {
		return nil, err
	}
	present, err := v.compareListing(ctx)
	if err != nil {
		return nil, err
	}
	if v.report.RowFindings, err = CheckRows(ctx, generator, expected, present, v.open, o); err != nil {
		return nil, err
	}
	v.report.Conclude(time.Since(start))
	return v.report, nil
}

type verification struct {
	files   *s3fs.FS
	target  Target
	options Options
	entries map[string]sink.FileEntry // by key, of all records of the job
	others  []string                  // jobs that have records below the same path

	mu     sync.Mutex // guards report while files are read in parallel
	report *Report
}

// readRecords reads the commit records of all shards, notes their files, and returns each shard's newest record.
func (v *verification) readRecords(ctx context.Context) (map[datagen.Shard]sink.Record, error) {
	newest := map[datagen.Shard]sink.Record{}
	for entry, err := range sink.Records(ctx, v.files, v.target.Path) {
		switch {
		case errors.Is(err, sink.ErrRecord):
			if strings.HasPrefix(entry.Path.Key, sink.RecordPrefix(v.target.Path.Key, v.target.Job)) {
				v.report.Problem("%v", err)
			}
			continue
		case err != nil:
			return nil, err
		}
		if entry.Job != v.target.Job {
			if !slices.Contains(v.others, entry.Job) {
				v.others = append(v.others, entry.Job)
			}
			continue
		}
		r, err := entry.Read(ctx)
		switch {
		case damaged(err):
			v.report.Problem("%v", err)
			continue
		case err != nil:
			return nil, err
		}
		v.report.Records++
		v.addRecord(newest, entry, r)
	}
	return newest, nil
}

// damaged tells a record that is not what was written, or is gone since it was listed, from one that could not be read.
func damaged(err error) bool {
	return errors.Is(err, sink.ErrRecord) || errors.Is(err, s3fs.ErrNotFound) || errors.Is(err, s3fs.ErrChecksum)
}

// addRecord notes the files of one record and checks that it continues the shard's totals. Records come in the order of their
// checkpoints.
func (v *verification) addRecord(newest map[datagen.Shard]sink.Record, e sink.RecordEntry, r sink.Record) {
	if r.Job != e.Job || r.Shard != e.Shard.Dir() || r.Checkpoint != e.Checkpoint {
		v.report.Problem("record %s says that it is of job %s, shard %s, checkpoint %d", e.Path.Key, r.Job, r.Shard, r.Checkpoint)
		return
	}
	before := newest[e.Shard]
	var rows, size int64
	for _, f := range r.Files {
		if _, twice := v.entries[f.Key]; twice {
			v.report.Problem("file %s is in more than one record, the last one is %s", f.Key, e.Path.Key)
		}
		v.entries[f.Key] = f
		rows += f.Rows
		size += f.Bytes
	}
	skipped := before.TotalSkippedRows
	for _, f := range r.Skipped {
		v.report.SkippedFiles.Add(v.options.ListLimit, 1, FileProblem{File: f.Key})
		skipped += f.Rows
	}
	if r.TotalFiles != before.TotalFiles+int64(len(r.Files)) || r.TotalRows != before.TotalRows+rows ||
		r.TotalBytes != before.TotalBytes+size || r.TotalSkippedRows != skipped {
		v.report.Problem("totals of record %s do not continue those of the record before it: one is missing", e.Path.Key)
	}
	v.report.Listed += int64(len(r.Files))
	r.Files, r.Skipped = nil, nil // noted above; what is kept is small
	newest[e.Shard] = r
}

// expect works out which rows have to be there, and says how far each shard is.
func (v *verification) expect(newest map[datagen.Shard]sink.Record) (Expected, error) {
	count := 1
	for s := range newest {
		count = max(count, s.Count)
	}
	if len(newest) == 0 {
		v.report.Problem("nothing is committed: %s", v.noRecord())
	}
	total, bounded := v.target.Source.Rows()
	next := make([]int64, count)
	for i := range next {
		s := datagen.Shard{Index: i, Count: count}
		r, found := newest[s]
		next[i] = r.RowsAccepted
		if bounded {
			next[i] = s.Rows(total)
		}
		switch {
		case len(newest) == 0:
		case !found && (next[i] > 0 || !bounded):
			v.report.Problem("shard %s has no commit record", s)
		case r.TotalRows+r.TotalSkippedRows < next[i]:
			v.report.Problem("shard %s has published %d of %d rows: it is not finished", s, r.TotalRows, next[i])
		case r.TotalRows > next[i]:
			v.report.Problem("shard %s has published %d rows, but its source ends after %d", s, r.TotalRows, next[i])
		}
		v.report.Shards = append(v.report.Shards, ShardReport{
			Shard: s, Checkpoint: r.Checkpoint, Epoch: r.Epoch, Rows: r.TotalRows, Final: found && bounded && r.TotalRows+r.TotalSkippedRows == next[i],
		})
	}
	v.otherSplits(newest, count)
	return NewExpected(next)
}

// noRecord names what was looked for in vain, and what is there instead: a wrong name is the likeliest cause.
func (v *verification) noRecord() string {
	text := fmt.Sprintf("no commit record of job %s below %s", v.target.Job, v.target.Path.Join("_sluice/"))
	if len(v.others) > 0 {
		text += ", only of " + strings.Join(v.others, ", ")
	}
	return text
}

// otherSplits reports shards that do not belong to a split into count.
func (v *verification) otherSplits(newest map[datagen.Shard]sink.Record, count int) {
	var names []string
	for s := range newest {
		if s.Count != count {
			names = append(names, s.String())
		}
	}
	slices.Sort(names)
	for _, s := range names {
		v.report.Problem("there are records of shard %s beside those of a split into %d", s, count)
	}
}

// compareListing compares the recorded files with the objects below the path and returns the keys of those that are there.
func (v *verification) compareListing(ctx context.Context) (present []string, err error) {
	base := strings.TrimSuffix(v.target.Path.Key, "/")
	if base != "" {
		base += "/"
	}
	seen := make(map[string]bool, len(v.entries))
	for info, err := range v.files.List(ctx, s3fs.Path{Bucket: v.target.Path.Bucket, Key: base}) {
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", v.target.Path, err)
		}
		key := info.Path.Key
		entry, listed := v.entries[key]
		switch {
		case !listed && v.foreign(strings.TrimPrefix(key, base), info.Size):
			v.report.ForeignFiles.Add(v.options.ListLimit, 1, FileProblem{File: key})
		case listed:
			seen[key] = true
			present = append(present, key)
			if info.Size != entry.Bytes {
				v.report.WrongSizes.Add(v.options.ListLimit, 1, FileProblem{
					File: key, Want: fmt.Sprint(entry.Bytes), Got: fmt.Sprint(info.Size),
				})
			}
		}
	}
	for key := range v.entries {
		if !seen[key] {
			v.report.MissingFiles.Add(v.options.ListLimit, 1, FileProblem{File: key})
		}
	}
	return present, nil
}

// foreign says whether a reader of the path would take an object for data of this job although no record lists it. Names that begin
// with an underscore or a dot are skipped by readers, as are the empty objects that some tools make for folders; files of other
// jobs are those jobs' business.
func (v *verification) foreign(name string, size int64) bool {
	if size == 0 && (name == "" || strings.HasSuffix(name, "/")) {
		return false
	}
	for segment := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(segment, "_") || strings.HasPrefix(segment, ".") {
			return false
		}
	}
	for _, job := range v.others {
		if strings.HasPrefix(name, sink.FilePrefix(job)) {
			return false
		}
	}
	return true
}

// open opens a file; in the first pass its checksum is compared with the record's when it has been read to its end.
func (v *verification) open(ctx context.Context, pass int, key string) (io.ReadCloser, error) {
	body, err := v.files.Open(ctx, s3fs.Path{Bucket: v.target.Path.Bucket, Key: key})
	if err != nil {
		return nil, err
	}
	return &checkedBody{ReadCloser: body, v: v, entry: v.entries[key], reported: pass > 1}, nil
}

// checkedBody computes the CRC-64/NVME of what is read.
type checkedBody struct {
	io.ReadCloser
	v        *verification
	entry    sink.FileEntry
	crc      uint64
	reported bool
}

// Read implements io.Reader. That the bytes do not fit the checksum which the store keeps beside them is a finding like a checksum that
// does not fit the record, and not a reason to stop: all bytes have been handed out by then, and the rows tell what is wrong.
func (b *checkedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.crc = crc64nvme.Update(b.crc, p[:n])
	rotten := errors.Is(err, s3fs.ErrChecksum)
	if rotten {
		err = io.EOF
	}
	if err == io.EOF && !b.reported {
		b.reported = true
		b.report(rotten)
	}
	return n, err
}

// report notes a wrong checksum.
func (b *checkedBody) report(rotten bool) {
	got := multipart.CRC(b.crc).String()
	if got == b.entry.CRC64NVME {
		if !rotten {
			return
		}
		got = "another one at the store for the same bytes"
	}
	b.v.mu.Lock()
	defer b.v.mu.Unlock()
	b.v.report.WrongChecksums.Add(b.v.options.ListLimit, 1, FileProblem{File: b.entry.Key, Want: b.entry.CRC64NVME, Got: got})
}
