package quotafront

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// at is a time of the tests' own clock.
func at(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }

// passed offers n requests at one time and returns how many pass.
func passed(b *Bucket, now time.Time, n int) (passed int) {
	for range n {
		if b.Take(now) {
			passed++
		}
	}
	return passed
}

func TestBucket_AfterAQuietTime_TheBurstAndOneMorePass(t *testing.T) {
	b := NewBucket(8, 8)
	assert.Equal(t, 9, passed(b, at(0), 100))
	assert.Equal(t, 9, passed(b, at(60_000), 100), "a minute later it is empty again, and no emptier")
}

func TestBucket_Full_OneMorePassesForEachTick(t *testing.T) {
	b := NewBucket(8, 8)
	passed(b, at(0), 100)
	assert.Zero(t, passed(b, at(124), 5))
	assert.Equal(t, 1, passed(b, at(125), 5), "8 a second are one every 125 ms")
	assert.Zero(t, passed(b, at(249), 5))
	assert.Equal(t, 3, passed(b, at(500), 5))
}

func TestBucket_NoBurst_OneAtATime(t *testing.T) {
	b := NewBucket(10, 0)
	assert.Equal(t, 1, passed(b, at(0), 3))
	assert.Zero(t, passed(b, at(99), 3))
	assert.Equal(t, 1, passed(b, at(100), 3))
}

func TestBucket_Overload_TheRatePassesWhateverIsRefused(t *testing.T) {
	b := NewBucket(8, 8)
	total := 0
	for ms := 0; ms < 60_000; ms += 10 {
		total += passed(b, at(ms), 3) // 300 a second
	}
	assert.InDelta(t, 9+60*8, total, 1, "refused requests cost nothing")
}

func TestBucket_AtTheRate_AllPass(t *testing.T) {
	b := NewBucket(8, 0)
	for i := range 1000 {
		assert.Equal(t, 1, passed(b, at(i*125), 1))
	}
}

func TestBucket_NoRate_AllPass(t *testing.T) {
	assert.Equal(t, 1000, passed(NewBucket(0, 0), at(0), 1000))
}

func TestBucket_ClockThatGoesBack_GivesNothing(t *testing.T) {
	b := NewBucket(8, 1)
	assert.Equal(t, 2, passed(b, at(1000), 5))
	assert.Zero(t, passed(b, at(0), 5))
	assert.Zero(t, passed(b, at(1124), 5), "the second from 0 to 1000 does not count twice")
	assert.Equal(t, 1, passed(b, at(1125), 5))
}

func TestBucket_ManyAtOnce_StillTheBurst(t *testing.T) {
	b := NewBucket(8, 8)
	var wg sync.WaitGroup
	var n atomic.Int64
	for range 50 {
		wg.Go(func() { n.Add(int64(passed(b, at(0), 10))) })
	}
	wg.Wait()
	assert.EqualValues(t, 9, n.Load())
}
