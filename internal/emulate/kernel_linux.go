package emulate

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/mount"
	"github.com/stallspan/stallspan/internal/source/pagecache"
)

func examine(dir string) (fs FileSystem, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fs, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return fs, err
	}
	list := mount.NewList("/proc/self/mountinfo")
	defer func() { _ = list.Close() }()
	entries, err := list.Entries()
	on, found := mount.Covering(entries, path)
	if !found {
		return fs, cmp.Or(err, fmt.Errorf("%s lies on no mount that is visible to this process", dir))
	}
	kind := mount.Kind(on.Type)
	fs.Name, fs.InMemory = on.Type, kind == mount.Memory
	fs.Remote = (kind == mount.Network || kind == mount.Fuse) && !mount.HasBlockDevice(on.Mount)
	fs.Free = -1
	block, unit := uint64(st.Bsize), uint64(st.Frsize) // their types differ between architectures
	if unit == 0 {
		unit = block
	}
	if unit > 0 && st.Blocks > 0 { // some FUSE programs leave all fields zero
		fs.Free = int64(min(st.Bavail, math.MaxInt64/unit) * unit)
	}
	fs.Block = int64(os.Getpagesize())
	if !fs.Remote { // for remote file systems f_bsize is the transfer size
		fs.Block = max(fs.Block, int64(block))
	}
	return fs, nil
}

// forget writes back a file's dirty pages and drops it from the page cache.
func forget(file *os.File) error {
	if err := file.Sync(); err != nil {
		return err
	}
	return pagecache.Forget(file)
}

// readNothingAhead makes reads through file fetch only the requested pages.
func readNothingAhead(file *os.File) error {
	if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_RANDOM); err != nil {
		return &os.PathError{Op: "fadvise", Path: file.Name(), Err: err}
	}
	return nil
}

// FileSystem describes the file system of a folder, for a program that wants to wait for a disk.
type FileSystem struct {
	Name     string // "ext4", "nfs", as in the list of mounts
	InMemory bool   // no read ever reaches a disk
	Remote   bool   // a server, the host or a FUSE program holds the data: reads appear on no local disk
	Free     int64  // bytes free for an unprivileged user; -1 if unknown
	Block    int64  // minimum bytes that a read fetches
}
