package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/e2e/testbed/internal/mainjob"
	"github.com/sluice-go/sluice/e2e/testbed/internal/store"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == store.Subcommand {
		os.Exit(store.Main())
	}
	os.Exit(m.Run())
}

func TestRunCommand_BadFlag_IsNamedBeforeAnythingStarts(t *testing.T) {
	for flag, bad := range map[string]string{"--size": "lots", "--row": "1.5kb", "--interval": "soon", "--writers": "many", "--crash": "-"} {
		cmd := runCommand()
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		cmd.SetArgs([]string{flag, bad})
		err := cmd.ExecuteContext(t.Context())
		require.Error(t, err)
		assert.ErrorContains(t, err, flag)
		assert.NotErrorIs(t, err, mainjob.ErrNotProven)
	}
}

func TestRunCommand_BadValue_EndsWithTheVerdict(t *testing.T) {
	var out bytes.Buffer
	cmd := runCommand()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--size", "1kb", "--row", "2kb", "--sluice", os.Args[0]})
	require.ErrorIs(t, cmd.ExecuteContext(t.Context()), mainjob.ErrNotProven)
	assert.Equal(t, "NOT PROVEN: SIZE: 1 kb is less than one row of 2 kb\n", out.String())
}

func TestStoreCommand_PrintsAJobsSettingsAndStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out strings.Builder
	cmd := storeCommand()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs([]string{"--dir", filepath.Join(t.TempDir(), "root")})
	cmd.SetOut(writerFunc(func(p []byte) (int, error) {
		cancel() // it runs until then
		return out.Write(p)
	}))
	require.NoError(t, cmd.ExecuteContext(ctx))
	for _, key := range []string{"s3.endpoint: http://127.0.0.1:", "s3.region: us-east-1\n", "s3.access-key: ", "s3.secret-key: "} {
		assert.Contains(t, out.String(), key)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestCrashCommand_BadFlag_IsNamedBeforeAnythingStarts(t *testing.T) {
	for flag, bad := range map[string]string{"--kills": "many", "--seeds": "-x", "--seed": "-1", "--job": "first", "--timeout": "soon"} {
		cmd := crashCommand()
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		cmd.SetArgs([]string{flag, bad})
		err := cmd.ExecuteContext(t.Context())
		require.Error(t, err)
		assert.ErrorContains(t, err, flag)
		assert.NotErrorIs(t, err, errCrash)
	}
}

func TestCrashCommand_LastLine(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		fail bool
		last string
	}{
		{"nothing to do", nil, false, "crash: kills=0 seeds=0 lost=0 doubled=0 corrupt=0 leaked=0"},
		{"no simulation there", []string{"--seeds", "3", "--simulation", t.TempDir()}, true, "crash: kills=0 seeds=0 lost=0 doubled=0 corrupt=0 leaked=0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			cmd := crashCommand()
			cmd.SilenceUsage, cmd.SilenceErrors = true, true
			cmd.SetOut(&out)
			cmd.SetArgs(append([]string{"--kills", "0", "--seeds", "0", "--sluice", os.Args[0]}, c.args...))
			err := cmd.ExecuteContext(t.Context())
			if c.fail {
				require.ErrorIs(t, err, errCrash)
				assert.Contains(t, out.String(), "FAILED: simulation: ")
			} else {
				require.NoError(t, err)
			}
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			assert.Equal(t, c.last, lines[len(lines)-1])
		})
	}
}
