package multipart_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
)

var (
	bytesA    = bytes.Repeat([]byte("a"), 1000)
	bytesB    = bytes.Repeat([]byte("b"), 1000)
	bytesTail = []byte("tail")
)

// goldenHandles are the handles of testdata/handle_v1.golden.
func goldenHandles() map[string]multipart.Handle {
	created := time.Unix(1700000000, 123456789).UTC()
	return map[string]multipart.Handle{
		"empty": {Target: target, Token: token, PartSize: 1000},
		"small-sealed": {
			Target: target, Token: token, CreatedAt: created, Epoch: 3, PartSize: 1000, Sealed: true,
			Pieces: []multipart.Piece{{Number: 1, Size: 4, CRC: crcOf(bytesTail), Ref: "7/blob-1"}},
			Offset: 4, CRC: crcOf(bytesTail),
		},
		"mixed": mixedHandle(),
	}
}

func mixedHandle() multipart.Handle {
	return multipart.Handle{
		Target: target, UploadID: "upload-1", Token: token,
		CreatedAt: time.Unix(1700000000, 123456789).UTC(), Epoch: 3, PartSize: 1000,
		Parts: []multipart.Part{{Number: 1, Size: 1000, CRC: crcOf(bytesA), ETag: md5Of(bytesA)}},
		Pieces: []multipart.Piece{
			{Number: 2, Size: 1000, CRC: crcOf(bytesB), Ref: "7/blob-1"},
			{Number: 3, Size: 4, CRC: crcOf(bytesTail), Ref: "7/blob-2"},
		},
		Offset: 2004, CRC: crcOf(join(bytesA, bytesB, bytesTail)),
	}
}

func readGolden(t testing.TB) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/handle_v1.golden")
	require.NoError(t, err)
	out := map[string][]byte{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, data, ok := strings.Cut(strings.TrimSpace(line), " ")
		require.True(t, ok, line)
		out[name], err = hex.DecodeString(data)
		require.NoError(t, err)
	}
	return out
}

func TestHandle_TheBinaryFormIsTheOneOnRecord(t *testing.T) {
	golden := readGolden(t)
	for name, h := range goldenHandles() {
		b, err := h.MarshalBinary()
		require.NoError(t, err, name)
		require.Equal(t, hex.EncodeToString(golden[name]), hex.EncodeToString(b), name)
		var read multipart.Handle
		require.NoError(t, read.UnmarshalBinary(golden[name]), name)
		require.Equal(t, h, read, name)
	}
	require.Len(t, golden, 3)
}

func TestHandle_EveryFlippedBitAndEveryShorteningIsDetected(t *testing.T) {
	for name, good := range readGolden(t) {
		before := multipart.Handle{Token: "untouched"}
		for i := range len(good) * 8 {
			bad := bytes.Clone(good)
			bad[i/8] ^= 1 << (i % 8)
			h := before
			require.ErrorIs(t, h.UnmarshalBinary(bad), multipart.ErrHandle, "%s bit %d", name, i)
			require.Equal(t, before, h, "an error leaves the handle alone")
		}
		for n := range good {
			var h multipart.Handle
			require.ErrorIs(t, h.UnmarshalBinary(good[:n]), multipart.ErrHandle, "%s cut at %d", name, n)
		}
		var h multipart.Handle
		require.ErrorIs(t, h.UnmarshalBinary(append(bytes.Clone(good), 0)), multipart.ErrHandle)
	}
}

func TestHandle_AnUnknownVersionSaysSo(t *testing.T) {
	b := readGolden(t)["empty"]
	b[4] = 2
	var h multipart.Handle
	err := h.UnmarshalBinary(b)
	require.ErrorIs(t, err, multipart.ErrHandle)
	require.ErrorContains(t, err, "version 2")
}

