package ceiling

import (
	"errors"
	"os"
	"syscall"
	"time"
)

var errBusy = errors.New("another program keeps the folder locked: try again")

// lock keeps other programs from writing a file in the same folder at the same moment. The lock is on the folder itself,
// so no file stays behind, and it ends with the process at the latest. A file system that has no such locks goes without.
func lock(folder string) (unlock func(), err error) {
	file, err := os.Open(folder)
	if err != nil {
		return nil, reason(err)
	}
	for range 200 { // 2 s: a holder needs milliseconds
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return func() { _ = file.Close() }, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = file.Close()
	return nil, errBusy
}
