package quota

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// section returns the lines of a report without the padding of its tables.
func section(report string) []string {
	var all []string
	for line := range strings.Lines(report) {
		all = append(all, strings.Join(strings.Fields(line), " "))
	}
	return all
}

func TestReport_ThePullRequestsTableStandsBesideItsOwnFigures(t *testing.T) {
	got := section(Report(valid(), []Result{ran(SlowDown, Standard, 125, 1000, 200), ran(SlowDown, Adaptive, 100, 820, 20)}))
	for _, want := range []string{
		"## The store answers 503 SlowDown above its quota (nginx limit_req)",
		"Quota: 8 requests/s, 8 at once on top; parts of 5 MiB; 300 ms a call besides the store's own work; restart strategy none.",
		"| 16 writers, 10 retries | standard | PROVEN | 2 min 5 s | 800 | 1,000 | 20.0 % | 6.4 | 8.6 | |",
		"| 16 writers, 10 retries | adaptive | PROVEN | 1 min 40 s | 800 | 820 | 2.4 % | 8.0 | 10.7 | |",
		"16 writers, 10 retries, 1 gb in files of 20 mb:",
		"| | standard | adaptive | pull request: standard | adaptive |",
		"| write duration | 2 min 5 s | 1 min 40 s | 17 min 15 s | 14 min 40 s |",
		"| write throughput | 8.6 MB/s | 10.7 MB/s | 104 MB/s | 122 MB/s |",
		"| S3 calls (a repeated call counts once) | 800 | 800 | 20,080 | 20,096 |",
		"| throttled responses | 200 | 20 | 2,164 | 743 |",
		"| retried attempts | 200 | 20 | 4,351 | 1,350 |",
		"| HTTP attempts | 1,000 | 820 | 24,431 | 21,446 |",
		"| throttled share of attempts | 20.0 % | 2.4 % | 8.9 % | 3.5 % |",
		"| completed calls/s | 6.4 | 8.0 | 19.4 | 22.8 |",
		"| rejected requests/s | 1.6 | 0.2 | 2.1 | 0.8 |",
		"| read-back duration | 10.0 s | 10.0 s | 3 min 20 s | 3 min 44 s |",
		"| read-back throughput | 107.4 MB/s | 107.4 MB/s | 537 MB/s | 480 MB/s |",
		"| read-back throttled responses | 20 | 20 | 551 | 395 |",
		"| read-back completed calls/s | 6.0 | 6.0 | 12.0 | 10.7 |",
		"- 503/standard/16x10: write: client and quota agree, 1,000 attempts, 200 refused; read-back: client and quota agree, 80 attempts, 20 refused",
	} {
		assert.Contains(t, got, want)
	}
}

func TestReport_ADeathIsARowWithItsReason(t *testing.T) {
	got := section(Report(valid(), []Result{dead(SlowDown, Standard)}))
	assert.Contains(t, got, "| 256 writers, 10 retries | standard | died, exit code 1: upload part, 11 attempts, the last one: SlowDown: Please reduce your request rate. | 56.0 s | 500 | 2,000 | 79.9 % | 7.1 | n/a | died after 31 s |")
	assert.Contains(t, got, "- 503/standard/256x10: write: the client counts 2,000 attempts, 1,600 throttled; the quota 2,002, 1,600 refused, 2 given up by the client, 0 failed behind it")
}

func TestReport_ClosedConnections_AreCountedByTheQuota(t *testing.T) {
	r := ran(Close, Adaptive, 100, 820, 20)
	r.Write.Client.Throttles = 0 // the client is told nothing
	got := section(Report(valid(), []Result{r}))
	assert.Contains(t, got, "## The store closes the connection of what is above its quota")
	assert.Contains(t, got, "| connections closed by the quota | n/a | 20 | | |")
	assert.Contains(t, got, "| throttled responses | n/a | 0 | 2,164 | 743 |")
	assert.Contains(t, got, "| throttled share of attempts | n/a | 2.4 % | 8.9 % | 3.5 % |")
	assert.Contains(t, got, "- close/adaptive/16x10: write: the client counts 820 attempts, 20 of them retries; the quota 820, 20 closed, 0 failed behind it; read-back: the client counts 80 attempts, 20 of them retries; the quota 80, 20 closed, 0 failed behind it")
}

func TestReport_ProcessThatLeftNoCounts(t *testing.T) {
	r := dead(SlowDown, Standard)
	r.Write.Client = nil
	got := section(Report(valid(), []Result{r}))
	assert.Contains(t, got, "- 503/standard/256x10: write: the process left no counts")
}

func TestReport_TablesAreMarkdown(t *testing.T) {
	var width int
	for line := range strings.Lines(Report(valid(), []Result{ran(SlowDown, Standard, 125, 1000, 200), dead(SlowDown, Adaptive)})) {
		if !strings.HasPrefix(line, "|") {
			width = 0
			continue
		}
		n := strings.Count(line, "|")
		if width == 0 {
			width = n
		}
		assert.Equal(t, width, n, line)
	}
}

func TestResult_AsJSON_HasTheCountsOfBothSides(t *testing.T) {
	text, err := json.Marshal([]Result{ran(SlowDown, Standard, 125, 1000, 200)})
	require.NoError(t, err)
	for _, want := range []string{`"lane":"503"`, `"mode":"standard"`, `"writers":16`, `"retries":10`, `"exit_code":0`, `"proven":true`, `"seconds":125`,
		`"client":{"calls":800,"attempts":1000,"throttles":200,"retries":200}`, `"quota":{"requests":1000,"refused":200,"aborted":0,"failed":0}`} {
		assert.Contains(t, string(text), want)
	}
}

func TestSeconds(t *testing.T) {
	assert.Equal(t, []string{"0.4 s", "59.9 s", "1 min 0 s", "62 min 5 s"}, []string{seconds(0.44), seconds(59.94), seconds(60), seconds(3725)})
}
