package mainjob

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/e2e/testbed/internal/accesslog"
	"github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"
)

func served(ok, slow, failed int) *accesslog.Counts {
	c := &accesslog.Counts{}
	for status, n := range map[int]int{200: ok, 503: slow, 500: failed} {
		for range n {
			c.Add(accesslog.Request{Operation: "UploadPart", Status: status})
		}
	}
	return c
}

// The figures are those of the pull request's own table, standard mode.
func TestWriteTable_PullRequestsFigures(t *testing.T) {
	const bytes = 100 << 30
	write := phase{
		name: "write", duration: 17*time.Minute + 15*time.Second, bytes: bytes,
		client: &sluicecmd.Totals{Calls: 20080, Attempts: 24431, Throttles: 2164, Retries: 4351}, server: served(20080, 2164, 2187),
	}
	read := phase{
		name: "read-back", duration: 3*time.Minute + 20*time.Second, bytes: bytes,
		client: &sluicecmd.Totals{Calls: 2400, Attempts: 2951, Throttles: 551, Retries: 551},
	}
	var b strings.Builder
	require.NoError(t, writeTable(&b, write, read))
	assert.Equal(t, strings.TrimPrefix(`
|                                        |      client | server |
|----------------------------------------|------------:|-------:|
| write duration                         | 17 min 15 s |        |
| write throughput                       |    104 MB/s |        |
| S3 calls (a repeated call counts once) |      20,080 | 20,080 |
| throttled responses                    |       2,164 |  2,164 |
| retried attempts                       |       4,351 |  4,351 |
| HTTP attempts                          |      24,431 | 24,431 |
| throttled share of attempts            |       8.9 % |  8.9 % |
| completed calls/s                      |        19.4 |   19.4 |
| rejected requests/s                    |         2.1 |    2.1 |
| read-back duration                     |  3 min 20 s |        |
| read-back throughput                   |    537 MB/s |        |
| read-back throttled responses          |         551 |    n/a |
| read-back completed calls/s            |        12.0 |    n/a |
`, "\n"), b.String())
}

func TestAgreement_SaysWhoCountedWhat(t *testing.T) {
	for _, c := range []struct {
		name   string
		client *sluicecmd.Totals
		server *accesslog.Counts
		want   string
	}{
		{"same", &sluicecmd.Totals{Attempts: 1001, Throttles: 1}, served(1000, 1, 0), "write: client and server agree: 1,001 HTTP attempts, 1 of them throttled"},
		{"an attempt without an answer", &sluicecmd.Totals{Attempts: 12}, served(10, 0, 0), "write: the client counts 2 HTTP attempts more than the server answered: cut or cancelled before an answer"},
		{"the server saw more", &sluicecmd.Totals{Attempts: 9}, served(10, 0, 0), "write: client and server DISAGREE: 9 against 10 HTTP attempts, 0 against 0 throttled"},
		{"other throttles", &sluicecmd.Totals{Attempts: 10, Throttles: 2}, served(9, 1, 0), "write: client and server DISAGREE: 10 against 10 HTTP attempts, 2 against 1 throttled"},
		{"killed", nil, served(1, 0, 0), "write: counts of the client and the server are not compared: killed processes report nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, phase{name: "write", client: c.client, server: c.server}.agreement())
		})
	}
}

func TestAgreement_NamesTheOperationsThatDiffer(t *testing.T) {
	p := phase{
		name: "write", client: &sluicecmd.Totals{Attempts: 9}, server: served(10, 0, 0),
		operations: map[string]sluicecmd.Totals{"UploadPart": {Attempts: 8}, "PutObject": {Attempts: 1}, "HeadObject": {}},
	}
	assert.Equal(t, "write: client and server DISAGREE: 9 against 10 HTTP attempts, 0 against 0 throttled; PutObject: 1 against 0; UploadPart: 8 against 10", p.agreement())
}

func TestTable_NothingCounted_NoDivisionByZero(t *testing.T) {
	var b strings.Builder
	require.NoError(t, writeTable(&b, phase{client: &sluicecmd.Totals{}, server: served(0, 0, 0)}, phase{}))
	assert.NotContains(t, b.String(), "NaN")
	assert.NotContains(t, b.String(), "Inf")
}
