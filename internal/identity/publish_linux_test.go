package identity

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// publish publishes a process context of this process, as an SDK does, until the test's end.
func publish(t *testing.T, payload []byte) {
	t.Helper()
	fd, err := unix.MemfdCreate(signature, unix.MFD_CLOEXEC)
	if err != nil {
		t.Skipf("needs memfd_create: %v", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Ftruncate(fd, 4096); err != nil {
		t.Fatal(err)
	}
	memory, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(memory) })
	copy(memory[headerBytes:], payload)
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
	copy(memory, headerOf(version, len(payload), 1, at+headerBytes))
}
