package process

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// HasDevice implements Reader. It reads the links of open files, and the numbers of those that are below a folder dev.
// A link has the name that a container has for the device, so the number alone decides. What has a file of
// /dev/nvidia-caps open only asks the driver with NVML, which opens the device, too.
func (d *Direct) HasDevice(of Key, device uint64) (open bool, files int, err error) {
	type answer struct {
		open  bool
		files int
	}
	a, err := doFor(d, of, func() (a answer, err error) {
		folder := d.dir(of.PID) + "/fd/"
		names, err := kernfile.Names(folder, maxProcessFDs)
		asks := false
		for _, name := range names {
			to, _ := os.Readlink(folder + name)
			asks = asks || strings.Contains(to, "/dev/nvidia-caps/")
			a.open = a.open || strings.Contains(to, "/dev/") && isDevice(folder+name, device)
		}
		return answer{a.open && !asks, len(names)}, err
	})
	return a.open, a.files, err
}

// isDevice reports whether a file is a character device with a number. It asks no server.
func isDevice(path string, device uint64) bool {
	var at unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &at)
	return err == nil && at.Mode&unix.S_IFMT == unix.S_IFCHR && unix.Mkdev(at.Rdev_major, at.Rdev_minor) == device
}
