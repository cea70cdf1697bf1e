package cuda

import (
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/process"
)

// own reads with the rights of this process.
func own(proc string) reader { return process.NewDirect(proc) }

// deviceNumber returns the number of a character device; 0 for any other path.
func deviceNumber(path string) uint64 {
	var at unix.Stat_t
	if unix.Stat(path, &at) != nil || at.Mode&unix.S_IFMT != unix.S_IFCHR {
		return 0
	}
	return at.Rdev
}

// makeNumber returns the number of a driver's first device.
func makeNumber(major uint32) uint64 { return unix.Mkdev(major, 0) }

// opened reports whether a device was opened. A nil one hears nothing, as with a container's own file of the device:
// then processes are found by their age alone.
type opened struct {
	fd    int
	inode uint64
}

// watch begins to listen. It returns nil where the kernel does not let it.
func watch(path string) *opened {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil
	}
	o := &opened{fd, inodeOf(path)}
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN); err != nil {
		o.close()
		return nil
	}
	return o
}

func inodeOf(path string) uint64 {
	var at unix.Stat_t
	_ = unix.Stat(path, &at)
	return at.Ino
}

// on reports whether it listens to the file that has the path now: it may have been made again. A nil one says true,
// as another one would hear nothing either.
func (o *opened) on(path string) bool { return o == nil || o.inode == inodeOf(path) }

// heard reports whether the device was opened since the last call. The kernel joins events that are the same.
func (o *opened) heard() (some bool) {
	if o == nil {
		return false
	}
	var buf [4096]byte
	n, err := unix.Read(o.fd, buf[:])
	return err == nil && n > 0
}

func (o *opened) close() {
	if o != nil {
		_ = unix.Close(o.fd)
	}
}
