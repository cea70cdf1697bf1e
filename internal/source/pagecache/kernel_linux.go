package pagecache

import (
	"errors"
	"math"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Forget drops a file's pages from the page cache (posix_fadvise). Only clean pages without a mapping can go, and the
// kernel may keep some: see Resident.
func Forget(file *os.File) error {
	if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return &os.PathError{Op: "fadvise", Path: file.Name(), Err: err}
	}
	return nil
}

// zfs has its own cache besides the page cache.
const zfs = 0x2fc12fc1

var (
	errElsewhere  = errors.New("the file system has its own cache")
	errPermission = errors.New("only the owner of the file, or a user with write permission, can see that")
)

// cachedOf returns how many bytes of a regular file are in the page cache.
func (l *look) cachedOf(fd int, st *unix.Stat_t) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return 0, err
	}
	if uint32(fs.Type) == zfs {
		return 0, errElsewhere
	}
	file, err := reopen(fd, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	if !l.counting { // a file server may have taken some time until here
		l.counting, l.exact = true, time.Now().Add(exactTime)
	}
	if uint32(fs.Type) != unix.OVERLAYFS_SUPER_MAGIC {
		return count(st.Size, l.exact, l.latest,
			func(from, length int64) (uint64, error) { return cachestat(file, from, length) })
	}
	// cachestat would count the pages of the overlay, which has none; a mapping leads to the file below.
	if os.Geteuid() != 0 && st.Uid != uint32(os.Geteuid()) && unix.Access(file.Name(), unix.W_OK) != nil {
		return 0, errPermission // mincore would report all of it as cached
	}
	mapping, err := unix.Mmap(int(file.Fd()), 0, int(st.Size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, &os.PathError{Op: "mmap", Path: file.Name(), Err: err}
	}
	defer func() { _ = unix.Munmap(mapping) }()
	return count(st.Size, l.exact, l.latest,
		func(from, length int64) (uint64, error) { return mincore(mapping[from : from+length]) })
}

// A file is counted in pieces. After the exact time, and in files of over a tebibyte, only the beginning of each is
// counted and extrapolated, because 200 MiB in single pages take 2 ms.
const (
	piece     = 256 << 20
	begin     = 1 << 20
	maxPieces = 4096
)

// count returns how many bytes of a file are in memory; pages returns how many pages of a part are. A sparse file can
// be of any size, so the number of pieces is bounded, and the time.
func count(
	size int64, exact, latest time.Time, pages func(from, length int64) (uint64, error),
) (uint64, error) {
	step := piece * (1 + (size-1)/(piece*maxPieces))
	var bytes float64
	for from := int64(0); from < size; {
		length := min(step, size-from)
		looked := length
		switch now := time.Now(); {
		case now.After(latest):
			return 0, errSlow
		case now.After(exact) || step > piece:
			looked = min(begin, length)
		}
		n, err := pages(from, looked)
		if err != nil {
			return 0, err
		}
		found := min(float64(n)*float64(os.Getpagesize()), float64(looked))
		bytes += found / float64(looked) * float64(length)
		from += length
	}
	return uint64(math.Round(bytes)), nil
}

func cachestat(file *os.File, from, length int64) (uint64, error) {
	request := unix.CachestatRange{Off: uint64(from), Len: uint64(length)}
	var result unix.Cachestat_t
	if err := unix.Cachestat(uint(file.Fd()), &request, &result, 0); err != nil {
		return 0, &os.PathError{Op: "cachestat", Path: file.Name(), Err: err}
	}
	return result.Cache, nil
}

// Resident returns how many bytes of a file are in the page cache, and its size. It uses mincore(2), which is slower
// than cachestat(2), works through an overlay, and is only exact for the owner of the file.
func Resident(file *os.File) (found, size int64, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, 0, err
	}
	size = info.Size()
	if size == 0 {
		return 0, 0, nil // cannot be mapped
	}
	mapping, err := unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, 0, &os.PathError{Op: "mmap", Path: file.Name(), Err: err}
	}
	pages, err := mincore(mapping)
	if failed := unix.Munmap(mapping); failed != nil {
		return 0, 0, &os.PathError{Op: "munmap", Path: file.Name(), Err: failed}
	}
	if err != nil {
		return 0, 0, err
	}
	return min(int64(pages)*int64(os.Getpagesize()), size), size, nil
}

// mincore counts the pages of a piece of a mapping that are in memory.
func mincore(mapping []byte) (pages uint64, err error) {
	page := os.Getpagesize()
	in := make([]byte, (len(mapping)+page-1)/page)
	_, _, errno := unix.Syscall(unix.SYS_MINCORE,
		uintptr(unsafe.Pointer(&mapping[0])), uintptr(len(mapping)), uintptr(unsafe.Pointer(&in[0])))
	if errno != 0 {
		return 0, os.NewSyscallError("mincore", errno)
	}
	for _, r := range in {
		pages += uint64(r & 1)
	}
	return pages, nil
}
