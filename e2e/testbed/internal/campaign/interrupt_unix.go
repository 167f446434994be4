//go:build unix

package campaign

import "os"

// interrupt asks a process to end. The go command passes it on to its test.
func interrupt(p *os.Process) error { return p.Signal(os.Interrupt) }
