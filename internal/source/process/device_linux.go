package process

import (
	"bytes"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// HasDevice implements Reader. It reads the links of open files, and the numbers of those that are below a folder dev.
// A link has the name that a container has for the device, so the number alone decides. What has a file of
// /dev/nvidia-caps open only asks the driver with NVML, which opens the device, too.
func (d *Direct) HasDevice(of Key, device uint64) (open bool, files int, err error) {
	folder, err := kernfile.OpenFolderBrief(d.dir(of.PID) + "/fd")
	if err != nil {
		return false, 0, errno(err)
	}
	defer folder.Close()
	var buf [256]byte // a longer name is of no device
	asks := false
	err = folder.EachName(maxProcessFDs, func(name []byte) {
		files++
		to, err := folder.Link(name, buf[:])
		asks = asks || err == nil && bytes.Contains(to, []byte("/dev/nvidia-caps/"))
		if !open && err == nil && bytes.Contains(to, []byte("/dev/")) {
			open = isDevice(folder.FD(), string(name), device)
		}
	})
	if err != nil {
		return false, files, errno(err)
	}
	open = open && !asks
	if open { // of this process, and not of one that had its number before
		err = d.check(of)
	}
	return open && err == nil, files, err
}

// isDevice reports whether a file in a folder is a character device with a number. It asks no server.
func isDevice(folder int, name string, device uint64) bool {
	var at unix.Statx_t
	err := unix.Statx(folder, name, unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &at)
	return err == nil && at.Mode&unix.S_IFMT == unix.S_IFCHR && unix.Mkdev(at.Rdev_major, at.Rdev_minor) == device
}
