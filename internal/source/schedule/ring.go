//go:build linux && (amd64 || arm64)

package schedule

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring reads a BPF ring buffer (Documentation/bpf/ringbuf.rst). It polls: the reader of cilium/ebpf waits in epoll and
// copies each record.
type ring struct {
	consumer []byte // one page that we write
	producer []byte // one page that the kernel writes, and then the data, twice in a row
	data     []byte
	mask     uint64
}

const (
	ringHeader  = 8
	ringBusy    = 1 << 31
	ringDiscard = 1 << 30
)

func openRing(fd, size int) (*ring, error) {
	page := os.Getpagesize()
	consumer, err := unix.Mmap(fd, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the ring buffer: %w", err)
	}
	producer, err := unix.Mmap(fd, int64(page), page+2*size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		_ = unix.Munmap(consumer)
		return nil, fmt.Errorf("map the ring buffer: %w", err)
	}
	return &ring{consumer: consumer, producer: producer, data: producer[page:], mask: uint64(size - 1)}, nil
}

func (r *ring) close() {
	_ = unix.Munmap(r.consumer)
	_ = unix.Munmap(r.producer)
}

// drain passes at most limit records on and frees their room. It stops at a record that is still being written. It
// reports whether it reached the end.
func (r *ring) drain(limit int, record func([]byte)) bool {
	consumed := (*uint64)(unsafe.Pointer(&r.consumer[0]))
	at := atomic.LoadUint64(consumed)
	end := atomic.LoadUint64((*uint64)(unsafe.Pointer(&r.producer[0])))
	for at < end {
		offset := at & r.mask
		header := atomic.LoadUint32((*uint32)(unsafe.Pointer(&r.data[offset])))
		if header&ringBusy != 0 {
			break
		}
		if limit == 0 {
			break
		}
		size := uint64(header &^ (ringBusy | ringDiscard))
		if header&ringDiscard == 0 {
			record(r.data[offset+ringHeader : offset+ringHeader+size])
			limit--
		}
		at += (ringHeader + size + 7) &^ 7
	}
	atomic.StoreUint64(consumed, at)
	return at == end
}
