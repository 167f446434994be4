package store

import "syscall"

// childAttr puts the server into a process group of its own, so that an
// interrupt typed at the terminal does not reach it before the job has taken
// its last checkpoint, and asks the kernel to kill it with its parent.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
