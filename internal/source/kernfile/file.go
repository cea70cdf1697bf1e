// Package kernfile reads small files of /proc and /sys, and the numbers in them, without allocations.
package kernfile

import (
	"errors"
	"os"
	"runtime"
	"syscall"
)

// File reads one kernel file again and again, with one system call for each reading. os.File.ReadAt makes a second
// call to find the end of the file, which costs as much as the first on a machine that idles between readings. A file
// that the kernel prints in one piece (single_open of fs/seq_file.c, and the files of cgroups) arrives whole in the
// first. A File is open until Close and is not safe for concurrent use.
type File struct {
	file *os.File
	raw  syscall.RawConn
	call func(fd uintptr) bool // created once, so that a reading allocates nothing

	buf []byte
	at  int64
	n   int
	err error

	brief int // the descriptor of a file of OpenBrief; -1 for any other, and once it is closed
}

// Open opens a file for reading.
func Open(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	f := &File{file: file, raw: raw, brief: -1}
	f.call = func(fd uintptr) bool {
		f.n, f.err = f.pread(int(fd), syscall.Pread)
		return true
	}
	return f, nil
}

// pread repeats a call that a signal has interrupted.
func (f *File) pread(fd int, call func(fd int, buf []byte, at int64) (int, error)) (n int, err error) {
	for {
		if n, err = call(fd, f.buf, f.at); !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}

// OpenBrief opens a file whose text the kernel makes at once, without a lock that another process may hold for long.
// Its readings cost less, and one that did wait would stop all goroutines of its processor, and in the end all of the
// program.
func OpenBrief(path string) (*File, error) {
	f, err := Open(path)
	if err == nil {
		err = f.raw.Control(func(fd uintptr) { f.brief = int(fd) })
	}
	return f, err
}

// ReadAt reads once, from an offset. A file that is printed in one piece is complete if it does not fill buf. At the
// end of any other file, n is 0. The error is of type *os.PathError.
func (f *File) ReadAt(buf []byte, at int64) (n int, err error) {
	f.buf, f.at = buf, at
	if f.brief >= 0 { // its descriptor is this File's alone, which is used by one goroutine
		f.n, f.err = f.pread(f.brief, preadBrief)
		runtime.KeepAlive(f.file)
	} else {
		err = f.raw.Read(f.call)
	}
	f.buf = nil
	if err == nil {
		err = f.err
	}
	if err != nil {
		return 0, &os.PathError{Op: "read", Path: f.file.Name(), Err: err}
	}
	return f.n, nil
}

// Close closes the file.
func (f *File) Close() error {
	f.brief = -1
	return f.file.Close()
}
