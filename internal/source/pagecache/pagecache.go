// Package pagecache reports how much of a file, or of the files of a folder, is in the page cache.
package pagecache

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// Bounds of Look for a folder.
const (
	maxFiles   = 256
	maxEntries = 1024
	maxDepth   = 4
)

// Held is the result of Look.
type Held struct {
	Size   uint64 // bytes of the file, or of all regular files of the folder
	Cached uint64 // bytes of them in the page cache, in whole pages, if Known
	// Sampled is true if Cached may be extrapolated from the beginning of each 256 MiB of a file.
	Sampled bool
	Known   bool // the kernel reported every file, which needs ownership, write permission or privileges
}

var (
	errSlow     = errors.New("it takes too long")
	errMany     = errors.New("the folder has too many files")
	errKind     = errors.New("it is neither a regular file nor a folder")
	errRelative = errors.New("the path is not absolute")
)

// Look returns how much of a file is in the page cache, or of up to 256 regular files in a folder and its subfolders.
// file is an absolute path below root, which is a folder like "/" or /proc/PID/root; links stay inside root. Look reads
// no data and opens only regular files. It uses cachestat(2) (Linux 6.5), which takes 1.6 ms for 200 MiB in
// single pages and far less in large folios; after 2 ms it samples the rest, and after 50 ms it gives up. Older kernels
// report the size only. It may block on a file system that does not answer.
func Look(root, file string) (Held, error) {
	if !path.IsAbs(file) {
		return Held{}, &os.PathError{Op: "read the page cache of", Path: file, Err: errRelative}
	}
	base, err := unix.Open(path.Join("/", root), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Held{}, &os.PathError{Op: "open", Path: root, Err: err}
	}
	defer func() { _ = unix.Close(base) }()
	began := time.Now()
	l := look{
		base: base, held: Held{Known: true}, seen: map[inode]bool{},
		exact: began.Add(exactTime), latest: began.Add(longest),
	}
	if err := l.at(file, 0, false); err != nil {
		return Held{}, err
	}
	return l.held, nil
}

const (
	exactTime = 2 * time.Millisecond  // how long files are counted completely
	longest   = 50 * time.Millisecond // of a look, apart from a call that blocks
)

// look is one call of Look.
type look struct {
	base    int // folder of "/"
	held    Held
	seen    map[inode]bool // files with several names count once
	entries int

	exact, latest time.Time
	counting      bool // the first file was opened
}

type inode struct{ device, number uint64 }

// at adds the file or folder at a path. Links to folders are followed only at depth 0. link reports whether the path is
// a link.
func (l *look) at(file string, depth int, link bool) error {
	if time.Now().After(l.latest) {
		return &os.PathError{Op: "read the page cache of", Path: file, Err: errSlow}
	}
	fd, err := unix.Openat2(l.base, file, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return &os.PathError{Op: "open", Path: file, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: file, Err: err}
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return l.file(fd, &st)
	case unix.S_IFDIR:
		if depth > maxDepth {
			return &os.PathError{Op: "read the page cache of", Path: file, Err: errMany}
		}
		if link { // it may form a cycle
			return nil
		}
		return l.folder(fd, file, depth)
	}
	if depth > 0 {
		return nil
	}
	return &os.PathError{Op: "read the page cache of", Path: file, Err: errKind}
}

// reopen opens the file of an O_PATH descriptor. Its path may name another file by now.
func reopen(fd, flags int) (*os.File, error) {
	name := "/proc/self/fd/" + strconv.Itoa(fd)
	again, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY|flags, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(again), name), nil
}

func (l *look) folder(fd int, name string, depth int) error {
	folder, err := reopen(fd, unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	for {
		entries, err := folder.ReadDir(maxFiles)
		if l.entries += len(entries); l.entries > maxEntries {
			return &os.PathError{Op: "read the page cache of", Path: name, Err: errMany}
		}
		for _, e := range entries {
			link := e.Type()&os.ModeSymlink != 0
			if err := l.at(path.Join(name, e.Name()), depth+1, link); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err // except for a dangling link
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (l *look) file(fd int, st *unix.Stat_t) error {
	if id := (inode{st.Dev, st.Ino}); l.seen[id] {
		return nil
	} else if l.seen[id] = true; len(l.seen) > maxFiles {
		return errMany
	}
	size := uint64(max(0, st.Size))
	l.held.Size = sum(l.held.Size, size)
	if !l.held.Known || size == 0 {
		return nil
	}
	cached, err := l.cachedOf(fd, st)
	if err != nil {
		l.held.Known, l.held.Cached = false, 0 // a sum without this file would be wrong
		return nil
	}
	l.held.Sampled = l.held.Sampled || size > begin && time.Now().After(l.exact)
	l.held.Cached = sum(l.held.Cached, min(cached, size))
	return nil
}

// sum saturates: three sparse files can be larger than a uint64.
func sum(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

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

// OfMachine returns what the page cache of a machine has taken since its start, from /proc/vmstat below root; zero
// where the kernel does not count what it gives up (before Linux 5.8).
func OfMachine(root string) (m sample.PageCache) {
	text, _ := os.ReadFile(path.Join("/", root, "proc/vmstat"))
	counts := false
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte{' '})
		n, _ := kernfile.ParseUint(value)
		switch string(name) {
		case "nr_active_file", "nr_inactive_file", "nr_mlock":
			m.Kept += int64(n) * int64(os.Getpagesize())
		case "pgsteal_file":
			m.Kept += int64(n) * int64(os.Getpagesize())
			counts = true
		case "drop_pagecache":
			m.Drops = n
		}
	}
	if !counts {
		return sample.PageCache{}
	}
	return m
}
