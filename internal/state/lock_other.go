//go:build !linux

package state

import (
	"errors"
	"os"
	"time"
)

// ErrLocked is not returned on this platform.
var ErrLocked = errors.New("another process keeps it locked")

// Lock does nothing: agents run on Linux only.
func Lock(*os.File, time.Duration) error { return nil }

func setOwner(*os.File, os.FileInfo) {}
