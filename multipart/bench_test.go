package multipart_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/sluice-go/sluice/multipart"
)

// null is a store that reads what it is sent and remembers nothing but the last object's facts.
type null struct{ object multipart.Object }

func (*null) Create(context.Context, multipart.Target, string) (string, error) { return "up", nil }
func (*null) UploadPart(_ context.Context, _ multipart.Target, _ string, _ int32, body io.ReadSeeker, _ int64, _ multipart.CRC) (string, error) {
	_, err := io.Copy(io.Discard, body)
	return "etag", err
}

func (n *null) Complete(_ context.Context, _ multipart.Target, _ string, _ []multipart.Part, size int64, crc multipart.CRC) (multipart.Object, error) {
	n.object = multipart.Object{Size: size, Token: token, CRC: crc, HasCRC: true}
	return n.object, nil
}
func (*null) Abort(context.Context, multipart.Target, string) error { return nil }
func (*null) ListParts(context.Context, multipart.Target, string) ([]multipart.Part, error) {
	return nil, nil
}

func (n *null) Put(_ context.Context, _ multipart.Target, _ string, body io.ReadSeeker, size int64, crc multipart.CRC) (multipart.Object, error) {
	_, err := io.Copy(io.Discard, body)
	n.object = multipart.Object{Size: size, Token: token, CRC: crc, HasCRC: true}
	return n.object, err
}

func (n *null) Head(context.Context, multipart.Target) (multipart.Object, error) {
	return n.object, nil
}

// BenchmarkUpload writes files of 64 MiB in rows, uploads their parts and commits.
func BenchmarkUpload(b *testing.B) {
	const file, part = 64 << 20, 6 << 20
	for _, row := range []int{100, 1 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("row=%d", row), func(b *testing.B) {
			budget := multipart.NewBudget(64 << 20)
			p := bytesOf(1, row)
			b.SetBytes(file)
			b.ReportAllocs()
			for b.Loop() {
				u, err := multipart.Start(&null{}, target, token, multipart.Options{PartSize: part, Budget: budget})
				if err != nil {
					b.Fatal(err)
				}
				for range file / row {
					if _, err := u.Write(b.Context(), p); err != nil {
						b.Fatal(err)
					}
				}
				if err := u.Seal(); err != nil {
					b.Fatal(err)
				}
				if _, err := u.Commit(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCapture is what a barrier costs a file with 100 parts in flight.
func BenchmarkCapture(b *testing.B) {
	r := newStore()
	gate := make(chan struct{})
	r.script(rule{op: "part", gate: gate})
	budget := multipart.NewBudget(16 << 20)
	u, err := multipart.Start(r, target, token, multipart.Options{PartSize: page, Budget: budget})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := u.Write(b.Context(), bytesOf(1, 100*page+10)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		u.Capture().Release()
	}
	u.Abandon()
}

// BenchmarkHandleValidate is what a handle of the largest file costs at each checkpoint.
func BenchmarkHandleValidate(b *testing.B) {
	h := multipart.Handle{Target: target, UploadID: "u", Token: token, PartSize: 5 << 20}
	for n := range int32(multipart.MaxParts) {
		p := multipart.Part{Number: n + 1, Size: h.PartSize, CRC: multipart.CRC(n), ETag: "e"}
		h.Parts = append(h.Parts, p)
		h.Offset += p.Size
		h.CRC = h.CRC.Append(p.CRC, p.Size)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := h.Validate(); err != nil {
			b.Fatal(err)
		}
	}
}
