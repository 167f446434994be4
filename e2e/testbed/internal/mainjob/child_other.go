//go:build !unix

package mainjob

import "syscall"

// childAttr asks for nothing special.
func childAttr() *syscall.SysProcAttr { return nil }
