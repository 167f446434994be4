package campaign

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/config"
)

func TestNewJobPlan_TheSameSeedAndNumber_GiveTheSameJob(t *testing.T) {
	assert.Equal(t, newJobPlan(7, 3), newJobPlan(7, 3))
	assert.NotEqual(t, newJobPlan(7, 3), newJobPlan(7, 4))
	assert.NotEqual(t, newJobPlan(7, 3), newJobPlan(8, 3))
	assert.Equal(t, newJobPlan(7, 3).String(), newJobPlan(7, 3).String())
}

func TestNewJobPlan_StaysWithinItsBounds(t *testing.T) {
	for number := 1; number <= 300; number++ {
		p := newJobPlan(1, number)
		assert.True(t, p.writers >= 2 && p.writers <= 6, p)
		assert.True(t, p.interval >= 200*time.Millisecond && p.interval <= time.Second, p)
		assert.True(t, len(p.lives) >= 4 && len(p.lives) <= 8, p)
		assert.LessOrEqual(t, p.rows*p.row, int64(192<<20), "a job is small")
		assert.Positive(t, p.rows)
		assert.Positive(t, p.pace)
		assert.True(t, p.file == 8<<20 || p.file < partSize, p)
		for i, l := range p.lives {
			assert.True(t, l.fraction >= 0 && l.fraction < 1)
			assert.True(t, l.trouble == noTrouble || l.mishap == noMishap, "one thing at a time, or nobody can say what it was")
			assert.False(t, l.term && l.end == stopping)
			if l.end == finishing {
				assert.Equal(t, len(p.lives)-1, i)
			}
			if l.trouble == diskFull || l.trouble == diskReadOnly || l.mishap == startFull || l.mishap == startReadOnly {
				assert.True(t, p.disk)
			}
		}
	}
}

// Some of each within what `make crash` runs, and most kills inside a checkpoint.
func TestNewJobPlan_ACampaignHasSomeOfEverything(t *testing.T) {
	var kills, inside int
	seen := map[any]int{}
	number := 1
	for ; kills < 200; number++ {
		p := newJobPlan(5, number)
		seen[p.onCheckpoint]++
		seen[p.file < partSize]++
		for _, l := range p.lives {
			seen[l.mishap]++
			seen[l.trouble]++
			if l.term {
				seen["term"]++
				continue
			}
			kills++
			seen[l.end]++
			if l.end == storing || l.end == completing || l.end == committing || l.end == finishing {
				inside++
			}
		}
	}
	for _, at := range places {
		assert.Positive(t, seen[at], at)
	}
	for _, m := range append(damages, serverRestart, startFull, startReadOnly) {
		assert.Positive(t, seen[m], m)
	}
	for _, tr := range []trouble{serverUploads, serverComplete, diskFull, diskReadOnly} {
		assert.Positive(t, seen[tr], tr)
	}
	assert.GreaterOrEqual(t, seen["term"], 10)
	assert.Greater(t, inside, kills/2)
	assert.Less(t, number, 60, "jobs are for killing")
}

func TestJobPlan_NamesKeepOneAndTenApart(t *testing.T) {
	assert.Equal(t, "job-1", newJobPlan(1, 1).name())
	assert.Equal(t, "job-10", newJobPlan(1, 10).name())
}

func TestPartSize_IsTheSmallestThatS3Takes(t *testing.T) {
	assert.Equal(t, config.MemorySize(5<<20), partSize)
}
