package kernfile

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The functions of this file read what is read once: an os.File costs six system calls more, most of them to find out
// that no file of /proc can be waited for.

// folderText is how much of a folder is read with one call, in bytes.
const folderText = 4 << 10

// ReadPiece returns the text of a file that the kernel prints in one piece, up to len(buf) bytes. It is in buf.
func ReadPiece(path string, buf []byte) ([]byte, error) {
	return readOnce(unix.AT_FDCWD, path, buf, false)
}

// ReadOnce returns the text of a file, up to len(buf) bytes. It is in buf.
func ReadOnce(path string, buf []byte) ([]byte, error) {
	return readOnce(unix.AT_FDCWD, path, buf, true)
}

func readOnce(folder int, path string, buf []byte, toEnd bool) ([]byte, error) {
	fd, err := openOnce(folder, path, 0)
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
	f, err := OpenFolder(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Names(limit)
}

// Folder is an open folder. For a file in it, the kernel looks up one name instead of a path.
type Folder struct {
	path string
	fd   int
}

// OpenFolder opens a folder, until Close.
func OpenFolder(path string) (Folder, error) {
	fd, err := openOnce(unix.AT_FDCWD, path, syscall.O_DIRECTORY)
	return Folder{path, fd}, err
}

// Close closes the folder.
func (f Folder) Close() { _ = syscall.Close(f.fd) }

// ReadPiece is ReadPiece for a file in the folder.
func (f Folder) ReadPiece(name string, buf []byte) ([]byte, error) {
	return readOnce(f.fd, name, buf, false)
}

// Names returns up to limit names in the folder, in the order of the kernel. Call it once.
func (f Folder) Names(limit int) (names []string, err error) {
	var buf [folderText]byte
	for len(names) < limit {
		n, err := retry(func() (int, error) { return syscall.ReadDirent(f.fd, buf[:]) })
		if err != nil {
			return names, &os.PathError{Op: "read", Path: f.path, Err: err}
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

func openOnce(folder int, path string, flags int) (fd int, err error) {
	fd, err = retry(func() (int, error) {
		return unix.Openat(folder, path, syscall.O_RDONLY|syscall.O_CLOEXEC|flags, 0)
	})
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
