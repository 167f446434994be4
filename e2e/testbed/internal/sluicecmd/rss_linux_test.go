package sluicecmd

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/config"
)

func TestParseVmHWM_IsInKibibytes(t *testing.T) {
	size, ok := parseVmHWM([]byte("Name:\tsluice\nVmPeak:\t 2000 kB\nVmHWM:\t  151244 kB\nVmRSS:\t 1 kB\n"))
	assert.True(t, ok)
	assert.Equal(t, config.MemorySize(151244*1024), size)
}

func TestParseVmHWM_OfAZombie_IsNotKnown(t *testing.T) {
	_, ok := parseVmHWM([]byte("Name:\tsluice\nState:\tZ (zombie)\n"))
	assert.False(t, ok)
}

func TestPeakRSS_OfThisProcess_IsPlausible(t *testing.T) {
	size, ok := peakRSS(os.Getpid())
	assert.True(t, ok)
	assert.Greater(t, size, config.MemorySize(1<<20))
	assert.Less(t, size, config.MemorySize(1<<40))
}
