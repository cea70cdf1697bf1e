package slowdisk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// attach creates a block device on a file, with direct I/O, and returns the open device. The kernel removes it when its
// last user has closed it; the caller is the first user.
func attach(path string) (*os.File, error) {
	backing, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = backing.Close() }()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("no loop devices: %w; is the module loop loaded?", err)
	}
	defer func() { _ = control.Close() }()
	for range 20 { // another process may take it first
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("no free loop device: %w", err)
		}
		device, err := os.OpenFile("/dev/loop"+strconv.Itoa(number), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		setting := unix.LoopConfig{Fd: uint32(backing.Fd())}
		setting.Info.Flags = unix.LO_FLAGS_DIRECT_IO | unix.LO_FLAGS_AUTOCLEAR
		if err = unix.IoctlLoopConfigure(int(device.Fd()), &setting); err == nil {
			return device, nil
		}
		_ = device.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("%s cannot show %s: %w", device.Name(), path, err)
		}
	}
	return nil, errors.New("no free loop device: other programs take them all")
}

// queueFolder returns the folder of a block device's settings.
func queueFolder(name string) string { return filepath.Join("/sys/block", name, "queue") }

// tune makes one request of the device one request of the server, sets the read-ahead, and checks that the loop device
// uses direct I/O.
func tune(name string, readAhead int64) error {
	direct, err := os.ReadFile(filepath.Join("/sys/block", name, "loop/dio"))
	if err != nil || strings.TrimSpace(string(direct)) != "1" {
		return fmt.Errorf("%s does no direct I/O, so its speed would be the page cache's (%w)", name, err)
	}
	if err := write(filepath.Join(queueFolder(name), "max_sectors_kb"), largest/kib); err != nil {
		return err
	}
	return write(
		filepath.Join(queueFolder(name), "read_ahead_kb"),
		readAhead/kib,
	) // last, because the other one changes it
}

// write writes a number to a file of the kernel.
func write(path string, value int64) error {
	return os.WriteFile(path, strconv.AppendInt(nil, value, 10), 0o644)
}

// loopOn returns the loop device of a file, or "".
func loopOn(path string) string {
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.TrimSuffix(string(text), "\n") == path {
			return filepath.Base(filepath.Dir(filepath.Dir(file)))
		}
	}
	return ""
}

// detach undoes attach and tune, and waits until the device has released its file.
func detach(name string, deadline time.Time) error {
	backing := filepath.Join("/sys/block", name, "loop/backing_file")
	before, err := os.ReadFile(backing)
	if err != nil {
		return nil // it is free
	}
	_ = write(
		filepath.Join(queueFolder(name), "max_sectors_kb"),
		0,
	) // the driver's default; older kernels do not know this value
	unlimit(name)
	device, err := os.Open("/dev/" + name)
	if err != nil {
		return err
	}
	err = unix.IoctlSetInt(int(device.Fd()), unix.LOOP_CLR_FD, 0)
	_ = device.Close()
	if err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("%s cannot be detached: %w", name, err)
	}
	for {
		now, err := os.ReadFile(backing)
		if err != nil || string(now) != string(before) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is still in use: it is detached with the last file that is open there", name)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
