package s3fs_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
)

// oddKeys are partition values and names that have broken signatures, paths or listings somewhere.
func oddKeys() []string {
	keys := []string{
		"a+b", "a b", "a%2Fb", "ü", "a=b", "dt=2026-01-01/part 0+1%", "日本/語", "a//b", "/a", "a/", "./a", "../a", "a/../b",
		"~", "%", "%zz", "é́", "🙂",
	}
	all := ""
	for c := byte(0x20); c < 0x7f; c++ {
		all += string(c)
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", rune(c)) {
			keys = append(keys, "x"+string(c)+"y", string(c))
		}
	}
	keys = append(keys, all)
	slices.Sort(keys)
	return slices.Compact(keys)
}

func TestKeys_O50_EveryPrintableCharacterMakesTheRoundTrip(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		api := s.API()
		for _, k := range oddKeys() {
			body := []byte("content of " + k)
			require.NoError(t, s.Put(s.ctx, path(k), bytes.NewReader(body)), "%q", k)
			_, err := s.Stat(s.ctx, path(k))
			require.NoError(t, err, "%q", k)
			r, err := s.Open(s.ctx, path(k))
			require.Equal(t, body, readAll(t, r, err), "%q", k)

			to := multipart.Target{Bucket: "b", Key: "m/" + k}
			id, err := api.Create(s.ctx, to, "t")
			require.NoError(t, err, "%q", k)
			crc := multipart.Checksum(body)
			etag, err := api.UploadPart(s.ctx, to, id, 1, bytes.NewReader(body), int64(len(body)), crc)
			require.NoError(t, err, "%q", k)
			_, err = api.Complete(s.ctx, to, id, []multipart.Part{{Number: 1, Size: int64(len(body)), ETag: etag, CRC: crc}}, int64(len(body)), crc)
			require.NoError(t, err, "%q", k)
		}
		var want, listed []string
		for _, k := range oddKeys() {
			want = append(want, k, "m/"+k)
		}
		slices.Sort(want)
		for i, err := range s.List(s.ctx, path("")) {
			require.NoError(t, err)
			listed = append(listed, i.Path.Key)
		}
		assert.Equal(t, want, listed)
		assert.Equal(t, want, s.srv.Keys("b"))
		for _, k := range listed {
			require.NoError(t, s.Delete(s.ctx, path(k)), "%q", k)
		}
		assert.Empty(t, s.srv.Keys("b"))
	})
}
