package sluicecmd

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"github.com/sluice-go/sluice/config"
)

// peakRSS returns the greatest resident size that a running process has had so
// far, VmHWM of its status file. ok is false when the process is gone.
func peakRSS(pid int) (size config.MemorySize, ok bool) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	return parseVmHWM(status)
}

func parseVmHWM(status []byte) (config.MemorySize, bool) {
	for line := range bytes.Lines(status) {
		value, ok := bytes.CutPrefix(line, []byte("VmHWM:"))
		if !ok {
			continue
		}
		value = bytes.TrimSuffix(bytes.TrimSpace(value), []byte(" kB"))
		kb, err := strconv.ParseInt(string(value), 10, 64)
		return config.MemorySize(kb << 10), err == nil
	}
	return 0, false // a zombie has no memory any more
}
