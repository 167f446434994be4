package nginx

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Lines as nginx 1.22.1 wrote them.
const (
	served   = `1796044704.145 200 "200" PUT /sluice/out/p?partNumber=1&uploadId=6960`
	absent   = `1796044704.146 404 "404" HEAD /sluice/out/p`
	refused  = `1796044704.150 503 "-" POST /sluice/out/p?uploads`
	gone     = `1796044704.151 499 "-" PUT /sluice/out/p?partNumber=2&uploadId=6960`
	slowdown = `1796044704.152 503 "503" GET /sluice/out/p`
	broken   = `1796044704.153 502 "502" GET /sluice/out/p`
	twice    = `1796044704.153 502 "502, 502" GET /sluice/out/p`
)

func TestReadLog_TellsTheQuotaFromTheStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	text := served + "\n" + absent + "\n" + refused + "\n" + refused + "\n" + gone + "\n" + slowdown + "\n" + broken + "\n" + twice + "\n"
	require.NoError(t, os.WriteFile(path, []byte(text+"17960447"), 0o600))
	c, end, err := readLog(path, 0)
	require.NoError(t, err)
	assert.Equal(t, Counts{Requests: 8, Refused: 2, Aborted: 1, Failed: 3}, c)
	assert.EqualValues(t, 6, c.Passed())
	assert.EqualValues(t, len(text), end, "the last line is not whole yet")

	c, _, err = readLog(path, int64(len(text)-len(twice)-1))
	require.NoError(t, err)
	assert.Equal(t, Counts{Requests: 1, Failed: 1}, c, "from where the last reading ended")
}

func TestReadLog_NoLogYet_IsEmpty(t *testing.T) {
	c, end, err := readLog(filepath.Join(t.TempDir(), "none"), 0)
	require.NoError(t, err)
	assert.Zero(t, c)
	assert.Zero(t, end)
}

func TestReadLog_SomethingElse_IsAnError(t *testing.T) {
	for _, line := range []string{"", "x", "1 2 3", `1.5 ok "200" GET /`} {
		path := filepath.Join(t.TempDir(), "access.log")
		require.NoError(t, os.WriteFile(path, []byte(line+"\n"), 0o600))
		_, _, err := readLog(path, 0)
		assert.ErrorContains(t, err, "not a line", line)
	}
}
