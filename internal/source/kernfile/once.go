package kernfile

import (
	"errors"
	"os"
	"syscall"
)

// The functions of this file read what is read once: an os.File costs six system calls more, most of them to find out
// that no file of /proc can be waited for.

// folderText is how much of a folder is read with one call, in bytes.
const folderText = 4 << 10

// ReadPiece returns the text of a file that the kernel prints in one piece, up to len(buf) bytes. It is in buf.
func ReadPiece(path string, buf []byte) ([]byte, error) { return readOnce(path, buf, false) }

// ReadOnce returns the text of a file, up to len(buf) bytes. It is in buf.
func ReadOnce(path string, buf []byte) ([]byte, error) { return readOnce(path, buf, true) }

func readOnce(path string, buf []byte, toEnd bool) ([]byte, error) {
	fd, err := openOnce(path, 0)
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
	fd, err := openOnce(path, syscall.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = syscall.Close(fd) }()
	var buf [folderText]byte
	for len(names) < limit {
		n, err := retry(func() (int, error) { return syscall.ReadDirent(fd, buf[:]) })
		if err != nil {
			return names, &os.PathError{Op: "read", Path: path, Err: err}
		}
		if n <= 0 {
			break
		}
		for rest := buf[:n]; len(rest) > 0 && len(names) < limit; {
			var used int
			used, _, names = syscall.ParseDirent(rest, limit-len(names), names)
			rest = rest[used:]
		}
	}
	return names, nil
}

func openOnce(path string, flags int) (fd int, err error) {
	fd, err = retry(func() (int, error) { return syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC|flags, 0) })
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
