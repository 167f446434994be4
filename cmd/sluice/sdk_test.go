package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The SDK's retry defaults have changed between versions, so its version belongs to the configuration of a run: in the log and in every checkpoint. The
// truth about it is go.mod.
func TestRun_SaysWhichSDKItRetriesWith(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", "github.com/aws/aws-sdk-go-v2").Output()
	require.NoError(t, err)
	version := strings.TrimPrefix(strings.TrimSpace(string(out)), "v")
	bubble(t, func(t *testing.T, w *world) {
		r := w.sluice(t.Context(), "run", "JOB")
		require.Equal(t, 0, r.code, r.stderr)
		assert.Contains(t, r.stderr, "aws-sdk-go-v2="+version)
		r = w.sluice(t.Context(), "checkpoint", "show", "JOB")
		require.Equal(t, 0, r.code, r.stderr)
		assert.Contains(t, r.stdout, "\n  aws-sdk-go-v2: "+version+"\n")
	})
}
