package s3fs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

// TestUpload_Transcripts shows every S3 call of a recoverable upload through the real adapter, in order. Each command prints its
// result and, below it, the calls it caused; it waits until nothing moves any more. Parts of a file go out one at a time, so that the
// order is fixed. Regenerate with: go test ./s3fs -run Transcripts -rewrite
//
//	open key=k [part=65536] [epoch=1]      start an upload; nothing is sent
//	write n [now]                          n bytes; now: the next command does not wait
//	persist h                              capture and store, as handle h; blobs are listed
//	crash                                  forget the upload as a killed process does
//	resume h                               continue from handle h
//	seal | spill | commit
//	fault op=UploadPart reply=slowdown [nth=1] [first=1] [code=X]
//	clear                                  remove the faults
//	objects | uploads                      what the store holds
//	drop upload-1                          the store forgets an upload
//	plant key=k [token=x] [size=n]         somebody else writes an object
func TestUpload_Transcripts(t *testing.T) {
	datadriven.Walk(t, "testdata/upload", func(t *testing.T, file string) {
		o := options{server: s3test.Options{MinPartSize: 1}}
		o.settings = func(s *s3fs.Settings) { s.Checksums = !strings.Contains(file, "checksums_off") }
		o.server.Quirks.IgnoreChecksums = strings.Contains(file, "checksums_off")
		o.server.Quirks.CompleteRepeat404 = strings.Contains(file, "repeat_404")
		bubble(t, o, func(t *testing.T, s store) {
			d := &driver{t: t, s: s, handles: map[string]multipart.Handle{}, ids: map[string]string{}, blobs: &blobs{data: map[string][]byte{}}}
			datadriven.RunTest(t, file, d.run)
			d.crash()
		})
	})
}

// driver runs the commands of a transcript.
type driver struct {
	t       *testing.T
	s       store
	up      *multipart.Upload
	handles map[string]multipart.Handle
	blobs   *blobs
	written int64
	remove  []func()
	ids     map[string]string // upload ids to their names
}

func (d *driver) run(_ *testing.T, cmd *datadriven.TestData) string {
	d.s.srv.ResetTrace()
	result := d.do(cmd)
	if cmd.HasArg("now") {
		synctest.Wait() // as far as it goes without time passing
	} else {
		time.Sleep(9 * time.Second) // virtual; the waits of three retries are 7 s at most
	}
	for _, u := range d.s.srv.Uploads("b") {
		d.ids[u.ID] = u.Name
	}
	for id, name := range d.ids {
		result = strings.ReplaceAll(result, id, name) // ids are random
	}
	trace := d.s.srv.Trace()
	switch {
	case result == "":
		result = "ok\n"
	case !strings.HasSuffix(result, "\n"):
		result += "\n"
	}
	return result + indent(trace)
}

func indent(trace string) string {
	if trace == "" {
		return ""
	}
	return "  " + strings.Join(lines(trace), "\n  ") + "\n"
}

func (d *driver) do(cmd *datadriven.TestData) string {
	ctx := d.s.ctx
	name := ""
	if len(cmd.CmdArgs) > 0 {
		name = cmd.CmdArgs[0].Key
	}
	switch cmd.Cmd {
	case "open":
		return d.open(cmd)
	case "write":
		n, err := strconv.ParseInt(name, 10, 64)
		require.NoError(d.t, err)
		_, err = d.up.Write(ctx, stream(d.written, n))
		if err == nil {
			d.written += n
		}
		return said(err)
	case "persist":
		return d.persist(ctx, name)
	case "crash":
		d.crash()
	case "resume":
		up, err := multipart.Resume(ctx, d.s.API(), d.handles[name], d.blobs, d.options(1<<16, 2))
		if err != nil {
			return said(err)
		}
		d.up, d.written = up, up.Offset()
		return fmt.Sprintf("offset %d", up.Offset())
	case "seal":
		return said(d.up.Seal())
	case "spill":
		return said(d.up.Spill())
	case "commit":
		o, err := d.up.Commit(ctx)
		if err != nil {
			return said(err)
		}
		sum := "no checksum"
		if o.HasCRC {
			sum = o.CRC.String()
		}
		return fmt.Sprintf("proven: %d bytes, token %q, %s", o.Size, o.Token, sum)
	case "clear":
		for _, r := range d.remove {
			r()
		}
		d.remove = nil
	default:
		return d.arrange(cmd, name)
	}
	return ""
}

