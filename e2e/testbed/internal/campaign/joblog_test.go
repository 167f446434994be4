package campaign

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// at is a time of the tests' own clock.
func at(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }

// told is the log of a process that has printed lines, 10 ms apart.
func told(lines ...string) *jobLog {
	g := newJobLog(at(0))
	for i, l := range lines {
		g.line(l, at(10*(i+1)))
	}
	return g
}

const (
	started    = `level=INFO msg="job started" restored_checkpoint=3 epoch=4 rows_before=4711 writers=2`
	begun4     = `level=INFO msg="checkpoint begun" id=4`
	durable4   = `level=INFO msg="checkpoint durable" id=4 barrier=1ms`
	committed4 = `level=INFO msg="checkpoint committed" id=4 commit=1ms`
)

func TestJobLog_TellsWhereTheProcessIs(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		want  place
	}{
		{"nothing said", nil, starting},
		{"only the commit of what was restored", []string{`msg="checkpoint committed" id=3`}, starting},
		{"running", []string{started}, between},
		{"begun", []string{started, begun4}, storing},
		{"durable", []string{started, begun4, durable4}, committing},
		{"committed", []string{started, begun4, durable4, committed4}, between},
		{"the next one is begun before this one is committed", []string{started, begun4, durable4, `msg="checkpoint begun" id=5`}, committing},
		{"this one is committed, the next one is begun", []string{started, begun4, durable4, `msg="checkpoint begun" id=5`, committed4}, storing},
		{"abandoned", []string{started, begun4, `level=WARN msg="checkpoint failed" id=4 error=x`}, between},
		{"not committed", []string{started, begun4, durable4, `level=WARN msg="checkpoint failed" id=4 error=x`}, between},
	} {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, told(c.lines...).place()) })
	}
}

func TestJobLog_KeepsWhatAStartHasSaid(t *testing.T) {
	g := told(started, begun4, durable4, `level=INFO msg="job started" restored_checkpoint=4 epoch=5 rows_before=5000`)
	assert.Equal(t, []jobStart{{restored: 3, epoch: 4, rows: 4711}, {restored: 4, epoch: 5, rows: 5000, durable: 4, begun: 4}}, g.starts)
	assert.Equal(t, between, g.place(), "a new attempt has no checkpoint under way")
}

func TestJobLog_MeasuresPlaces(t *testing.T) {
	g := told(started, begun4, durable4, `msg=progress`, committed4)
	assert.Equal(t, 10*time.Millisecond, g.startLength)
	assert.Equal(t, 10*time.Millisecond, g.storeLength)
	assert.Equal(t, 20*time.Millisecond, g.commitLength)
	s := lengths{start: 30 * time.Millisecond, store: 30 * time.Millisecond, commit: 30 * time.Millisecond}
	s.learn(g)
	s.learn(newJobLog(at(0)))
	assert.Equal(t, lengths{start: 20 * time.Millisecond, store: 20 * time.Millisecond, commit: 25 * time.Millisecond}, s)
}

func TestJobLog_Said_IsAboutOneError(t *testing.T) {
	g := told(`level=WARN msg="checkpoint failed" id=4 error="commit of s3://b/x (upload u1): not proven: nothing is at the key\ncommit of s3://b/y (upload u2): head: timeout"`,
		"sluice: restore: blobs/7.blob is damaged")
	assert.True(t, g.said("u1", missingText))
	assert.False(t, g.said("u2", missingText), "that is the other one's")
	assert.True(t, g.said("7.blob"))
	assert.True(t, g.said(""))
	assert.False(t, newJobLog(at(0)).said(""))
}

func TestJobLog_ReadsTheStatement(t *testing.T) {
	g := told("stopped: 47552 rows in 15 files are published (48693248 bytes); 12 rows are durable in the last checkpoint and not yet published; 3 rows were generated after it and will be again; 3 checkpoints, 0 restarts, 1.0 s")
	assert.Equal(t, &statement{state: "stopped", rows: 47552, files: 15, bytes: 48693248, staged: 12}, g.statement)
	assert.Nil(t, told("not started: no row was generated").statement)
}

func TestJobLog_SeesAPanic(t *testing.T) {
	assert.True(t, told("panic: runtime error: index out of range").panicked)
	assert.False(t, told(`level=WARN msg="x" error="panic: no"`).panicked)
}

func TestContinuity_RefusesWhatLosesOrRepeats(t *testing.T) {
	rows := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name string
		job  job
		want string
	}{
		{"goes on from the durable one", job{durable: 3, begun: 3, epoch: 3, promise: rows(4711)}, ""},
		{"the last one was begun, and durable after all", job{durable: 2, begun: 3, epoch: 3}, ""},
		{"a durable one is gone", job{durable: 4, begun: 4, epoch: 3}, "checkpoint 3 was restored, but 4 was durable and 4 begun"},
		{"from nowhere", job{durable: 2, begun: 2, epoch: 3}, "checkpoint 3 was restored, but 2 was durable and 2 begun"},
		{"an epoch again", job{durable: 3, begun: 3, epoch: 4}, "epoch 4 after epoch 4"},
		{"not what was stated", job{durable: 3, begun: 3, epoch: 3, promise: rows(4712)}, "stated 4712 published and staged rows, this one begins with 4711"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.job.continuity(told(started, begun4))
			if c.want == "" {
				assert.NoError(t, err)
				assert.Nil(t, c.job.promise)
				assert.EqualValues(t, 4, c.job.begun)
				return
			}
			assert.ErrorContains(t, err, c.want)
		})
	}
}
