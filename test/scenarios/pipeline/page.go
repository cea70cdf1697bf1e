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

// page is the accelerator's state in memory that the program and the bench share. The program writes it and the bench
// reads it: version is odd while a writer is at it, and a reader that saw it odd, or changing, looks again.
type page struct {
	version atomic.Uint64
	since   atomic.Int64 // CLOCK_MONOTONIC, ns, at which the computing began; 0 for idle
	busy    atomic.Int64 // ns, of computings that are over
}

const pageSize = 4096

// newPageFile makes the memory, as a file without a name.
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

// mapPage maps it; unmap ends p's life.
func mapPage(file *os.File) (p *page, unmap func() error, err error) {
	memory, err := unix.Mmap(int(file.Fd()), 0, pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return (*page)(unsafe.Pointer(&memory[0])), func() error { return unix.Munmap(memory) }, nil
}

// begin reads the clock after it has made readers wait, so that none can fall between the clock and the state.
func (p *page) begin(c clock) (at time.Duration) {
	p.version.Add(1)
	at = c.now()
	p.since.Store(int64(at))
	p.version.Add(1)
	return at
}

// end returns the moment and how long the computing took.
func (p *page) end(c clock) (took time.Duration) {
	p.version.Add(1)
	took = c.now() - time.Duration(p.since.Load())
	p.busy.Add(int64(took))
	p.since.Store(0)
	p.version.Add(1)
	return took
}

// patience is how often a reader looks again. A writer holds it up for some 100 ns, or for as long as the writer's
// thread has no CPU in the middle of that.
const patience = 1500

// read calls now while no writer is at work and says for how long the accelerator had been computing at that moment.
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
