package sluicecmd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChildEnv_UsersOwnSettingsStayOutside(t *testing.T) {
	assert.Equal(t, []string{"PATH=/bin", "HOME=/root"}, childEnv([]string{"PATH=/bin", "SLUICE_SINK_WRITERS=3", "AWS_MAX_ATTEMPTS=9", "HOME=/root"}))
}

func TestReadReport_MissingAndUnknownFields_AreFine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"rows":3,"new":[1],"totals":{"attempts":5,"x":1}}`), 0o600))
	got, err := ReadReport[RunReport](path)
	require.NoError(t, err)
	assert.Equal(t, RunReport{Rows: 3, Totals: Totals{Attempts: 5}}, got)
}
