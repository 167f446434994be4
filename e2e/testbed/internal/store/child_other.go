//go:build !unix

package store

import "syscall"

// childAttr asks for nothing special: the end of its standard input tells the
// server that the parent died.
func childAttr() *syscall.SysProcAttr { return nil }
