//go:build linux && (amd64 || arm64)

package bpf

import (
	"encoding/binary"
	"os"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// written is a ring buffer in ordinary memory, laid out as the kernel maps it, into which a test writes as the kernel
// does.
type written struct {
	*ring
	t    *testing.T
	file int
	next uint64
}

func newWritten(t *testing.T, size int) *written {
	t.Helper()
	file, err := unix.MemfdCreate("ring", 0)
	if err != nil {
		t.Skip("needs memfd_create:", err)
	}
	t.Cleanup(func() { _ = unix.Close(file) })
	// The second copy of the data is written, too: no mapping of a file repeats it.
	if err := unix.Ftruncate(file, int64(2*os.Getpagesize()+2*size)); err != nil {
		t.Fatal(err)
	}
	r, err := openRing(file, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return &written{ring: r, t: t, file: file}
}

// write adds records of a size that count up.
func (w *written) write(records, size int, number *uint64) {
	w.t.Helper()
	for range records {
		record := make([]byte, (ringHeader+size+7)&^7)
		binary.NativeEndian.PutUint32(record, uint32(size))
		binary.NativeEndian.PutUint64(record[ringHeader:], *number)
		*number++
		at := int64(w.next % w.size)
		for _, copied := range []int64{at - int64(w.size), at, at + int64(w.size)} {
			part := record[max(0, min(-copied, int64(len(record)))):]
			if _, err := unix.Pwrite(w.file, part, int64(2*os.Getpagesize())+max(0, copied)); err != nil {
				w.t.Fatal(err)
			}
		}
		w.next += uint64(len(record))
	}
	const access = unix.PROT_READ | unix.PROT_WRITE
	page, err := unix.Mmap(w.file, int64(os.Getpagesize()), os.Getpagesize(), access, unix.MAP_SHARED)
	if err != nil {
		w.t.Fatal(err)
	}
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&page[0])), w.next)
	_ = unix.Munmap(page)
}

// Records are read in order across the ends of parts and of the buffer. Parts stay mapped while many events come, at
// most once each, and are dropped when few do.
func TestRingParts(t *testing.T) {
	const size, parts = 2 * ringPart, 2
	w := newWritten(t, size)
	wrote, read := uint64(0), uint64(0)
	drain := func() {
		t.Helper()
		if !w.drain(1<<20, func(record []byte) {
			if got := binary.NativeEndian.Uint64(record); got != read {
				t.Fatalf("got record %d, want %d", got, read)
			}
			read++
		}) {
			t.Fatal("the end was not reached")
		}
	}
	for range 3 * quickParts {
		w.write(ringPart/2/1000, 1000-ringHeader-3, &wrote) // about half a part
		drain()
	}
	if read != wrote || len(w.parts) != parts {
		t.Errorf("many events: got %d of %d records and %d parts mapped, want all and %d", read, wrote, len(w.parts), parts)
	}
	w.changed -= quickPart
	for range 2 {
		w.write(ringPart/2/1000, 1000-ringHeader-3, &wrote)
		drain()
	}
	if read != wrote || len(w.parts) != 1 {
		t.Errorf("few events: got %d of %d records and %d parts mapped, want all and 1", read, wrote, len(w.parts))
	}
	if now := monotonic(); now <= 0 || now-w.changed > time.Minute {
		t.Errorf("got the part in use since %v, want a time near %v", w.changed, now)
	}
}
