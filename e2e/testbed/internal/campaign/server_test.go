package campaign

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestClaims_AreUploadsThatTheServerHasRenamed(t *testing.T) {
	bucket := t.TempDir()
	sum := sha256.Sum256([]byte("job-1/part_1"))
	of := filepath.Join(bucket, uploadsDir, hex.EncodeToString(sum[:]))
	dir := filepath.Join(of, "u-1.abc-2"+claimSuffix)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(of, "u-2"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "1"), make([]byte, 50), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "2"), make([]byte, 7), 0o600))

	got := claims(bucket)
	require.Equal(t, []claim{{dir: dir, key: hex.EncodeToString(sum[:]), id: "u-1"}}, got)
	assert.EqualValues(t, 57, got[0].bytes())

	done, err := got[0].published(bucket, "job-1")
	require.NoError(t, err)
	assert.False(t, done)
	require.NoError(t, os.MkdirAll(filepath.Join(bucket, "job-1"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bucket, "job-1", "part_1"), nil, 0o600))
	done, err = got[0].published(bucket, "job-1")
	require.NoError(t, err)
	assert.True(t, done)

	require.NoError(t, got[0].putBack())
	assert.Empty(t, claims(bucket))
	assert.FileExists(t, filepath.Join(of, "u-1", "2"))
}
