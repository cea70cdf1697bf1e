package emulate

import (
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/pagecache"
)

// kinds maps f_type of statfs(2).
var kinds = map[uint32]FileSystem{
	unix.TMPFS_MAGIC:     {Name: "tmpfs", InMemory: true},
	unix.RAMFS_MAGIC:     {Name: "ramfs", InMemory: true},
	unix.HUGETLBFS_MAGIC: {Name: "hugetlbfs", InMemory: true},

	unix.NFS_SUPER_MAGIC:  {Name: "nfs", Remote: true},
	unix.SMB_SUPER_MAGIC:  {Name: "smb", Remote: true},
	unix.SMB2_SUPER_MAGIC: {Name: "smb2", Remote: true},
	unix.CIFS_SUPER_MAGIC: {Name: "cifs", Remote: true},
	unix.CEPH_SUPER_MAGIC: {Name: "ceph", Remote: true},
	unix.AFS_FS_MAGIC:     {Name: "afs", Remote: true},
	unix.AFS_SUPER_MAGIC:  {Name: "afs", Remote: true},
	unix.CODA_SUPER_MAGIC: {Name: "coda", Remote: true},
	unix.V9FS_MAGIC:       {Name: "9p", Remote: true},
	unix.FUSE_SUPER_MAGIC: {Name: "fuse", Remote: true}, // virtiofs too
	0x0bd00bd0:            {Name: "lustre", Remote: true},
	0x47504653:            {Name: "gpfs", Remote: true},
	0x19830326:            {Name: "beegfs", Remote: true},
	0x786f4256:            {Name: "vboxsf", Remote: true},

	unix.EXT4_SUPER_MAGIC:      {Name: "ext4"}, // ext2 and ext3 too
	unix.XFS_SUPER_MAGIC:       {Name: "xfs"},
	unix.BTRFS_SUPER_MAGIC:     {Name: "btrfs"},
	unix.BCACHEFS_SUPER_MAGIC:  {Name: "bcachefs"},
	unix.F2FS_SUPER_MAGIC:      {Name: "f2fs"},
	unix.OVERLAYFS_SUPER_MAGIC: {Name: "overlay"},
	0x2fc12fc1:                 {Name: "zfs"},
}

func examine(path string) (FileSystem, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return FileSystem{}, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	fs, known := kinds[uint32(st.Type)]
	if !known {
		fs.Name = fmt.Sprintf("type %#x", uint32(st.Type))
	}
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
	Name     string // "ext4", "nfs", or the kernel's magic number if it has no name here
	InMemory bool   // no read ever reaches a disk
	Remote   bool   // a server, the host or a FUSE program holds the data: reads appear on no local disk
	Free     int64  // bytes free for an unprivileged user; -1 if unknown
	Block    int64  // minimum bytes that a read fetches
}
