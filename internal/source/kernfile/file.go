// Package kernfile reads small files of /proc and /sys, and the numbers in them, without allocations.
package kernfile

import (
	"errors"
	"os"
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
}

// Open opens a file for reading.
func Open(path string) (*File, error) { return open(path, syscall.Pread) }

// OpenBrief opens a file whose text the kernel makes at once, without a lock that another process may hold for long.
// Its readings cost less, and one that did wait would stop all goroutines of its processor, and in the end all of the
// program.
func OpenBrief(path string) (*File, error) { return open(path, preadBrief) }

func open(path string, pread func(fd int, buf []byte, at int64) (int, error)) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	f := &File{file: file, raw: raw}
	f.call = func(fd uintptr) bool {
		for {
			f.n, f.err = pread(int(fd), f.buf, f.at)
			if !errors.Is(f.err, syscall.EINTR) {
				return true
			}
		}
	}
	return f, nil
}

// ReadAt reads once, from an offset. A file that is printed in one piece is complete if it does not fill buf. At the
// end of any other file, n is 0. The error is of type *os.PathError.
func (f *File) ReadAt(buf []byte, at int64) (n int, err error) {
	f.buf, f.at = buf, at
	err = f.raw.Read(f.call)
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
func (f *File) Close() error { return f.file.Close() }
