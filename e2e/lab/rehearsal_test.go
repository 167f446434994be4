package lab

import (
	"context"
	"errors"
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
		undisturbed, all, err := r.Run(t.Context())
		require.NoError(t, err)
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

// All that is refused is said once for each tick, to those who come first.
func TestRehearsalOfClustersRefusesSoManyAtATime(t *testing.T) {
	r := DefaultRehearsal()
	r.Every, r.Cluster = 20*time.Second, 16
	require.NoError(t, r.Validate())
	_, all, err := r.Run(t.Context())
	require.NoError(t, err)
	standard := all[0].Result
	assert.Equal(t, 2*16, standard.Throttled, "at 20 s and 40 s of a minute")
	assert.Equal(t, Clusters, PatternOf(r.Scenario().Workload, standard))
	r.Burst = 100
	assert.ErrorContains(t, r.Validate(), "cluster: ")
	r = DefaultRehearsal()
	r.Cluster = 16
	assert.ErrorContains(t, r.Validate(), "cluster: ")
}

// The blog's question has a number for an answer: 32 threads at a wall of 200/s have to wait 60 ms longer than the 100 ms of a call.
func TestExtraTimeOfACallIsWhatLittlesLawSays(t *testing.T) {
	r := DefaultRehearsal()
	r.Limit, r.Retries = 200, 10
	_, all, err := r.Run(t.Context())
	require.NoError(t, err)
	for _, x := range all[:2] {
		assert.InDelta(t, 32.0/x.Goodput()-0.1, x.Extra.Seconds(), 0.005, x.Policy)
	}
}

// The blog's drip as calls that come in on time: the SDK's limiter lets a third of them through, and those that wait for it all poll it. That half hour would take hours.
func TestRehearsalEndsWhereCallsPileUpBehindALimiter(t *testing.T) {
	r := DefaultRehearsal()
	r.Rate, r.Every, r.Duration = 80, 3*time.Second, 30*time.Minute
	_, all, err := r.Run(t.Context())
	require.NoError(t, err)
	for _, x := range all[:2] {
		assert.Zero(t, x.Cut, x.Policy)
		assert.InDelta(t, 80, x.Goodput(), 1, x.Policy)
	}
	sdk := all[2]
	assert.Greater(t, sdk.Cut, time.Minute)
	assert.Less(t, sdk.Cut, r.Duration)
	assert.Equal(t, sdk.Cut, sdk.Span)
	assert.Less(t, sdk.Goodput(), 70.0, "of the time that was simulated")
}

func TestRehearsalEndsWithItsContext(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	stop(cause)
	_, _, err := DefaultRehearsal().Run(ctx)
	assert.ErrorIs(t, err, cause)
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
