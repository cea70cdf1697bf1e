package process

import (
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/trust"
)

const (
	mapsWait     = 100 * time.Millisecond // for the mappings of a process
	maxMapsReads = 16                     // that are late, at the same time: each keeps a thread, and a user has a quarter
)

// mapsReads reads lists of mappings. The kernel makes them under a lock of the address space, which a process may hold
// while it waits for a page of a file: of a server that does not respond, for hours. So each is read in a goroutine,
// and who asked waits for it for mapsWait. Nothing waits for a goroutine that is late: the kernel alone can end it.
type mapsReads struct {
	places *trust.Places // of reads that go on, by user

	mu   sync.Mutex
	late map[int]bool // by PID: the same
}

// list returns the files of models that a process has mapped, or ETIMEDOUT if the kernel does not say it in time.
func (m *mapsReads) list(pid int, dir string) ([]File, error) {
	var of unix.Stat_t
	if err := unix.Stat(dir, &of); err != nil {
		return nil, errno(err)
	}
	user := "uid " + strconv.Itoa(int(of.Uid))
	m.mu.Lock()
	if m.late[pid] || m.places.Take(user) != nil {
		m.mu.Unlock()
		return nil, unix.ETIMEDOUT
	}
	m.late[pid] = true
	m.mu.Unlock()
	answer := make(chan []File, 1)
	go func() {
		var list []File
		_ = sample.Protect(func() { list = mappedIn(dir) })
		m.places.Release(user)
		m.mu.Lock()
		delete(m.late, pid)
		m.mu.Unlock()
		answer <- list
	}()
	timer := time.NewTimer(mapsWait)
	defer timer.Stop()
	select {
	case list := <-answer:
		return list, nil
	case <-timer.C:
		return nil, unix.ETIMEDOUT
	}
}
