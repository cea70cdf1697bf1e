//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring reads a BPF ring buffer (Documentation/bpf/ringbuf.rst). It polls: the reader of cilium/ebpf waits in epoll and
// copies each record. It maps the data in parts, because all of a mapping of kernel memory counts as resident: 8 MiB,
// as the data are there twice in a row. Where many events come, parts stay mapped: 4 MiB then, but to map a part takes
// the kernel longer than to read what is in it.
type ring struct {
	fd       int
	size     uint64
	consumer []byte            // one page that we write
	producer []byte            // one page that the kernel writes
	parts    map[uint64][]byte // of the data, by where they begin
	part     []byte            // the one in use
	first    uint64            // where it begins
	changed  time.Duration     // when it came into use, on CLOCK_MONOTONIC
	quick    int               // how many parts in a row were in use for less than quickPart
}

const (
	ringHeader  = 8
	ringBusy    = 1 << 31
	ringDiscard = 1 << 30
	ringPart    = 256 << 10 // bytes: about the events of 10,000 switches a second between two readings

	quickPart  = 5 * time.Second // a part in use for less is one of many events
	quickParts = 8               // so many in a row until parts stay mapped
)

var errLongRecord = errors.New("a record of the scheduler's events is longer than a page")

func openRing(fd, size int) (*ring, error) {
	page := os.Getpagesize()
	consumer, err := unix.Mmap(fd, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the ring buffer: %w", err)
	}
	producer, err := unix.Mmap(fd, int64(page), page, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		_ = unix.Munmap(consumer)
		return nil, fmt.Errorf("map the ring buffer: %w", err)
	}
	return &ring{fd: fd, size: uint64(size), consumer: consumer, producer: producer}, nil
}

func (r *ring) close() {
	_ = unix.Munmap(r.consumer)
	_ = unix.Munmap(r.producer)
	r.unmapParts()
}

func (r *ring) unmapParts() {
	for first, part := range r.parts {
		_ = unix.Munmap(part)
		delete(r.parts, first)
	}
	r.part = nil
}

// at returns n bytes of the data. The data follow the two pages. A part ends a page after the next one begins: no
// record is longer.
func (r *ring) at(offset, n uint64) ([]byte, error) {
	if offset < r.first || offset+n > r.first+uint64(len(r.part)) {
		if err := r.use(offset &^ (ringPart - 1)); err != nil {
			return nil, err
		}
		if offset+n > r.first+uint64(len(r.part)) {
			return nil, errLongRecord
		}
	}
	return r.part[offset-r.first:][:n], nil
}

// use makes the part that begins at an offset the one in use.
func (r *ring) use(first uint64) error {
	now := monotonic()
	if r.quick++; now-r.changed >= quickPart {
		r.quick = 0
	}
	if r.changed = now; r.quick < quickParts {
		r.unmapParts()
	}
	part := r.parts[first]
	if part == nil {
		page := uint64(os.Getpagesize())
		var err error
		length := int(min(ringPart, r.size) + page)
		if part, err = unix.Mmap(r.fd, int64(2*page+first), length, unix.PROT_READ, unix.MAP_SHARED); err != nil {
			return err
		}
		if r.parts == nil {
			r.parts = map[uint64][]byte{}
		}
		r.parts[first] = part
	}
	r.part, r.first = part, first
	return nil
}

// drain passes at most limit records on and frees their room. It stops at a record that is still being written, or
// where the data cannot be mapped. It reports whether it reached the end.
func (r *ring) drain(limit int, record func([]byte)) bool {
	consumed := (*uint64)(unsafe.Pointer(&r.consumer[0]))
	at := atomic.LoadUint64(consumed)
	end := atomic.LoadUint64((*uint64)(unsafe.Pointer(&r.producer[0])))
	for at < end {
		offset := at & (r.size - 1)
		begin, err := r.at(offset, ringHeader)
		if err != nil || limit == 0 {
			break
		}
		header := atomic.LoadUint32((*uint32)(unsafe.Pointer(&begin[0])))
		if header&ringBusy != 0 {
			break
		}
		size := uint64(header &^ (ringBusy | ringDiscard))
		if header&ringDiscard == 0 {
			text, err := r.at(offset, ringHeader+size)
			if err != nil {
				break
			}
			record(text[ringHeader:])
			limit--
		}
		at += (ringHeader + size + 7) &^ 7
	}
	atomic.StoreUint64(consumed, at)
	return at == end
}
