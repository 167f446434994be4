package readback

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteJSON writes the report as one indented JSON object and a newline.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// WriteText writes the report for people: a table, the findings with their names, and the verdict
// as the last line.
func (r *Report) WriteText(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "read back %s, job %s\n", r.Location, r.Job)
	r.writeTable(&b)
	writeList(&b, "missing files", r.MissingFiles)
	writeList(&b, "files given up by the job", r.SkippedFiles)
	writeList(&b, "files that no record lists", r.ForeignFiles)
	writeList(&b, "files of the wrong size", r.WrongSizes)
	writeList(&b, "files with the wrong checksum", r.WrongChecksums)
	writeList(&b, "files gone while they were read back", r.Gone)
	writeList(&b, "missing rows", r.Missing)
	writeList(&b, "duplicate rows", r.Duplicates)
	writeList(&b, "corrupt rows", r.Corrupt)
	writeList(&b, "rows that are not committed", r.Unexpected)
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "problem: %s\n", p)
	}
	fmt.Fprintln(&b, r.Verdict())
	_, err := w.Write(b.Bytes())
	return err
}

func (r *Report) writeTable(b *bytes.Buffer) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(t, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	for _, s := range r.Shards {
		end := ""
		if s.Final {
			end = ", source at its end"
		}
		line("shard "+s.Shard.String(), "checkpoint %d, epoch %d, %d rows%s", s.Checkpoint, s.Epoch, s.Rows, end)
	}
	line("commit records", "%d", r.Records)
	line("files", "%d of %d", r.Files, r.Listed)
	line("rows", "%d of %d", r.Rows, r.Expected)
	line("characters", "%d", r.Characters)
	line("bytes", "%d", r.Bytes)
	line("read-back duration", "%.1f s", r.Seconds)
	line("read-back throughput", "%.1f MB/s", r.MBPerSecond)
	if q := r.Requests; q != nil {
		line("read-back S3 calls", "%d", q.Calls)
		line("read-back HTTP attempts", "%d", q.Attempts)
		line("read-back throttled responses", "%d", q.Throttled)
		if r.Seconds > 0 {
			line("read-back completed calls/s", "%.1f", float64(q.Calls)/r.Seconds)
		}
	}
	if r.Passes > 1 {
		line("passes over the files", "%d", r.Passes)
	}
	_ = t.Flush() // a bytes.Buffer takes everything
}

// writeList writes a heading with the exact number and the findings that are named.
func writeList[T interface {
	Ordered[T]
	fmt.Stringer
}](b *bytes.Buffer, title string, l List[T]) {
	if l.Total == 0 {
		return
	}
	fmt.Fprintf(b, "%s: %d\n", title, l.Total)
	for _, v := range l.First {
		// Names of objects and bytes of rows are not ours: one finding stays one line.
		fmt.Fprintf(b, "  %s\n", strings.NewReplacer("\n", `\n`, "\r", `\r`, "\x1b", `\x1b`).Replace(v.String()))
	}
	if more := l.Total - int64(len(l.First)); more > 0 {
		fmt.Fprintf(b, "  ...\n")
	}
}
