package job

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-go/sluice/sink"
)

// seconds writes an age for people.
func seconds(age float64) string {
	return time.Duration(age * float64(time.Second)).Round(time.Second).String()
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// WriteCheckpoints writes a list of checkpoints, a line each.
func WriteCheckpoints(w io.Writer, list []CheckpointInfo) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no checkpoints")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tEPOCH\tTIME\tAGE\tBYTES\tOPEN\tPENDING\tROWS\tSTAGED")
	for _, c := range list {
		if c.unreadable() {
			fmt.Fprintf(t, "%d\tunreadable\n", c.ID) // why is in the error
			continue
		}
		fmt.Fprintf(t, "%d\t%d\t%s\t%s\t%d\t%d\t%d\t%d\t%d\n", c.ID, c.Epoch, stamp(c.CreatedAt), seconds(c.Age),
			c.ManifestBytes+c.BlobBytes, c.Open, c.Pending, c.Rows, c.StagedRows)
	}
	return t.Flush()
}

// WriteText writes everything the checkpoint says.
func (d CheckpointDetails) WriteText(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "checkpoint %d of job %s, shard %s, epoch %d, taken %s (%s ago)\n", d.ID, d.Job, d.Shard, d.Epoch, stamp(d.CreatedAt), seconds(d.Age))
	fmt.Fprintf(&b, "path %s\n", d.Location)
	fmt.Fprintf(&b, "rows: %d accepted, %d in the files below, %d published before in %d files (%d bytes), %d given up\n",
		d.Rows, d.StagedRows, d.Published.Rows, d.Published.Files, d.Published.Bytes, d.Published.SkippedRows+entryRows(d.Skipped))
	fmt.Fprintf(&b, "size: manifest %d bytes, file bytes in blobs %d\n", d.ManifestBytes, d.BlobBytes)
	for _, o := range d.Others {
		fmt.Fprintf(&b, "state of %s: %s\n", o.Name, printable(o.State))
	}
	for _, f := range d.Skipped {
		fmt.Fprintf(&b, "given up: %s, %d rows, %d bytes\n", f.Key, f.Rows, f.Bytes)
	}
	if d.BackTo > 0 {
		fmt.Fprintf(&b, "the job has gone back to checkpoint %d: those in between are left behind\n", d.BackTo)
	}
	if len(d.Uncommitted) > 0 {
		fmt.Fprintf(&b, "commits that had not ended: of checkpoints %v; their records may list some of the files\n", d.Uncommitted)
	}
	fmt.Fprintf(&b, "%d open and %d pending files\n", d.Open, d.Pending)
	for _, f := range d.Files {
		f.writeText(&b)
	}
	fmt.Fprintln(&b, "configuration:")
	for _, key := range slices.Sorted(maps.Keys(d.Config)) {
		fmt.Fprintf(&b, "  %s: %s\n", key, d.Config[key])
	}
	_, err := w.Write(b.Bytes())
	return err
}

func entryRows(entries []sink.FileEntry) (n int64) {
	for _, e := range entries {
		n += e.Rows
	}
	return n
}

func (f FileDetails) writeText(b *bytes.Buffer) {
	state := "open"
	if f.Sealed {
		state = fmt.Sprintf("sealed, staged by checkpoint %d", f.Staged)
	}
	upload := f.UploadID
	if upload == "" {
		upload = "none yet"
	}
	fmt.Fprintf(b, "  %s\n", f.Key)
	fmt.Fprintf(b, "    %s; %d rows, %d bytes, crc64nvme %s; begun in epoch %d\n", state, f.Rows, f.Offset, f.CRC64NVME, f.Epoch)
	fmt.Fprintf(b, "    upload: %s; created %s (%s ago); part size %d\n", upload, stamp(f.CreatedAt), seconds(f.Age), f.PartSize)
	fmt.Fprintf(b, "    parts in the store: %s\n", runs(f.Parts))
	fmt.Fprintf(b, "    bytes in the checkpoint: %s\n", runs(f.Pieces))
	if f.Warning != "" {
		fmt.Fprintf(b, "    warning: %s\n", f.Warning)
	}
}