// arrange runs the commands about the store.
func (d *driver) arrange(cmd *datadriven.TestData, name string) string {
	var b strings.Builder
	switch cmd.Cmd {
	case "fault":
		d.fault(cmd)
	case "objects":
		for _, o := range d.s.srv.Objects("b") {
			state := "as written"
			if !bytes.Equal(o.Data, stream(0, int64(len(o.Data)))) {
				state = "other content"
			}
			fmt.Fprintf(&b, "%s: %d bytes, %s, parts %v\n", o.Key, len(o.Data), state, o.PartSizes)
		}
		return orNone(b.String())
	case "uploads":
		for _, u := range d.s.srv.Uploads("b") {
			fmt.Fprintf(&b, "%s for %s: %d parts\n", u.Name, u.Key, len(u.Parts))
		}
		return orNone(b.String())
	case "drop":
		require.True(d.t, d.s.srv.DropUpload(name))
	case "plant":
		var key, token string
		var size int64
		cmd.ScanArgs(d.t, "key", &key)
		cmd.MaybeScanArgs(d.t, "token", &token)
		cmd.MaybeScanArgs(d.t, "size", &size)
		meta := map[string]string{}
		if token != "" {
			meta[s3fs.TokenMetadata] = token
		}
		d.s.srv.PutObject("b", key, make([]byte, size), meta)
	default:
		d.t.Fatalf("unknown command %q", cmd.Cmd)
	}
	return ""
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func (d *driver) open(cmd *datadriven.TestData) string {
	var key string
	part, epoch := int64(1<<16), int64(1)
	cmd.ScanArgs(d.t, "key", &key)
	cmd.MaybeScanArgs(d.t, "part", &part)
	cmd.MaybeScanArgs(d.t, "epoch", &epoch)
	up, err := multipart.Start(d.s.API(), multipart.Target{Bucket: "b", Key: key}, "token-of-"+key, d.options(part, epoch))
	if err != nil {
		return said(err)
	}
	d.up, d.written = up, 0
	return ""
}

func (d *driver) options(part, epoch int64) multipart.Options {
	return multipart.Options{
		PartSize: part, Concurrency: 1, Budget: multipart.NewBudget(16 << 20), PersistWait: 10 * time.Millisecond, Epoch: epoch,
	}
}

func (d *driver) persist(ctx context.Context, name string) string {
	h, err := d.up.Capture().Store(ctx, d.blobs)
	if err != nil {
		return said(err)
	}
	text, err := h.MarshalBinary() // through its bytes, as a checkpoint does
	require.NoError(d.t, err)
	var back multipart.Handle
	require.NoError(d.t, back.UnmarshalBinary(text))
	d.handles[name] = back
	out := fmt.Sprintf("offset %d, %d parts in the store", back.Offset, len(back.Parts))
	for _, p := range back.Pieces {
		out += fmt.Sprintf(", part %d as a blob of %d bytes", p.Number, p.Size)
	}
	if back.Sealed {
		out += ", sealed"
	}
	return out
}

func (d *driver) crash() {
	if d.up != nil {
		d.up.Abandon()
		d.up = nil
	}
}

func (d *driver) fault(cmd *datadriven.TestData) {
	var op, reply string
	code := "InternalError"
	var nth, first int
	cmd.ScanArgs(d.t, "op", &op)
	cmd.ScanArgs(d.t, "reply", &reply)
	cmd.MaybeScanArgs(d.t, "nth", &nth)
	cmd.MaybeScanArgs(d.t, "first", &first)
	cmd.MaybeScanArgs(d.t, "code", &code)
	replies := map[string]*s3test.Reply{
		"slowdown": s3test.SlowDown(), "empty-503": s3test.EmptyBody503(), "lost": s3test.ResetAfter(), "reset": s3test.ResetBefore(),
		"error-in-200": s3test.ErrorIn200(code), "no-body": s3test.NoBody200(), "lie": s3test.DropEffect200(), "denied": s3test.Status(403, "AccessDenied"),
		"damaged": s3test.Status(400, "BadDigest"),
	}
	r, ok := replies[reply]
	require.True(d.t, ok, reply)
	d.remove = append(d.remove, d.s.srv.Control(s3test.Match{Op: s3test.Op(op), Nth: nth, First: first}, s3test.Always(r)))
}

// said renders an error by what programs see of it: the sentinels of multipart, whose sentences are that package's business, and our
// own error inside, without the request id.
func said(err error) string {
	if err == nil {
		return ""
	}
	text := "error"
	for _, s := range []error{
		multipart.ErrUnproven, multipart.ErrForeign, multipart.ErrNotFound, multipart.ErrNoSuchUpload, multipart.ErrNotSealed, multipart.ErrHandle,
	} {
		if errors.Is(err, s) {
			text += ", " + s.Error()
		}
	}
	oe, ok := errors.AsType[*s3fs.OpError](err)
	if !ok {
		return text
	}
	reason := oe.Error()
	if i := strings.Index(reason, " [status "); i >= 0 {
		reason = reason[:i] + reason[i+strings.Index(reason[i:], "]")+1:]
	}
	return fmt.Sprintf("%s\n%s\nclass %v", text, reason, oe.Class)
}

// stream is n bytes of an endless file from an offset.
func stream(off, n int64) []byte {
	b := make([]byte, n)
	for i := range b {
		x := uint64(off) + uint64(i)
		b[i] = byte(x ^ x>>8 ^ x>>16)
	}
	return b
}

// blobs is a checkpoint's own storage.
type blobs struct {
	mu   sync.Mutex
	data map[string][]byte
}

func (b *blobs) Put(_ context.Context, r io.Reader, size int64) (string, error) {
	data, err := io.ReadAll(r)
	if err != nil || int64(len(data)) != size {
		return "", fmt.Errorf("blob of %d bytes instead of %d: %w", len(data), size, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	ref := fmt.Sprintf("blob-%d", len(b.data)+1)
	b.data[ref] = data
	return ref, nil
}

func (b *blobs) Open(_ context.Context, ref string) (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return io.NopCloser(bytes.NewReader(b.data[ref])), nil
}
