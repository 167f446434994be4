package lab

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRehearsalSaysWhereAWorkloadIs(t *testing.T) {
	for want, change := range map[Pattern]func(*Rehearsal){
		Untouched:    func(*Rehearsal) {},
		DripPattern:  func(r *Rehearsal) { r.Every = 3 * time.Second },
		Clusters:     func(r *Rehearsal) { r.Outage = 200 * time.Millisecond },
		BurstPattern: func(r *Rehearsal) { r.Burst, r.Pause, r.Every = 320, 10*time.Second, time.Second },
		Steady:       func(r *Rehearsal) { r.Limit = 200 },
	} {
		r := DefaultRehearsal()
		change(&r)
		require.NoError(t, r.Validate())
		undisturbed, all := r.Run()
		require.Len(t, all, 3)
		assert.Equal(t, want, PatternOf(r.Scenario().Workload, all[0].Result), want)
		if r.Burst == 0 {
			assert.InDelta(t, 320, undisturbed.Goodput(), 2, "32 threads, 100 ms a call")
		}
		for _, x := range all {
			assert.LessOrEqual(t, x.Goodput(), undisturbed.Goodput()*1.01, x.Policy)
			assert.Equal(t, want == Untouched, x.Throttled == 0, x.Policy)
		}
	}
}

// The blog's question has a number for an answer: 32 threads at a wall of 200/s have to wait 60 ms longer than the 100 ms of a call.
func TestExtraTimeOfACallIsWhatLittlesLawSays(t *testing.T) {
	r := DefaultRehearsal()
	r.Limit, r.Retries = 200, 10
	_, all := r.Run()
	for _, x := range all[:2] {
		assert.InDelta(t, 32.0/x.Goodput()-0.1, x.Extra.Seconds(), 0.005, x.Policy)
	}
}

func TestRehearsalRefusesWhatMakesNoSense(t *testing.T) {
	err := Rehearsal{}.Validate()
	for _, what := range []string{"clients", "threads", "call time", "duration", "window"} {
		assert.ErrorContains(t, err, what+": ")
	}
	r := DefaultRehearsal()
	r.Threads, r.Duration = 10_000, time.Hour
	assert.ErrorContains(t, r.Validate(), "simulated")
	r = DefaultRehearsal()
	r.Outage = r.Duration
	assert.ErrorContains(t, r.Validate(), "outage")
}
