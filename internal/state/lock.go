package state

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// lockInterval is the time between two attempts to get a lock. Holders need milliseconds.
const lockInterval = 5 * time.Millisecond

// ErrLocked is the error of a lock that other processes kept for too long.
var ErrLocked = errors.New("another process keeps it locked")

// Lock takes an exclusive lock (flock) on an open file or folder, which ends when it is closed. It waits at most so
// long for other holders. A file system without locks is used without.
func Lock(file *os.File, wait time.Duration) error {
	for end := time.Now().Add(wait); ; time.Sleep(lockInterval) {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return nil
		case !time.Now().Before(end):
			return ErrLocked
		}
	}
}

// setOwner gives a new file the owner and the group of another one. Only root can change the owner, and others can
// choose only a group of theirs, so errors are ignored.
func setOwner(file *os.File, from os.FileInfo) {
	s, ok := from.Sys().(*syscall.Stat_t)
	if ok && file.Chown(int(s.Uid), int(s.Gid)) != nil {
		_ = file.Chown(-1, int(s.Gid))
	}
}
