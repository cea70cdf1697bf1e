//go:build !linux

package slowdisk

import (
	"context"
	"errors"
)

var errLinux = errors.New("slow storage needs Linux")

type (
	guard struct{}
	limit struct{}
)

func serve() bool { return false }

func open(context.Context, Kind, Options) (*Disk, error) { return nil, errLinux }

// Slow needs Linux.
func (*Disk) Slow() error { return errLinux }

// Fast needs Linux.
func (*Disk) Fast() error { return errLinux }

// Close needs Linux.
func (*Disk) Close() error { return errLinux }

// Cold needs Linux.
func Cold(string) error { return errLinux }
