package s3store

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
)

func TestNames_AreSortedAsTheirNumbersAre_AndReadInOneSpellingOnly(t *testing.T) {
	for _, n := range []int64{1, 9, 10, 1<<40 + 1, math.MaxInt64} {
		id, ok := parseManifestName(manifestName(checkpoint.ID(n)))
		require.True(t, ok)
		require.EqualValues(t, n, id)
		epoch, ok := parseEpochName(epochName(n))
		require.True(t, ok)
		require.Equal(t, n, epoch)
		id, epoch, ok = parseBlobName(blobName(checkpoint.ID(n), n, 7))
		require.True(t, ok)
		require.Equal(t, []int64{n, n}, []int64{int64(id), epoch})
		require.Len(t, manifestName(checkpoint.ID(n)), len(manifestName(1)))
	}
	require.Less(t, blobPrefix, manifestPrefix, "look relies on it: blobs are listed first")
	require.Less(t, manifestPrefix, epochPrefix, "look relies on it: epochs are listed last")
	for _, name := range []string{
		"", "chk-.json", "chk-1.json", "chk-00000000000000000000.json", "chk--0000000000000000001.json", "chk-00000000000000000001",
		"chk-99999999999999999999.json", "xchk-00000000000000000001.json", "epoch-00000000000000000001.json",
	} {
		_, ok := parseManifestName(name)
		require.False(t, ok, name)
	}
	for _, name := range []string{"", "1-1-1.blob", "00000000000000000001-1-1", "00000000000000000001-01-1.blob", "00000000000000000001-1-1-1.blob", "00000000000000000001-1--1.blob"} {
		_, _, ok := parseBlobName(name)
		require.False(t, ok, name)
	}
}

func TestOpenBlob_AcceptsOnlyRefsOfItsOwnSpelling(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.start()
		name := blobName(1, 1, 1)
		for _, ref := range []string{
			"", "::", name, name + ":1", name + ":1:000000000000000g", name + ":1:0", name + ":+1:0000000000000000", name + ":01:0000000000000000",
			name + ":-1:0000000000000000", name + ":1:00000000000000AB", "../" + name + ":1:0000000000000000", "x/" + name + ":1:0000000000000000",
			"1-1-1.blob:1:0000000000000000", "chk-00000000000000000001.json:1:0000000000000000", name + ":1:0000000000000000:",
			name + ":99999999999999999999:0000000000000000",
		} {
			_, err := p.open().OpenBlob(t.Context(), ref)
			require.ErrorContains(t, err, "not a blob ref", "%q", ref)
		}
		require.Zero(t, p.count())
	})
}

func FuzzParseRef(f *testing.F) {
	f.Add("00000000000000000042-7-3.blob:1048576:00000000deadbeef")
	f.Add(blobName(math.MaxInt64, math.MaxInt64, 1) + ":0:0000000000000000")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseRef(text)
		if err == nil && (r.String() != text || strings.ContainsAny(r.name, `/\`) || r.size < 0) {
			t.Errorf("%q became %+v", text, r)
		}
	})
}