// runs writes parts or pieces as their numbers and bytes, consecutive ones of one size together.
func runs(parts []PartDetails) string {
	if len(parts) == 0 {
		return "none"
	}
	var out []string
	for i := 0; i < len(parts); {
		j := i + 1
		for j < len(parts) && parts[j].Bytes == parts[i].Bytes && parts[j].Number == parts[j-1].Number+1 {
			j++
		}
		if j-i > 1 {
			out = append(out, fmt.Sprintf("%d-%d of %d bytes each", parts[i].Number, parts[j-1].Number, parts[i].Bytes))
		} else {
			out = append(out, fmt.Sprintf("%d of %d bytes", parts[i].Number, parts[i].Bytes))
		}
		i = j
	}
	return strings.Join(out, ", ")
}

// printable is a participant's state on one line.
func printable(state string) string {
	state = strings.TrimSpace(state)
	if !utf8.ValidString(state) || strings.ContainsFunc(state, unicode.IsControl) {
		return fmt.Sprintf("%q", state)
	}
	return state
}

// WriteText writes what was found; the last line is the verdict.
func (v CheckpointVerdict) WriteText(w io.Writer) error {
	var b bytes.Buffer
	which := "an older one"
	if v.Newest {
		which = "the newest"
	}
	fmt.Fprintf(&b, "checkpoint %d, %s, ", v.ID, which)
	if v.unreadable() {
		fmt.Fprintln(&b, "unreadable")
	} else {
		v.writeContent(&b)
	}
	for _, p := range v.Problems {
		fmt.Fprintf(&b, "problem: %s\n", p)
	}
	for _, p := range v.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", p)
	}
	if v.Good {
		fmt.Fprintf(&b, "a restore goes on after %d rows: %d files are continued, %d published, %d recorded as published, %d settled already\n",
			v.Rows, v.Outcomes[FileResumable], v.Outcomes[FileReady], v.Outcomes[FilePublished], v.Outcomes[FileRecorded])
	} else if n := v.Outcomes[FileLost]; n > 0 {
		fmt.Fprintf(&b, "a restore gives %d files up when %s is %s, and fails otherwise\n", n, sink.KeyExpiredUpload.Name(), sink.ExpiredSkip)
	}
	fmt.Fprintln(&b, v.Verdict())
	_, err := w.Write(b.Bytes())
	return err
}

// writeContent writes what is known of a checkpoint that could be read.
func (v CheckpointVerdict) writeContent(b *bytes.Buffer) {
	fmt.Fprintf(b, "epoch %d, taken %s (%s ago)\n", v.Epoch, stamp(v.CreatedAt), seconds(v.Age))
	fmt.Fprintf(b, "blobs: %d read, %d bytes, %d damaged\n", v.Blobs, v.BlobsRead, len(v.DamagedBlobs))
	for _, d := range v.DamagedBlobs {
		fmt.Fprintf(b, "  damaged: %s\n", d)
	}
	fmt.Fprintf(b, "files: %d open, %d pending\n", v.Open, v.Pending)
	for _, f := range v.Files {
		fmt.Fprintf(b, "  %s: %s, %d rows, %d bytes\n", f.Outcome, f.Key, f.Rows, f.Bytes)
		if f.Detail != "" {
			fmt.Fprintf(b, "    %s\n", f.Detail)
		}
	}
}

// Verdict is the conclusion in one line.
func (v CheckpointVerdict) Verdict() string {
	switch {
	case v.Good:
		return fmt.Sprintf("GOOD: checkpoint %d can be restored, nothing is lost", v.ID)
	case v.LostFiles > 0:
		return fmt.Sprintf("NOT GOOD: checkpoint %d has lost up to %d rows (%d bytes) in %d files", v.ID, v.LostRows, v.LostBytes, v.LostFiles)
	}
	return fmt.Sprintf("NOT GOOD: checkpoint %d cannot be restored as it is", v.ID)
}
