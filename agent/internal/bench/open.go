package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

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
		return fmt.Errorf("%s may not be read even by root, as in a container: give a file on it", t.name)
	}
	return fmt.Errorf("%s may be read only by root or its group: use sudo, or give a file of yours on it",
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

// maxEntries bounds the entries of a folder that are visited.
const maxEntries = 200_000

var errEnough = errors.New("enough")

// choose returns the largest readable file below a folder that is on the same file system. At least half of the file
// must be allocated: holes are not read from the disk.
func choose(ctx context.Context, folder string) (string, error) {
	info, err := os.Stat(folder)
	if err != nil {
		return "", err
	}
	top, _ := info.Sys().(*syscall.Stat_t)
	best, size, entries := "", int64(minFile)-1, 0
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if entries++; entries > maxEntries || ctx.Err() != nil {
			return errEnough
		}
		if err != nil {
			return nil // permission denied
		}
		if !entry.IsDir() && !entry.Type().IsRegular() {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return nil
		}
		st, known := info.Sys().(*syscall.Stat_t)
		switch {
		case !known || top == nil:
		case st.Dev != top.Dev && entry.IsDir():
			return fs.SkipDir
		case info.Mode().IsRegular() && info.Size() > size && st.Blocks*512 >= info.Size()/2 && readable(path):
			best, size = path, info.Size()
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return "", err
	}
	if best == "" {
		return "", fmt.Errorf("there is no readable file of %d MiB or more below %s: give one elsewhere on that disk, or "+
			"--make-file", minFile>>20, folder)
	}
	return best, nil
}

func readable(path string) bool {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	_ = file.Close()
	return true
}

// makeFile stops at madeSize or after makeTime.
const (
	madeSize = 1 << 30
	makeTime = 10 * time.Second
)

// makeFile writes a file of random bytes into a folder, and returns it open and without a name, so that it disappears
// when it is closed.
func makeFile(ctx context.Context, folder string, seed uint64) (*os.File, error) {
	if err := room(folder); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(folder, ".stallspan-bench-*")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Remove(file.Name()), fill(ctx, file, seed)); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("no file can be made in %s: %w", folder, err)
	}
	return file, nil
}

// room returns an error if the file would take more than half of the free space.
func room(folder string) error {
	var system unix.Statfs_t
	if err := unix.Statfs(folder, &system); err != nil {
		return &os.PathError{Op: "statfs", Path: folder, Err: err}
	}
	if free := system.Bavail * uint64(system.Bsize); free < 2*madeSize {
		return fmt.Errorf("%s has %d MiB free, but making a file needs %d: give an existing file",
			filepath.Clean(folder), free>>20, 2*madeSize>>20)
	}
	return nil
}

func fill(ctx context.Context, file *os.File, seed uint64) error {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	random := rand.NewChaCha8(key)
	text := make([]byte, 8*large)
	until := time.Now().Add(makeTime)
	for size := 0; size < madeSize && (size < minFile || time.Now().Before(until)); size += len(text) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_, _ = random.Read(text) // it never fails
		if _, err := file.Write(text); err != nil {
			return err
		}
		if err := unix.Fdatasync(int(file.Fd())); err != nil {
			return err
		}
	}
	return unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED)
}
