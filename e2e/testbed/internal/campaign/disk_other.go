//go:build !linux

package campaign

import "errors"

// disk is a small file system of its own. There is none here.
type disk struct{}

var errNoDisk = errors.New("disks in memory are mounted on Linux only")

func mountDisk(string) (*disk, error)           { return nil, errNoDisk }
func (d *disk) unmount() error                  { return errNoDisk }
func (d *disk) fill() (func() error, error)     { return nil, errNoDisk }
func (d *disk) readOnly() (func() error, error) { return nil, errNoDisk }
func canMount(string) error                     { return errNoDisk }
