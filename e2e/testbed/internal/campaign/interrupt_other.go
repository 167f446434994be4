//go:build !unix

package campaign

import "os"

// interrupt ends a process: there is nothing gentler here.
func interrupt(p *os.Process) error { return p.Kill() }
