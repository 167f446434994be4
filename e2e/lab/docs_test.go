package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDocs is `make labdocs`: it writes the tables into the directory of -docs and the rates that the charts show to the file of -rates.
func TestDocs(t *testing.T) {
	if *docsFlag == "" || *ratesFlag == "" {
		t.Skip("make labdocs runs it")
	}
	raw, err := json.MarshalIndent(Charts(1), "", " ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(*ratesFlag, raw, 0o644))
	for _, c := range Chapters() {
		begun := time.Now()
		require.NoError(t, os.WriteFile(filepath.Join(*docsFlag, c.File), []byte(chapterMarkdown(c)), 0o644))
		fmt.Println(c.File, time.Since(begun).Round(time.Second))
	}
	require.NoError(t, os.WriteFile(filepath.Join(*docsFlag, "sensitivity.md"), []byte(sensitivityMarkdown()), 0o644))
}

// chapterMarkdown simulates all scenarios of a chapter with all policies.
func chapterMarkdown(c Chapter) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", c.Title, c.Lead)
	b.WriteString("Simulated; median (lowest-highest) of ten seeds, fewer for the longest runs. Made by `make labdocs`; [how to read it](README.md).\n")
	specimens := Specimens()
	for _, s := range c.Scenarios {
		b.WriteString("\n" + TableMarkdown(s, specimens, sideBySide(s, specimens)))
	}
	return b.String()
}

// sideBySide runs a scenario with all policies and seeds, as many at a time as there are processors.
func sideBySide(s Scenario, specimens []Specimen) [][]Result {
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	var runs sync.WaitGroup
	results := make([][]Result, len(specimens))
	for i, p := range specimens {
		results[i] = make([]Result, tableSeeds(s, p))
		for seed := range results[i] {
			free <- struct{}{}
			runs.Go(func() {
				results[i][seed] = Simulate(s, p.Policy(s), p.Retries, uint64(seed)+1)
				<-free
			})
		}
	}
	runs.Wait()
	return results
}

// tableSeeds is ten, or fewer where a run is long. The pollers of the Go SDK, all of which wake up for every token, take the simulator longest.
func tableSeeds(s Scenario, p Specimen) int {
	w := s.Workload
	threads := w.Threads * max(w.Clients, 1)
	switch {
	case threads > 500 && strings.HasPrefix(p.Name, "Go"):
		return 1
	case threads > 500, w.Duration >= longRun && threads >= 32:
		return 3
	case w.Duration >= 3*time.Minute:
		return 5
	default:
		return 10
	}
}

func TestEveryScenarioIsInOneChapter(t *testing.T) {
	n := 0
	for _, c := range Chapters() {
		assert.NotEmpty(t, c.Scenarios, c.File)
		n += len(c.Scenarios)
	}
	assert.Len(t, Catalogue(), n)
}

func TestATableHasARowForEachPolicyAndTheRangeOfItsSeeds(t *testing.T) {
	s := SecondClient()
	specimens := Specimens()[:2]
	r := func(ms int) Result {
		return Result{Calls: 100, Failed: ms / 50, Attempts: 200, Throttled: 20, Probes: []time.Duration{time.Duration(ms) * time.Millisecond}}
	}
	table := TableMarkdown(s, specimens, [][]Result{{r(50), r(70), r(60)}, {r(50)}})
	lines := strings.Split(table, "\n")
	assert.Equal(t, "### 16 calls of a second client throttled, then one call", lines[0])
	assert.Equal(t, "| standard, 3 retries | 60 (50-70) | 10.0 | 100.0 | 0.0 |", lines[4])
	assert.Equal(t, "| standard, 10 retries | 50 | 10.0 | 100.0 | 0.0 |", lines[5])
}

func TestRatesAreMeansOfBins(t *testing.T) {
	r := Result{Seconds: []Second{{OK: 1}, {OK: 2, Throttled: 3, Rate: 10}, {OK: 4, Throttled: 1, Rate: 20}, {OK: 6}}}
	s := chart{from: time.Second, to: 5 * time.Second, bin: 2 * time.Second}.series("p", r)
	assert.Equal(t, Series{Policy: "p", OK: []float64{3, 3}, Refused: []float64{2, 0}, Allowed: []float64{15, 0}}, s)
}

func TestGeneratedTextGoesBetweenItsMarkers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "README.md")
	require.NoError(t, os.WriteFile(path, []byte("a\n<!-- goals -->\nold\n<!-- /goals -->\nb\n"), 0o600))
	for range 2 {
		require.NoError(t, replaceGenerated(path, "goals", "new\n"))
	}
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "a\n<!-- goals -->\n\nnew\n\n<!-- /goals -->\nb\n", string(raw))
	require.Error(t, replaceGenerated(path, "other", "new\n"))
}

func TestTheQuotaOfThePullRequestIsInOneChapter(t *testing.T) {
	for _, c := range Chapters() {
		for _, s := range c.Scenarios {
			if strings.Contains(s.Name, "writers, bucket 25/s") {
				assert.Equal(t, "others.md", c.File, s.Name)
			}
		}
	}
}
