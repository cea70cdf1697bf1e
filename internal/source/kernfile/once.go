package kernfile

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// ReadPiece returns the text of a file that the kernel prints in one piece, up to len(buf) bytes. It is in buf.
func ReadPiece(path string, buf []byte) ([]byte, error) { return readOnce(path, buf, false) }

// ReadOnce returns the text of a file, up to len(buf) bytes. It is in buf. An os.File costs six system calls more, most
// of them to find out that no file of /proc can be waited for.
func ReadOnce(path string, buf []byte) ([]byte, error) { return readOnce(path, buf, true) }

func readOnce(path string, buf []byte, toEnd bool) ([]byte, error) {
	fd, err := open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = syscall.Close(fd) }()
	for size := 0; ; {
		n, err := retry(func() (int, error) { return syscall.Read(fd, buf[size:]) })
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		}
		if size += n; n == 0 || !toEnd || size == len(buf) {
			return buf[:size], nil
		}
	}
}

// Names returns up to limit names in a folder, in the order of the kernel.
func Names(path string, limit int) (names []string, err error) {
	folder, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	names, err = folder.Readdirnames(limit)
	if errors.Is(err, io.EOF) { // the folder is empty
		err = nil
	}
	return names, err
}

func open(path string) (fd int, err error) {
	fd, err = retry(func() (int, error) { return syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0) })
	if err != nil {
		return fd, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// retry repeats a call that a signal has interrupted.
func retry(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}
