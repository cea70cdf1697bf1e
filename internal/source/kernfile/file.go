// Package kernfile reads small files of /proc and /sys, and the numbers in them, without allocations.
package kernfile

import (
	"os"
	"syscall"
)

// File reads one kernel file again and again, with one system call for each reading. A file that the kernel prints in
// one piece (single_open of fs/seq_file.c, and the files of cgroups) arrives whole in the first; os.File.ReadAt makes a
// second call to find its end. A File is open until Close and is not safe for concurrent use.
type File struct {
	path string
	fd   int
}

// Open opens a file for reading.
func Open(path string) (*File, error) {
	fd, err := open(path)
	if err != nil {
		return nil, err
	}
	return &File{path, fd}, nil
}

// ReadAt reads once, from an offset. A file that is printed in one piece is complete if it does not fill buf. At the
// end of any other file, n is 0. The error is of type *os.PathError.
func (f *File) ReadAt(buf []byte, at int64) (n int, err error) {
	n, err = retry(func() (int, error) { return syscall.Pread(f.fd, buf, at) })
	if err != nil {
		return 0, &os.PathError{Op: "read", Path: f.path, Err: err}
	}
	return n, nil
}

// Close closes the file. Later readings fail.
func (f *File) Close() error {
	fd := f.fd
	f.fd = -1
	return os.NewSyscallError("close", syscall.Close(fd))
}
