//go:build !unix

package sluicecmd

import "syscall"

// childAttr asks for nothing special.
func childAttr() *syscall.SysProcAttr { return nil }
