package campaign

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/e2e/testbed/internal/plainfiles"
	"github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"
)

func found(missing, twice, corrupt int64) sluicecmd.VerifyReport {
	return sluicecmd.VerifyReport{
		MissingRows: sluicecmd.Findings{Total: missing}, DuplicateRows: sluicecmd.Findings{Total: twice}, CorruptRows: sluicecmd.Findings{Total: corrupt},
	}
}

func TestTally_Judge_TakesTheWorseOfTheTwoReaders(t *testing.T) {
	for _, c := range []struct {
		name                   string
		v                      sluicecmd.VerifyReport
		f                      plainfiles.Tally
		lost, doubled, corrupt int64
	}{
		{"all there", found(0, 0, 0), plainfiles.Tally{Rows: 100}, 0, 0, 0},
		{"only the verifier sees it", found(3, 2, 1), plainfiles.Tally{Rows: 100}, 3, 2, 1},
		{"only the files show it", found(0, 0, 0), plainfiles.Tally{Rows: 99, Repeated: 2, Odd: 4}, 3, 2, 4},
		{"one row for another", found(0, 0, 0), plainfiles.Tally{Rows: 100, Repeated: 1}, 1, 1, 0},
		{"too many rows to compare", found(0, 0, 0), plainfiles.Tally{Rows: 100, Repeated: -1}, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			tally := newTally()
			tally.judge(100, c.v, c.f)
			assert.Equal(t, []int64{c.lost, c.doubled, c.corrupt}, []int64{tally.Lost, tally.Doubled, tally.Corrupt})
			assert.Equal(t, c.lost+c.doubled+c.corrupt == 0, tally.Clean())
		})
	}
}

func TestTally_Add_AddsEveryField(t *testing.T) {
	one := Tally{
		Jobs: 1, Failed: 2, Kills: map[place]int{storing: 3}, Terms: 4, Failures: 5, Processes: 6, Restarts: 7, Checkpoints: 8,
		Mishaps: map[mishap]int{cutBlob: 9}, Troubles: map[trouble]int{diskFull: 10}, ServerKills: 11, ServerKillsInComplete: 12,
		ServerLostFiles: 13, ServerLostRows: 14, ServerLostHealed: 15, Rows: 16, Sweeps: 17, Swept: 18, Unswept: 19, Leaked: 20,
		Lost: 21, Doubled: 22, Corrupt: 23, Duration: 24 * time.Second,
	}
	sum := newTally()
	sum.add(one)
	assert.Equal(t, one, sum)
	sum.add(one)
	assert.Equal(t, 6, sum.KillCount())
	assert.EqualValues(t, 46, sum.Corrupt)
}

func TestTally_AnythingWrong_IsNotClean(t *testing.T) {
	assert.True(t, Tally{ServerLostRows: 5, ServerLostFiles: 1}.Clean(), "what the server destroys is counted apart")
	for _, bad := range []Tally{{Failed: 1}, {Lost: 1}, {Doubled: 1}, {Corrupt: 1}, {Leaked: 1}} {
		assert.False(t, bad.Clean())
	}
}

func TestTally_Line_NamesPlacesInTheirOrder(t *testing.T) {
	tally := newTally()
	tally.Kills = map[place]int{stopping: 1, storing: 2, completing: 3}
	tally.Processes, tally.Checkpoints, tally.Rows, tally.Duration = 7, 9, 1000, 1500*time.Millisecond
	assert.Equal(t, "6 kills (inside a checkpoint 2, inside a Complete 3, while stopping 1), 7 processes, 9 checkpoints, "+
		"1000 rows proven, lost 0, doubled 0, corrupt 0, server-lost 0, leaked 0, 1.5 s", tally.line())
}
