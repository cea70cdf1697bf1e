package switches

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Sizes of a CPU's buffer, in pages. The kernel allows a user 129 pages for each CPU (perf_event_mlock_kb), in all
// programs together, and more as RLIMIT_MEMLOCK permits.
const (
	maxPages = 32
	minPages = 4
)

// ring is the buffer of one CPU.
type ring struct {
	cpu    int
	fd     int // of an event that reports nothing, to which the buffer belongs
	memory []byte
	record []byte // one that is split at the end of the buffer
}

// attributes are those of all events.
func attributes() unix.PerfEventAttr {
	return unix.PerfEventAttr{
		Type:        unix.PERF_TYPE_SOFTWARE,
		Config:      unix.PERF_COUNT_SW_DUMMY,
		Size:        uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample_type: unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME,
		Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv | unix.PerfBitSampleIDAll |
			unix.PerfBitUseClockID,
		Clockid: unix.CLOCK_MONOTONIC,
	}
}

// openRings opens a buffer for each CPU.
func openRings() (rings []*ring, err error) {
	online, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, fmt.Errorf("list the CPUs: %w", err)
	}
	cpus, err := parseCPUs(strings.TrimSpace(string(online)))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			for _, r := range rings {
				r.close()
			}
			rings = nil
		}
	}()
	pages := maxPages
	for _, cpu := range cpus {
		r := &ring{cpu: cpu}
		if pages, err = r.open(pages); err != nil {
			return rings, err
		}
		rings = append(rings, r)
	}
	return rings, nil
}

// open returns how many pages it got, at most so many as wanted.
func (r *ring) open(pages int) (int, error) {
	attr := attributes()
	attr.Bits |= unix.PerfBitDisabled
	var err error
	if r.fd, err = unix.PerfEventOpen(&attr, 0, r.cpu, -1, unix.PERF_FLAG_FD_CLOEXEC); err != nil {
		return pages, refusal(err)
	}
	for ; ; pages /= 2 {
		length := (1 + pages) * os.Getpagesize()
		r.memory, err = unix.Mmap(r.fd, 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err == nil {
			return pages, nil
		}
		if pages <= minPages {
			_ = unix.Close(r.fd)
			return pages, fmt.Errorf("get a buffer for perf events (kernel.perf_event_mlock_kb): %w", err)
		}
	}
}

// refusal explains an error of perf_event_open(2).
func refusal(err error) error {
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return fmt.Errorf("perf events are not allowed (kernel.perf_event_paranoid, or a container's seccomp profile): %w",
			err)
	}
	return fmt.Errorf("open a perf event: %w", err)
}

func (r *ring) close() {
	_ = unix.Munmap(r.memory)
	_ = unix.Close(r.fd)
}

// attach opens an event that reports the switches of a thread on the ring's CPU, and those of all threads that it
// creates from now on.
func (r *ring) attach(tid int) (fd int, err error) {
	attr := attributes()
	attr.Bits |= unix.PerfBitInherit | unix.PerfBitContextSwitch | unix.PerfBitTask | unix.PerfBitComm
	if fd, err = unix.PerfEventOpen(&attr, tid, r.cpu, -1, unix.PERF_FLAG_FD_CLOEXEC); err != nil {
		return 0, err
	}
	if err = unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_OUTPUT, r.fd); err != nil {
		_ = unix.Close(fd)
		return 0, err
	}
	return fd, nil
}

// drain passes the records of the buffer to f, which must not keep them.
func (r *ring) drain(f func(record []byte)) {
	page := (*unix.PerfEventMmapPage)(unsafe.Pointer(&r.memory[0]))
	data := r.memory[os.Getpagesize():]
	head, tail := atomic.LoadUint64(&page.Data_head), page.Data_tail
	size := uint64(len(data)) // a power of two
	for tail < head {
		from := tail & (size - 1)
		length := uint64(binary.NativeEndian.Uint16(data[from+6:])) // records are multiples of 8 bytes
		if length < headerBytes || length > head-tail {
			tail = head // damaged
			break
		}
		if from+length <= size {
			f(data[from : from+length])
		} else {
			r.record = append(append(r.record[:0], data[from:]...), data[:from+length-size]...)
			f(r.record)
		}
		tail += length
	}
	atomic.StoreUint64(&page.Data_tail, tail)
}

// maxCPUs is more than any kernel supports.
const maxCPUs = 8192

// parseCPUs parses a list like "0-3,8".
func parseCPUs(list string) (cpus []int, err error) {
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.ParseUint(from, 10, bits.UintSize-1)
		last, err2 := strconv.ParseUint(to, 10, bits.UintSize-1)
		if err1 != nil || err2 != nil || first > last || last >= maxCPUs {
			return nil, fmt.Errorf("list the CPUs: %q is not understood", list)
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, int(cpu))
		}
	}
	return cpus, nil
}
