package accesslog_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/e2e/testbed/internal/accesslog"
)

// Lines as versitygw 1.8.0 printed them, signatures and host ids shortened.
const (
	startLine  = `log starts 2026-11-30 09:27:32.996655917 +0000 UTC m=+0.032220602`
	putLine    = `sluice room [30/November/2026:09:27:33 +0000] 127.0.0.1 sluice 4KKG1U9YO5P2NBNU s3_PutObject p=1/x y /room/p%3D1/x%20y?x-id=PutObject 200 - 0 4 2 2 - aws-sdk-go-v2/1.48.0 ua/2.1 os/linux lang/go#1.26.8 m/e - lQ6LD3n= SigV4 - AuthHeader s3.us-east-1.amazonaws.com - arn:aws:s3:::/room/p=1/x y Yes`
	listLine   = `sluice room [30/November/2026:09:27:33 +0000] 127.0.0.1 sluice 8WF3C7LRQPF4YP9A s3_ListObjectsV2 - /room?list-type=2 200 - 1046 0 1 1 - aws-sdk-go-v2/1.48.0 ua/2.1 m/e - Tac4= SigV4 - AuthHeader s3.us-east-1.amazonaws.com - arn:aws:s3:::/room Yes`
	absentLine = `sluice room [30/November/2026:09:27:33 +0000] 127.0.0.1 sluice BVSBO7052KW9K7B7 s3_GetObject absent /room/absent?x-id=GetObject 404 NoSuchKey 0 0 0 0 - aws-sdk-go-v2/1.48.0 m/e - p3eV= SigV4 - AuthHeader s3.us-east-1.amazonaws.com - arn:aws:s3:::/room/absent Yes`
	slowLine   = `- room [30/November/2026:09:27:33 +0000] 127.0.0.1 - G8W3B01E9YUC0DXO ActionUnDetected k /room/k 503 SlowDown 0 0 0 0 - aws-sdk-go-v2/1.48.0 m/e - 5H+s= SigV4 - AuthHeader - - arn:aws:s3:::/room/k Yes`
	brokenLine = `sluice room [30/November/2026:09:27:33 +0000] 127.0.0.1 sluice BVSBO7052KW9K7B7 s3_PutObject k /room/k 500 open k: no space left 0 0 0 0 - aws - p3eV= SigV4 - AuthHeader s3 - arn:aws:s3:::/room/k Yes`
)

func TestParseLine_ReadsOperationStatusAndCode(t *testing.T) {
	for _, c := range []struct {
		name, line string
		want       accesslog.Request
	}{
		{"success", listLine, accesslog.Request{Operation: "ListObjectsV2", Status: 200}},
		{"key with a space", putLine, accesslog.Request{Operation: "PutObject", Status: 200}},
		{"error code", absentLine, accesslog.Request{Operation: "GetObject", Status: 404, Code: "NoSuchKey"}},
		{"refused before routing", slowLine, accesslog.Request{Operation: accesslog.Unrouted, Status: 503, Code: "SlowDown"}},
		{"error without a code", brokenLine, accesslog.Request{Operation: "PutObject", Status: 500, Code: "open"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok, err := accesslog.ParseLine(c.line)
			require.NoError(t, err)
			assert.True(t, ok)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestParseLine_StartOfTheServer_IsNoRequest(t *testing.T) {
	_, ok, err := accesslog.ParseLine(startLine)
	require.NoError(t, err)
	assert.False(t, ok)
}

func TestParseLine_SomethingElse_IsAnError(t *testing.T) {
	for _, line := range []string{"", "x", "a b [t] c", putLine[:120]} {
		_, _, err := accesslog.ParseLine(line)
		assert.ErrorIs(t, err, accesslog.ErrFormat, line)
	}
}

func TestRead_CountsOnlyWholeLinesOfTheRange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	before := startLine + "\n" + putLine + "\n"
	inside := putLine + "\n" + startLine + "\n" + listLine + "\n" + absentLine + "\n" + slowLine + "\n" + brokenLine + "\n"
	require.NoError(t, os.WriteFile(path, []byte(before+inside+"sluice room [30/Nov"), 0o600))

	c, err := accesslog.Read(path, int64(len(before)), accesslog.ToEnd)
	require.NoError(t, err)
	assert.Equal(t, map[string]int64{"PutObject": 2, "ListObjectsV2": 1, "GetObject": 1, accesslog.Unrouted: 1}, c.Operations())
	assert.Equal(t, map[int]int64{200: 2, 404: 1, 500: 1, 503: 1}, c.Statuses())
	assert.EqualValues(t, 5, c.Requests())
	assert.EqualValues(t, 1, c.Throttled())
	assert.EqualValues(t, 3, c.Final(), "the throttle and the server error are repeated, the 404 is not")

	first, err := accesslog.Read(path, 0, int64(len(before)))
	require.NoError(t, err)
	assert.EqualValues(t, 1, first.Requests())
}

func TestEnd_NoLogYet_IsZero(t *testing.T) {
	end, err := accesslog.End(filepath.Join(t.TempDir(), "none"))
	require.NoError(t, err)
	assert.Zero(t, end)
}
