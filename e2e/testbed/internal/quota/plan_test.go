package quota

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/config"
)

func valid() Options {
	return Options{Size: 2 << 30, Rate: 8, Burst: 8, CallTime: 300 * time.Millisecond, Parallel: 2, Timeout: time.Minute, Sluice: os.Args[0], Out: &bytes.Buffer{}, Log: &bytes.Buffer{}}
}

func names(jobs []Job) map[string]bool {
	m := map[string]bool{}
	for _, j := range jobs {
		m[j.Name()] = true
	}
	return m
}

func TestPlan_HasTheJobsOfThePullRequestInBothLanesAndModes(t *testing.T) {
	want := map[string]bool{}
	for _, lane := range []string{"503", "close"} {
		for _, pair := range []string{"256x10", "32x10", "16x10"} {
			want[lane+"/standard/"+pair], want[lane+"/adaptive/"+pair] = true, true
		}
	}
	want["503/standard/256x20"] = true
	jobs := plan(valid())
	assert.Equal(t, want, names(jobs))
	assert.Len(t, jobs, len(want), "no name twice")

	all := valid()
	all.All = true
	want["503/adaptive/256x20"], want["close/standard/256x20"], want["close/adaptive/256x20"] = true, true, true
	assert.Equal(t, want, names(plan(all)))
}

func TestPlan_EveryDeathOfThePullRequestIsTriedAgain(t *testing.T) {
	tried := map[string]bool{}
	for _, j := range plan(valid()) {
		if j.Mode == Standard {
			tried[j.pair()] = true
		}
	}
	for pair := range publishedDeaths {
		assert.True(t, tried[pair], pair)
	}
	assert.True(t, tried["16 writers, 10 retries"], "the long table")
}

func TestPlan_TwinsDifferInTheModeOnly(t *testing.T) {
	o := valid()
	o.All = true
	twins := map[string]Job{}
	for _, j := range plan(o) {
		mode := j.Mode
		j.Mode, j.Extra = "", false
		key := string(j.Lane) + j.pair()
		if other, ok := twins[key]; ok {
			assert.Equal(t, other, j, mode)
		}
		twins[key] = j
	}
	assert.Len(t, twins, 8)
}

func TestPlan_TheLargestJobsComeFirst(t *testing.T) {
	jobs := plan(valid())
	assert.Equal(t, 256, jobs[0].Writers)
	assert.Equal(t, 16, jobs[len(jobs)-1].Writers)
}

func TestPlan_Short_IsOnePairForEachLane(t *testing.T) {
	o := valid()
	o.Short = true
	assert.Equal(t, map[string]bool{"503/standard/96x8": true, "503/adaptive/96x8": true, "close/standard/96x8": true, "close/adaptive/96x8": true}, names(plan(o)))
}

func TestPlan_Only_ChoosesByName(t *testing.T) {
	o := valid()
	o.Only = "^503/.*/256x"
	assert.Equal(t, map[string]bool{"503/standard/256x10": true, "503/standard/256x20": true, "503/adaptive/256x10": true, "503/adaptive/256x20": true}, names(plan(o)))
}

func TestValidate_NamesEverythingThatIsWrong(t *testing.T) {
	require.NoError(t, valid().Validate())
	bad := Options{Size: 1, Rate: 0, Burst: -1, CallTime: -1, Only: "none", Sluice: "/no/such/sluice"}
	err := bad.Validate()
	for _, flag := range []string{"--size", "--rate", "--burst", "--call-time", "--parallel", "--timeout", "--only: no job", "--sluice"} {
		assert.ErrorContains(t, err, flag)
	}
	bad.Only = "("
	assert.ErrorContains(t, bad.Validate(), "--only: error parsing")
}

func TestSettings_AreThoseOfThePullRequest(t *testing.T) {
	j := Job{Lane: SlowDown, Mode: Adaptive, Writers: 32, Retries: 10, Size: 1 << 30, File: 20 << 20, Interval: 5 * time.Minute, Buffers: 2}
	got := map[string]string{}
	for _, s := range j.settings(target{endpoint: "http://127.0.0.1:1", region: "r", accessKey: "a", secretKey: "s"}, "/c", "sdk") {
		got[s.Key] = s.Value
	}
	for key, want := range map[string]string{
		"s3.retry.mode": "adaptive", "s3.retry.max-num-retries": "10", "s3.retry.adaptive.limiter": "sdk", "restart-strategy.type": "none",
		"sink.writers": "32", "datagen.number-of-rows": "1048576", "datagen.fields.f.length": "1023",
		"s3.endpoint": "http://127.0.0.1:1", "checkpoint.dir": "/c", "checkpoint.interval": "5 min",
	} {
		assert.Equal(t, want, got[key], key)
	}
	budget, err := config.ParseSize(got["sink.memory.budget"])
	require.NoError(t, err)
	assert.EqualValues(t, 2*32*5<<20, budget)
	for key := range got {
		assert.NotContains(t, []string{"s3.retry.base-delay", "s3.retry.throttle.base-delay", "s3.retry.max-backoff"}, key, "the waits are the defaults")
	}

	j.Mode = Standard
	for _, s := range j.settings(target{}, "/c", "sdk") {
		assert.NotEqual(t, "s3.retry.adaptive.limiter", s.Key)
	}
}
