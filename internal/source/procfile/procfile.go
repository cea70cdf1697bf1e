// Package procfile reads one file of the kernel's again and again, with one system call each time.
//
// os.File's ReadAt asks once more, to be told that nothing is left: on a machine that idles between two readings that is
// as dear as the first call. A file that the kernel prints in one piece (single_open of fs/seq_file.c, and the files of
// cgroups) comes whole in the first.
package procfile

import (
	"errors"
	"os"
	"syscall"
)

// File is open until it is closed. It is not safe for concurrent use.
type File struct {
	file *os.File
	raw  syscall.RawConn
	call func(fd uintptr) bool // made once, so that a reading allocates nothing

	buf []byte
	at  int64
	n   int
	err error
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
	f := &File{file: file, raw: raw}
	f.call = func(fd uintptr) bool {
		for {
			f.n, f.err = syscall.Pread(int(fd), f.buf, f.at)
			if !errors.Is(f.err, syscall.EINTR) {
				return true
			}
		}
	}
	return f, nil
}

// ReadAt reads once, from an offset on. Fewer bytes than fit are all that there is of a file that is printed in one
// piece; at the end of any other there are none. The error is of type *os.PathError.
func (f *File) ReadAt(buf []byte, at int64) (int, error) {
	f.buf, f.at = buf, at
	err := f.raw.Read(f.call)
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
