package campaign

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOptions_Validate_ReportsEveryProblemAtOnce(t *testing.T) {
	err := Options{Kills: -1, Job: 3, Sluice: "/none"}.Validate()
	for _, name := range []string{"KILLS: -1", "--job: a job is told by its number and the seed", "--timeout", "--sluice"} {
		assert.ErrorContains(t, err, name)
	}
	assert.ErrorContains(t, Options{Job: -1}.Validate(), "--job: -1")
}

func TestRun_NoKills_StartsNothing(t *testing.T) {
	o := options(t)
	o.Kills = 0
	tally, err := Run(t.Context(), o)
	assert.NoError(t, err)
	assert.Zero(t, tally.KillCount())
	assert.True(t, tally.Clean())
}
