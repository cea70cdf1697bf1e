//go:build linux

package pipeline

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// page is the accelerator's state in memory that the program writes and the bench reads. It is a sequence lock: version
// is odd during a write, and a reader that sees it odd or changed tries again.
type page struct {
	version atomic.Uint64
	since   atomic.Int64 // CLOCK_MONOTONIC at the start of the computation, ns; 0 for idle
	busy    atomic.Int64 // ns of completed computations
}

const pageSize = 4096

// newPageFile creates the memory as an anonymous file.
func newPageFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("accelerator", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "accelerator")
	if err := file.Truncate(pageSize); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// mapPage maps the page; p is valid until unmap.
func mapPage(file *os.File) (p *page, unmap func() error, err error) {
	memory, err := unix.Mmap(int(file.Fd()), 0, pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return (*page)(unsafe.Pointer(&memory[0])), func() error { return unix.Munmap(memory) }, nil
}

// begin reads the clock after it has blocked readers, so that no reading falls between the clock and the state.
func (p *page) begin(c clock) (at time.Duration) {
	p.version.Add(1)
	at = c.now()
	p.since.Store(int64(at))
	p.version.Add(1)
	return at
}

// end returns how long the computation took.
func (p *page) end(c clock) (took time.Duration) {
	p.version.Add(1)
	took = c.now() - time.Duration(p.since.Load())
	p.busy.Add(int64(took))
	p.since.Store(0)
	p.version.Add(1)
	return took
}

// patience is the number of a reader's attempts. A writer blocks it for about 100 ns, or longer if the writer's thread
// loses its CPU in between.
const patience = 1500

// read calls now outside of writes, and returns the accelerator's busy time at that moment.
func (p *page) read(now func() time.Duration) (busy time.Duration, err error) {
	for try := range patience {
		version := p.version.Load()
		if version%2 == 0 {
			at, since := now(), time.Duration(p.since.Load())
			busy = time.Duration(p.busy.Load())
			if p.version.Load() == version {
				if since > 0 {
					busy += max(0, at-since)
				}
				return busy, nil
			}
		}
		if try > 1000 {
			time.Sleep(time.Millisecond)
		} else {
			runtime.Gosched()
		}
	}
	return 0, fmt.Errorf("the program stopped in the middle of writing its accelerator's state: start it again")
}
