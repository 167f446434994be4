package quota

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"
)

// ran is a job that came to its end, with counts that are easy to check by hand.
func ran(lane Lane, mode string, seconds float64, requests, refused int64) Result {
	return Result{
		Job:  Job{Lane: lane, Mode: mode, Writers: 16, Retries: 10, Size: 1 << 30, File: 20 << 20, Detail: true},
		Rows: 1 << 20, Proven: true,
		Write: Phase{
			Seconds: seconds, Bytes: 1 << 30, Client: &sluicecmd.Totals{Calls: requests - refused, Attempts: requests, Throttles: refused, Retries: refused},
			Quota: Tally{Requests: requests, Refused: refused},
		},
		Read: &Phase{Seconds: 10, Bytes: 1 << 30, Client: &sluicecmd.Totals{Calls: 60, Attempts: 80, Throttles: 20, Retries: 20}, Quota: Tally{Requests: 80, Refused: 20}},
	}
}

func dead(lane Lane, mode string) Result {
	return Result{
		Job:  Job{Lane: lane, Mode: mode, Writers: 256, Retries: 10, Size: 2 << 30, File: 20 << 20},
		Rows: 2 << 20, ExitCode: 1, LastError: "upload part 1 of s3://b/k (upload u) after 11 attempts: SlowDown: Please reduce your request rate. [status 503, request r]", Why: "the job died",
		Write: Phase{Seconds: 56, Client: &sluicecmd.Totals{Calls: 500, Attempts: 2000, Throttles: 1600, Retries: 1500}, Quota: Tally{Requests: 2002, Refused: 1600, Aborted: 2}},
	}
}

func TestJudge_StandardMayDie(t *testing.T) {
	assert.Empty(t, judge([]Result{dead(SlowDown, Standard), ran(SlowDown, Adaptive, 100, 800, 8)}))
}

func TestJudge_AdaptiveMustBeProven(t *testing.T) {
	assert.Equal(t, []string{"503/adaptive/256x10 died after 56.0 s: upload part, 11 attempts, the last one: SlowDown: Please reduce your request rate."},
		judge([]Result{dead(SlowDown, Adaptive)}))
	lost := ran(Close, Adaptive, 100, 800, 8)
	lost.Proven, lost.Why = false, "read-back: 3 rows are missing"
	assert.Equal(t, []string{"close/adaptive/16x10 is not proven: read-back: 3 rows are missing"}, judge([]Result{lost}))
}

func TestJudge_AdaptiveMustNotBeWorseThanItsTwin(t *testing.T) {
	s := ran(SlowDown, Standard, 100, 1000, 200)
	assert.Empty(t, judge([]Result{s, ran(SlowDown, Adaptive, 90, 820, 20)}))
	assert.Empty(t, judge([]Result{s, ran(SlowDown, Adaptive, 109, 820, 20)}), "within what two runs differ by")
	assert.Equal(t, []string{"503/adaptive/16x10 took 1 min 51 s to write, standard 1 min 40 s"}, judge([]Result{s, ran(SlowDown, Adaptive, 111, 820, 20)}))
	assert.Equal(t, []string{"503/adaptive/16x10: 25.0 % of its requests were refused, 20.0 % of standard's"}, judge([]Result{s, ran(SlowDown, Adaptive, 90, 1000, 250)}))
	assert.Empty(t, judge([]Result{s, ran(Close, Adaptive, 500, 1000, 900)}), "another lane is no twin")
}

func TestJudge_TwinThatIsNotProven_IsNoMeasure(t *testing.T) {
	s := ran(SlowDown, Standard, 1, 1000, 0)
	s.Proven = false
	assert.Empty(t, judge([]Result{s, ran(SlowDown, Adaptive, 90, 820, 20)}))
}

func TestVerdict_Counts(t *testing.T) {
	assert.Equal(t, "standard died in 1 of 2 jobs; adaptive is proven in 1 of 1 and lost to standard in none",
		verdict([]Result{dead(SlowDown, Standard), ran(SlowDown, Standard, 100, 1000, 200), ran(SlowDown, Adaptive, 100, 820, 20)}))
}

func TestNotes_SayWhatTheTablesDoNot(t *testing.T) {
	survivor := ran(SlowDown, Standard, 100, 1000, 200)
	survivor.Writers = 32
	slow := ran(SlowDown, Adaptive, 100, 410, 10) // 4 a second of 8
	got := notes(valid(), []Result{survivor, slow})
	assert.Len(t, got, 2)
	assert.Contains(t, got[0], "503/adaptive/16x10 used 50 % of the quota only")
	assert.Contains(t, got[1], "32 writers, 10 retries")
	assert.Empty(t, notes(valid(), []Result{dead(SlowDown, Standard), ran(SlowDown, Adaptive, 100, 800, 20)}))
}

func TestWords_TheFirstReasonOfTheCommandCounts(t *testing.T) {
	var w words
	assert.Empty(t, w.last())
	w.take(`time=x level=INFO msg=progress`)
	assert.Equal(t, `time=x level=INFO msg=progress`, w.last())
	w.take("sluice: the first")
	w.take("sluice: the second")
	w.take("")
	assert.Equal(t, "the first", w.last())
}

func TestShort_KeepsOperationAttemptsAndAnswer(t *testing.T) {
	for text, want := range map[string]string{
		"checkpoint 1: store of sink: store the sink's files at checkpoint 1: create upload of s3://b/k after 11 attempts: SlowDown: Please reduce your request rate. [status 503, request 3a]": "create upload, 11 attempts, the last one: SlowDown: Please reduce your request rate.",
		"upload part 1 of s3://b/k (upload 6960) after 6 attempts: EOF": "upload part, 6 attempts, the last one: EOF",
		"no disk | left": "no disk / left",
	} {
		assert.Equal(t, want, short(text))
	}
	assert.Len(t, []rune(short(string(make([]rune, 1000)))), 163)
}
