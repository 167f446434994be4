package s3test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// Whatever the pieces, what was encoded is what is decoded; and no input, encoded or not, does more than fail.
func FuzzDecodeChunks(f *testing.F) {
	f.Add([]byte("hello, world"), 5, []byte("5\r\nhello\r\n0\r\n\r\n"))
	f.Add([]byte{}, 1, []byte("ffffffffffffffff\r\n"))
	f.Add([]byte("x"), 0, []byte("0\r\na:b\r\nc"))
	f.Fuzz(func(t *testing.T, body []byte, size int, wild []byte) {
		size = min(max(size, 1), len(body)+1)
		var enc bytes.Buffer
		for chunk := range slices.Chunk(body, size) {
			fmt.Fprintf(&enc, "%x;chunk-signature=00\r\n%s\r\n", len(chunk), chunk)
		}
		enc.WriteString("0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n")
		got, trailer, err := decodeChunks(enc.Bytes())
		if err != nil || !bytes.Equal(got, body) || trailer.Get("x-amz-checksum-crc32") != "AAAAAA==" {
			t.Fatalf("decoded %q, trailer %v, error %v; want %q", got, trailer, err, body)
		}
		if got, _, err := decodeChunks(wild); err == nil && len(got) > len(wild) {
			t.Fatalf("decoded %d bytes from %d", len(got), len(wild))
		}
	})
}
