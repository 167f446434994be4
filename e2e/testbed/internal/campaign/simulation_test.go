package campaign

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLines_FindTheResultHoweverItIsCut(t *testing.T) {
	var out bytes.Buffer
	l := &lines{to: &out}
	_, found := l.result()
	assert.False(t, found)
	const text = "rows 12\nsimulation: seeds=2000 failed=3 lost=4 doubled=5 corrupt=6 in 1m2s, 32.2 seeds/s\nok  \tsim\t62s\n"
	for i := range text {
		n, err := l.Write([]byte(text[i : i+1]))
		require.NoError(t, err)
		assert.Equal(t, 1, n)
	}
	r, found := l.result()
	assert.True(t, found)
	assert.Equal(t, SimulationResult{Seeds: 2000, Failed: 3, Lost: 4, Doubled: 5, Corrupt: 6}, r)
	assert.Equal(t, text, out.String())
}

func TestRunSimulation_NoSeeds_RunsNothing(t *testing.T) {
	r, err := RunSimulation(t.Context(), Simulation{Dir: "/nowhere"})
	require.NoError(t, err)
	assert.Zero(t, r)
}
