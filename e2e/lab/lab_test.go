package lab

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	labFlag       = flag.Bool("lab", false, "judge every goal with real clients (some ten minutes; with -short a share of them within one)")
	goalFlag      = flag.String("goal", "", "judge only the goals whose names match this regular expression")
	heldOutFlag   = flag.Bool("held-out", true, "judge the goals on held-out stores")
	simulatedFlag = flag.Bool("simulated", false, "judge by the simulator alone")
	seedsFlag     = flag.Int("seeds", 0, "judge by so many seeds at most")
	docsFlag      = flag.String("docs", "", "directory of the lab's documents, to be brought up to date")
	ratesFlag     = flag.String("rates", "", "file for the rates over time that the charts show")
)

// verdict is the last line of a lab. TestMain prints it when the testing package has had its say.
var verdict string

func TestMain(m *testing.M) {
	code := m.Run()
	if verdict != "" {
		fmt.Println(verdict)
	}
	os.Exit(code)
}

// TestLab is `make lab`. Without -lab it does nothing.
func TestLab(t *testing.T) {
	if !*labFlag {
		t.Skip("make lab runs it")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(1600)) // there is memory; the clients make much garbage
	begun := time.Now()
	goals := chosenGoals(t)
	runner := newLabRunner(t, *simulatedFlag)
	var rows []Row
	show := func(row Row) {
		if len(rows) == 0 || row.Section() != rows[len(rows)-1].Section() {
			fmt.Printf("\n%v\n\n", strings.ToUpper(row.Section().String()))
		}
		fmt.Print(row.Text())
		if row.Section() != Open && !row.OK() {
			t.Errorf("missed: %s", row.Goal.Name)
		}
		rows = append(rows, row)
	}
	if full() {
		show(costRow(t)) // before the machine has anything else to do
	}
	for _, g := range goals {
		runner.prepare(g)
	}
	for _, g := range goals {
		show(runner.judge(g))
	}
	if full() {
		fmt.Printf("\nThe simulator against real clients, and in real time\n\n")
		for _, a := range agreements() {
			fmt.Print(a.check(t, runner.run))
		}
		fmt.Print(inRealTime(t))
	}
	met, counted := Tally(rows)
	verdict = fmt.Sprintf("lab: %d of %d goals", met, counted)
	fmt.Printf("\n%d attempts by real clients, %d simulated, %v\n", runner.attempts[false], runner.attempts[true], time.Since(begun).Round(time.Second))
	if *docsFlag != "" && full() {
		require.NoError(t, replaceGenerated(filepath.Join(*docsFlag, "README.md"), "goals", GoalsMarkdown(rows)+verdict+"\n"))
	}
}

// full reports whether no goal is left out; how many seeds a row has, it says itself.
func full() bool {
	return !testing.Short() && *goalFlag == "" && *heldOutFlag && !*simulatedFlag
}

// chosenGoals are those that the flags ask for.
func chosenGoals(t *testing.T) (chosen []Goal) {
	want, err := regexp.Compile(*goalFlag)
	require.NoError(t, err)
	for _, g := range Goals() {
		if testing.Short() {
			g.Seeds = min(g.Seeds, shortSeeds(g))
		}
		if n := *seedsFlag; n > 0 {
			g.Seeds = min(g.Seeds, n)
		}
		if g.Seeds > 0 && want.MatchString(g.Name) && (*heldOutFlag || !g.HeldOut) {
			chosen = append(chosen, g)
		}
	}
	return chosen
}

// shortSeeds is how many seeds of a goal a short lab affords.
func shortSeeds(g Goal) int {
	if g.Open || g.HeldOut {
		return 0
	}
	return map[string]int{
		"wall 400/s, 96 threads, 1m0s, 10 retries": 2,
		"fresh client, one 503":                    5,
		"32 of 32 throttled at once":               1,
		"16 throttled, one call at +10ms":          50,
		"16 throttled, one call at +100ms":         50,
		"bursts after 30 s of rest, one 503 each":  3,
		"outage of 10 s, 32 threads":               1,
		"256 writers on 25/s":                      2,
		"4 clients x 32 threads":                   1,
	}[g.Name]
}

// The rest of the goals is `make lab`.
func TestTheQuickestGoalsAreMetByRealClients(t *testing.T) {
	runner := newLabRunner(t, false)
	quickest := map[string]int{"fresh client, one 503": 2, "16 throttled, one call at +10ms": 20, "16 throttled, one call at +500ms": 20}
	for _, g := range Goals() {
		if n := quickest[g.Name]; n > 0 {
			g.Seeds = n
			row := runner.judge(g)
			assert.True(t, row.OK(), row.Text())
		}
	}
}
