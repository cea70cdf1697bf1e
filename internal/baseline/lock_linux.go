package baseline

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// lockEvery is between two tries to get the lock. Whoever holds it does so for milliseconds.
const lockEvery = 5 * time.Millisecond

// errBusy says that the lock was not to be had in time.
var errBusy = errors.New("other programs kept it locked")

// lock takes the lock that bbolt uses, too; it takes it a second time on the same open file, which changes nothing. It is
// given back when the file is closed.
func lock(file *os.File, exclusive bool, until time.Time) error {
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX
	}
	for {
		err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return err
		case time.Now().After(until):
			return errBusy
		}
		time.Sleep(lockEvery)
	}
}

// unlock gives the lock back before the file is closed.
func unlock(file *os.File) { _ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN) }