func TestHandle_ContradictionsAreRefused(t *testing.T) {
	require.NoError(t, mixedHandle().Validate())
	for name, spoil := range map[string]func(*multipart.Handle){
		"no bucket":                func(h *multipart.Handle) { h.Target.Bucket = "" },
		"no key":                   func(h *multipart.Handle) { h.Target.Key = "" },
		"no token":                 func(h *multipart.Handle) { h.Token = "" },
		"no part size":             func(h *multipart.Handle) { h.PartSize = 0 },
		"huge part size":           func(h *multipart.Handle) { h.PartSize = multipart.MaxPartSize + 1 },
		"negative epoch":           func(h *multipart.Handle) { h.Epoch = -1 },
		"parts without upload":     func(h *multipart.Handle) { h.UploadID = "" },
		"offset too big":           func(h *multipart.Handle) { h.Offset++ },
		"offset too small":         func(h *multipart.Handle) { h.Offset-- },
		"wrong digest":             func(h *multipart.Handle) { h.CRC ^= 1 },
		"wrong part checksum":      func(h *multipart.Handle) { h.Parts[0].CRC ^= 1 },
		"wrong piece checksum":     func(h *multipart.Handle) { h.Pieces[1].CRC ^= 1 },
		"swapped pieces":           func(h *multipart.Handle) { h.Pieces[0], h.Pieces[1] = h.Pieces[1], h.Pieces[0] },
		"double number":            func(h *multipart.Handle) { h.Pieces[0].Number = 1 },
		"gap":                      func(h *multipart.Handle) { h.Pieces[1].Number = 4 },
		"starts at two":            func(h *multipart.Handle) { h.Parts = nil },
		"no etag":                  func(h *multipart.Handle) { h.Parts[0].ETag = "" },
		"no reference":             func(h *multipart.Handle) { h.Pieces[0].Ref = "" },
		"empty piece":              func(h *multipart.Handle) { h.Pieces[1].Size = 0 },
		"negative piece":           func(h *multipart.Handle) { h.Pieces[1].Size = -4 },
		"part larger than part":    func(h *multipart.Handle) { h.Parts[0].Size = 1001 },
		"short part in the middle": func(h *multipart.Handle) { h.Parts[0].Size = 999; h.Offset-- },
		"short part in an open file": func(h *multipart.Handle) {
			h.Pieces, h.Parts[0].Size, h.Offset, h.CRC = nil, 999, 999, h.Parts[0].CRC
		},
	} {
		h := mixedHandle()
		spoil(&h)
		require.ErrorIs(t, h.Validate(), multipart.ErrHandle, name)
		_, err := h.MarshalBinary()
		require.ErrorIs(t, err, multipart.ErrHandle, name)
	}
}

func TestHandle_TooManyPartsAreRefused(t *testing.T) {
	h := multipart.Handle{Target: target, UploadID: "u", Token: token, PartSize: 1}
	one := crcOf([]byte("x"))
	for n := range int32(multipart.MaxParts + 1) {
		if n == multipart.MaxParts {
			require.NoError(t, h.Validate())
		}
		h.Parts = append(h.Parts, multipart.Part{Number: n + 1, Size: 1, CRC: one, ETag: "e"})
		h.Offset++
		h.CRC = h.CRC.Update([]byte("x"))
	}
	require.ErrorIs(t, h.Validate(), multipart.ErrHandle)
}

// FuzzHandleUnmarshal: whatever the bytes, there is no panic; and what is accepted is valid and has exactly these bytes.
// The checksum at the end is repaired first, so that the fuzzer gets behind it.
func FuzzHandleUnmarshal(f *testing.F) {
	for _, b := range readGolden(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= 8 {
			body := b[: len(b)-8 : len(b)-8]
			sum := uint64(crcOf(body))
			b = body
			for shift := 56; shift >= 0; shift -= 8 {
				b = append(b, byte(sum>>shift))
			}
		}
		var h multipart.Handle
		if err := h.UnmarshalBinary(b); err != nil {
			require.ErrorIs(t, err, multipart.ErrHandle)
			return
		}
		require.NoError(t, h.Validate())
		again, err := h.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, b, again)
	})
}

// Damage with a matching checksum, as a faulty writer would make it: refused, or read as exactly what is there.
func TestHandle_DamageBehindTheChecksumNeverPanics(t *testing.T) {
	for name, good := range readGolden(t) {
		for i := 5; i < len(good)-8; i++ {
			for _, value := range []byte{0, 1, 0x7f, 0x80, 0xff, good[i] + 1} {
				bad := bytes.Clone(good[:len(good)-8])
				bad[i] = value
				reread(t, name, withChecksum(bad))
				reread(t, name, withChecksum(append(bytes.Clone(bad[:i]), bad[i+1:]...)))
			}
		}
	}
}

func withChecksum(body []byte) []byte {
	return binary.BigEndian.AppendUint64(body, uint64(crcOf(body)))
}

func reread(t *testing.T, name string, b []byte) {
	t.Helper()
	var h multipart.Handle
	if err := h.UnmarshalBinary(b); err != nil {
		require.ErrorIs(t, err, multipart.ErrHandle, name)
		return
	}
	again, err := h.MarshalBinary()
	require.NoError(t, err, name)
	require.Equal(t, b, again, name)
}
