package bench

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// target is an open block device or file.
type target struct {
	path     string
	name     string // for people
	size     int64
	cached   *os.File // through the page cache
	direct   *os.File // without it; the same as cached if that is not possible
	memory   bool     // the file is on a file system in memory
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

// bypasses reports whether reads bypass the page cache.
func (t *target) bypasses() bool { return t.direct != t.cached }

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

// openFile opens a regular file. path may differ from its name, as in /proc/self/fd.
func openFile(path, name string) (*target, error) {
	t := &target{path: name, name: name}
	if err := t.open(path); err != nil {
		return nil, err
	}
	return t, t.checked()
}

// checked closes a target that cannot be measured.
func (t *target) checked() error {
	err := t.inspect()
	if err == nil && t.size < minSize {
		err = fmt.Errorf("%s has %d bytes, but the minimum is %d MiB: give a larger one", t.name, t.size,
			minSize>>20)
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

// forbidden is the error for a device without read permission.
func (t *target) forbidden() error {
	if os.Geteuid() == 0 {
		return fmt.Errorf("%s may not be read even by root, as in a container: give --path for a file on it", t.name)
	}
	return fmt.Errorf("%s may be read only by root or its group: use sudo, or give --path for a file of yours on it",
		t.name)
}

// probe checks that direct reads of 4 KiB into page-aligned memory work, as open(2) does not always fail without them.
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

// inspect reads its size and its device.
func (t *target) inspect() (err error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(t.cached.Fd()), &st); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFBLK:
		t.major, t.minor = unix.Major(st.Rdev), unix.Minor(st.Rdev)
		if t.size, err = t.cached.Seek(0, io.SeekEnd); err != nil {
			return fmt.Errorf("the size of %s cannot be read: %w", t.name, err)
		}
		if t.size == 0 {
			return fmt.Errorf("%s is empty", t.name)
		}
		return nil
	case unix.S_IFREG:
		t.major, t.minor = unix.Major(st.Dev), unix.Minor(st.Dev)
		t.size = st.Size
		var system unix.Statfs_t
		if err := unix.Fstatfs(int(t.cached.Fd()), &system); err == nil {
			t.memory = system.Type == unix.TMPFS_MAGIC || uint32(system.Type) == unix.RAMFS_MAGIC
		}
		if allocated := st.Blocks * 512; allocated < st.Size/2 && !t.memory {
			return fmt.Errorf("%s has holes, which are not read from a disk: give a file without holes", t.name)
		}
		return nil
	}
	return fmt.Errorf("%s is neither a block device nor a file", t.name)
}
