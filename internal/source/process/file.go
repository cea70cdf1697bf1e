package process

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// maxOpen bounds the open files, so that a large job leaves file descriptors to the rest of the program. Further files
// are opened at every reading.
const maxOpen = 1024

// file is a small file of /proc or of a cgroup that stays open between readings.
type file struct {
	path  string
	brief bool // see kernfile.OpenBrief; /proc/PID/io takes a lock that exec holds while it frees the old memory
	open  *kernfile.File
}

// read returns the text of a file, valid until the next read of any file. An open file belongs to its process: if
// another process gets the ID, read fails.
func (s *Source) read(f *file) ([]byte, error) {
	if f.open == nil && s.open >= maxOpen {
		return s.readOnce(f.path)
	}
	if f.open == nil {
		open := kernfile.Open
		if f.brief {
			open = kernfile.OpenBrief
		}
		opened, err := open(f.path)
		if err != nil {
			return nil, err
		}
		f.open = opened
		s.open++
	}
	n, err := f.open.ReadAt(s.buf[:], 0)
	if err != nil {
		s.close(f)
		return nil, err
	}
	return s.buf[:n], nil
}

// readOnce returns the text of a file that does not stay open, valid until the next read of any file. An os.File would
// take twice as long.
func (s *Source) readOnce(path string) ([]byte, error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = syscall.Close(fd) }()
	n, err := syscall.Pread(fd, s.buf[:], 0)
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: path, Err: err}
	}
	return s.buf[:n], nil
}

func (s *Source) close(f *file) {
	if f.open != nil {
		_ = f.open.Close() // read-only: the error has no meaning
		f.open = nil
		s.open--
	}
}

// gone reports whether err means that the process or cgroup no longer exists.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.ENODEV)
}

// outOfFiles reports whether err is the limit of open files of this program or of the machine.
func outOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// readSmall returns the text of a file that is read once and that the kernel prints in one piece, of 4 KiB at most. It
// takes three system calls; an os.File takes six.
func readSmall(path string) ([]byte, error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = syscall.Close(fd) }()
	var buf [4096]byte
	n, err := syscall.Read(fd, buf[:])
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: path, Err: err}
	}
	return bytes.Clone(buf[:n]), nil
}

// readAll returns up to limit bytes of a file that is read once.
func readAll(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// names lists up to limit entries of a folder, in the order of the kernel.
func names(path string, limit int) ([]string, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	list, err := dir.Readdirnames(limit)
	if errors.Is(err, io.EOF) {
		err = nil // an empty folder
	}
	return list, err
}
