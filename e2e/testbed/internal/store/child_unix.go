//go:build unix && !linux

package store

import "syscall"

// childAttr puts the server into a process group of its own, so that an
// interrupt typed at the terminal does not reach it before the job has taken
// its last checkpoint. The end of its standard input tells it that the parent died.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
