//go:build unix && !linux

package sluicecmd

import "syscall"

// childAttr puts the job into a process group of its own, so that an interrupt
// typed at the terminal reaches it through the driver only, once.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
