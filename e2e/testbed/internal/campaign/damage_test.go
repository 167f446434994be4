package campaign

import (
	"bytes"
	"math/bits"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const manifestText = `sluice-checkpoint 1 99 abc
{"job": "job-1", "states": [{"name": "source"}, {"name": "sink", "refs": ["00000000000000000002-1-1.blob:0:10:aabbccdd", "00000000000000000003-1-2.blob:5:0:00000000", "00000000000000000003-1-2.blob:5:7:aabbccdd"]}]}
`

// shard makes the checkpoint directory of job-1 and returns the job.
func shard(t *testing.T, files map[string]string) *job {
	t.Helper()
	j := &job{c: &campaign{}, p: jobPlan{number: 1, retained: 1}, dir: t.TempDir()}
	for name, text := range files {
		path := filepath.Join(j.shardDir(), name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return j
}

func TestRegions_AreWhatAManifestNames(t *testing.T) {
	got, err := regions([]byte(manifestText))
	require.NoError(t, err)
	assert.Equal(t, []blobRegion{{"00000000000000000002-1-1.blob", 0, 10}, {"00000000000000000003-1-2.blob", 5, 7}}, got)
	for _, bad := range []string{"", "x\n{", "x\n" + `{"states":[{"refs":["a:b"]}]}`, "x\n" + `{"states":[{"refs":["a:b:1:2"]}]}`} {
		_, err := regions([]byte(bad))
		assert.Error(t, err, bad)
	}
}

func TestTarget_FindsTheNewestFileThatCounts(t *testing.T) {
	j := shard(t, map[string]string{
		"chk-00000000000000000002.json": "old", "chk-00000000000000000003.json": manifestText, "epoch-00000000000000000004": "pid", "LOCK": "",
	})
	for m, want := range map[mishap]target{
		cutManifest: {"chk-00000000000000000003.json", 0, int64(len(manifestText))},
		flipEpoch:   {"epoch-00000000000000000004", 0, 3},
		flipBlob:    {"blobs/00000000000000000003-1-2.blob", 5, 12},
	} {
		got, ok, err := j.target(m, 0.9)
		require.NoError(t, err)
		assert.True(t, ok)
		want.path = filepath.Join(j.shardDir(), want.path)
		assert.Equal(t, want, got)
	}
	for _, m := range []mishap{cutLock, flipLock} {
		_, ok, err := j.target(m, 0.5)
		require.NoError(t, err)
		assert.False(t, ok, "an empty file has no byte to lose")
	}
	_, ok, err := shard(t, nil).target(flipBlob, 0.5)
	require.NoError(t, err)
	assert.False(t, ok)
}

func TestDamaged_CutsOrFlipsOneBitWhereItMatters(t *testing.T) {
	whole := bytes.Repeat([]byte{0x55}, 100)
	region := target{from: 40, to: 60}
	for _, f := range []float64{0, 0.5, 0.999} {
		cut := region.damaged(whole, cutBlob, f)
		assert.Equal(t, whole[:len(cut)], cut)
		assert.True(t, len(cut) >= 40 && len(cut) < 60)

		flipped := region.damaged(whole, flipBlob, f)
		require.Len(t, flipped, 100)
		ones := 0
		for i := range whole {
			if d := whole[i] ^ flipped[i]; d != 0 {
				ones += bits.OnesCount8(d)
				assert.True(t, i >= 40 && i < 60)
			}
		}
		assert.Equal(t, 1, ones)
	}
	assert.Equal(t, bytes.Repeat([]byte{0x55}, 100), whole, "the copy that is put back stays whole")
}

func TestLeftFiles_AreThoseThatNothingNeeds(t *testing.T) {
	j := shard(t, map[string]string{
		"chk-00000000000000000003.json": manifestText, "epoch-00000000000000000004": "pid", "LOCK": "",
		"blobs/00000000000000000002-1-1.blob": "x", "blobs/00000000000000000003-1-2.blob": "x",
	})
	left, err := leftFiles(j.path(checkpointsDir), j.shardDir(), 1)
	require.NoError(t, err)
	assert.Empty(t, left)

	for _, name := range []string{".tmp-4-1", "blobs/00000000000000000001-1-9.blob", "chk-00000000000000000001.json", "epoch-00000000000000000002", "../../.sluice-123"} {
		require.NoError(t, os.WriteFile(filepath.Join(j.shardDir(), name), []byte("x"), 0o600))
	}
	left, err = leftFiles(j.path(checkpointsDir), j.shardDir(), 1)
	require.NoError(t, err)
	assert.Len(t, left, 5)
}
