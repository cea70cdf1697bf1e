package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// target is an open block device or file.
type target struct {
	path     string
	name     string // what a person calls it
	size     int64
	cached   *os.File // through the page cache
	direct   *os.File // past it; the same as cached where there is no such way
	memory   bool     // the file lies on a file system in memory
	major    uint32   // of the device itself, or of the one that the file's file system is on
	minor    uint32
	isDevice bool
}

func (t *target) close() {
	_ = t.cached.Close()
	if t.direct != t.cached {
		_ = t.direct.Close()
	}
}

func (t *target) past() bool { return t.direct != t.cached }

// openDevice opens a block device by its path or its name.
func openDevice(device string) (*target, error) {
	path, err := blockDevice(device)
	if err != nil {
		return nil, err
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	t := &target{path: path, name: path, isDevice: true}
	if err := t.open(path); err != nil {
		return nil, err
	}
	return t, t.checked()
}

// openFile opens a regular file. It may have another name, as one that is open already has in /proc/self/fd.
func openFile(path, name string) (*target, error) {
	t := &target{path: name, name: name}
	if err := t.open(path); err != nil {
		return nil, err
	}
	return t, t.checked()
}

// checked closes what cannot be measured.
func (t *target) checked() error {
	err := t.look()
	if err == nil && t.size < least {
		err = fmt.Errorf("%s has %d bytes, and %d MiB are the least that tell anything: give a larger one", t.name, t.size,
			least>>20)
	}
	if err != nil {
		t.close()
	}
	return err
}

func (t *target) open(path string) (err error) {
	if t.cached, err = os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0); err != nil {
		if errors.Is(err, fs.ErrPermission) && t.isDevice {
			return t.forbidden()
		}
		return err
	}
	if t.direct, err = os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_DIRECT, 0); err == nil {
		if err = t.probe(); err == nil {
			return nil
		}
		_ = t.direct.Close()
	}
	t.direct = t.cached
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) { // the file system has no direct reads
		return nil
	}
	_ = t.cached.Close()
	return fmt.Errorf("%s cannot be read: %w", t.name, err)
}

// forbidden says what to do about a device that may not be read.
func (t *target) forbidden() error {
	if os.Geteuid() == 0 {
		return fmt.Errorf("%s may not be read here even by root, as in a container: give --path for a file on it", t.name)
	}
	return fmt.Errorf("%s may be read by root or its group alone: run it with sudo, or give --path for a file of yours "+
		"on it", t.name)
}

// probe finds out whether direct reads of 4 KiB from page-aligned memory are possible: open(2) does not always tell.
func (t *target) probe() error {
	if !t.isDevice {
		var st unix.Statx_t
		err := unix.Statx(int(t.direct.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st)
		if err == nil && st.Mask&unix.STATX_DIOALIGN != 0 && (st.Dio_offset_align == 0 || st.Dio_offset_align > small) {
			return unix.EINVAL
		}
	} else if block, err := unix.IoctlGetInt(int(t.direct.Fd()), unix.BLKSSZGET); err == nil && block > small {
		return unix.EINVAL
	}
	memory, err := unix.Mmap(-1, 0, small, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Munmap(memory) }()
	_, err = unix.Pread(int(t.direct.Fd()), memory, 0)
	return err
}

// look finds out how large it is, and on which device.
func (t *target) look() error {
	var st unix.Stat_t
	if err := unix.Fstat(int(t.cached.Fd()), &st); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFBLK:
		t.major, t.minor = unix.Major(st.Rdev), unix.Minor(st.Rdev)
		return t.deviceSize()
	case unix.S_IFREG:
		t.major, t.minor = unix.Major(st.Dev), unix.Minor(st.Dev)
		t.size = st.Size
		var system unix.Statfs_t
		if err := unix.Fstatfs(int(t.cached.Fd()), &system); err == nil {
			t.memory = system.Type == unix.TMPFS_MAGIC || uint32(system.Type) == unix.RAMFS_MAGIC
		}
		if allocated := st.Blocks * 512; allocated < st.Size/2 && !t.memory {
			return fmt.Errorf("%s has holes, which no disk is asked for: give a file that was written as a whole", t.name)
		}
		return nil
	}
	return fmt.Errorf("%s is neither a block device nor a file", t.name)
}

func (t *target) deviceSize() error {
	var size uint64
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, t.cached.Fd(), unix.BLKGETSIZE64, uintptr(unsafe.Pointer(&size)))
	if errno != 0 {
		return fmt.Errorf("%s does not tell its size: %w", t.name, errno)
	}
	if size == 0 {
		return fmt.Errorf("there is nothing in %s", t.name)
	}
	t.size = int64(size)
	return nil
}
