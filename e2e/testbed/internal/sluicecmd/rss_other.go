//go:build !linux

package sluicecmd

import "github.com/sluice-go/sluice/config"

// peakRSS is known on Linux only.
func peakRSS(int) (config.MemorySize, bool) { return 0, false }
