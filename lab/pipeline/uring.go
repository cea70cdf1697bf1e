//go:build linux

package pipeline

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's interface (include/uapi/linux/io_uring.h).
type (
	uringParams struct {
		sqEntries, cqEntries, flags, threadCPU, threadIdle, features, wqFd uint32

		_  [3]uint32
		sq struct {
			head, tail, mask, entries, flags, dropped, array, _ uint32
			_                                                   uint64
		}
		cq struct {
			head, tail, mask, entries, overflow, cqes, flags, _ uint32
			_                                                   uint64
		}
	}
	uringEntry struct {
		opcode, flags uint8
		priority      uint16
		fd            int32
		offset        uint64
		address       uint64
		length        uint32
		readFlags     uint32
		user          uint64
		_             [3]uint64
	}
	uringCompletion struct {
		user   uint64
		result int32
		flags  uint32
	}
)

const (
	uringOpRead    = 22 // Linux 5.6
	uringGetEvents = 1

	uringOffSubmissions = 0
	uringOffCompletions = 0x8000000
	uringOffEntries     = 0x10000000
)

// ring is one io_uring. Submissions and completions pass through memory that is shared with the kernel.
type ring struct {
	fd                            int
	submissions, completions, sqe []byte // mapped

	params  uringParams
	waiting uint32 // entries that the kernel has not taken yet
}

func newKernelRing(depth int) (*ring, error) {
	r := &ring{}
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(depth), uintptr(unsafe.Pointer(&r.params)), 0)
	if errno != 0 {
		return nil, fmt.Errorf(
			"this kernel gives no io_uring (%w): see /proc/sys/kernel/io_uring_disabled, and what a container forbids",
			errno,
		)
	}
	r.fd = int(fd)
	var err error
	part := func(offset int64, size uint32) (memory []byte) {
		if err == nil {
			memory, err = unix.Mmap(r.fd, offset, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
		}
		return memory
	}
	p := &r.params
	r.submissions = part(uringOffSubmissions, p.sq.array+p.sqEntries*4)
	r.completions = part(uringOffCompletions, p.cq.cqes+p.cqEntries*uint32(unsafe.Sizeof(uringCompletion{})))
	r.sqe = part(uringOffEntries, p.sqEntries*uint32(unsafe.Sizeof(uringEntry{})))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mapping an io_uring: %w", err), r.close())
	}
	return r, nil
}

func word(memory []byte, offset uint32) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&memory[offset]))
}

// read adds a read to the ring; enter submits it. The ring must have room.
func (r *ring) read(fd int, into []byte, offset int64, user uint64) {
	p := &r.params
	tail := word(r.submissions, p.sq.tail)
	index := tail.Load() & word(r.submissions, p.sq.mask).Load()
	*(*uringEntry)(unsafe.Pointer(&r.sqe[uintptr(index)*unsafe.Sizeof(uringEntry{})])) = uringEntry{
		opcode: uringOpRead, fd: int32(fd), offset: uint64(offset),
		address: uint64(uintptr(unsafe.Pointer(&into[0]))), length: uint32(len(into)), user: user,
	}
	word(r.submissions, p.sq.array+index*4).Store(index)
	tail.Add(1)
	r.waiting++
}

// enter submits the reads and waits for at least the given number of completions.
func (r *ring) enter(complete int) error {
	for {
		flags := uintptr(0)
		if complete > 0 {
			flags = uringGetEvents
		}
		n, _, errno := unix.Syscall6(
			unix.SYS_IO_URING_ENTER,
			uintptr(r.fd),
			uintptr(r.waiting),
			uintptr(complete),
			flags,
			0,
			0,
		)
		switch {
		case errno == unix.EINTR:
			continue
		case errno != 0:
			return fmt.Errorf("io_uring_enter: %w", errno)
		}
		r.waiting -= uint32(n)
		if r.waiting == 0 {
			return nil
		}
	}
}

// completed removes one completion, if any.
func (r *ring) completed() (c uringCompletion, ok bool) {
	p := &r.params
	head, tail := word(r.completions, p.cq.head), word(r.completions, p.cq.tail)
	at := head.Load()
	if at == tail.Load() {
		return c, false
	}
	index := at & word(r.completions, p.cq.mask).Load()
	c = *(*uringCompletion)(unsafe.Pointer(&r.completions[uintptr(p.cq.cqes)+uintptr(index)*unsafe.Sizeof(c)]))
	head.Add(1)
	return c, true
}

func (r *ring) close() error {
	var errs []error
	for _, memory := range [][]byte{r.submissions, r.completions, r.sqe} {
		if memory != nil {
			errs = append(errs, unix.Munmap(memory))
		}
	}
	return errors.Join(append(errs, unix.Close(r.fd))...)
}
