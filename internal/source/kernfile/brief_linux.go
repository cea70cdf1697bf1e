//go:build linux && (amd64 || arm64)

package kernfile

import (
	"bytes"
	"encoding/binary"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Brief is a folder of /proc that is open for one look at it. Its calls are without Go's preparation for a call that
// waits: see OpenBrief. Read with it what the kernel makes at once.
type Brief struct {
	path string
	fd   int
}

// briefName is the longest name in a Brief, with the zero at its end.
const briefName = 64

// OpenFolderBrief opens a folder, until Close.
func OpenFolderBrief(path string) (Brief, error) {
	fd, err := openBrief(unix.AT_FDCWD, path, unix.O_DIRECTORY)
	if err != nil {
		return Brief{path, -1}, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return Brief{path, fd}, nil
}

// Close closes the folder.
func (f Brief) Close() { closeBrief(f.fd) }

// EachName calls yield for up to limit names in the folder. A name is valid during the call. Call it once. Where a
// buffer has room left, more may follow: the kernel stops at a signal (filldir64 in fs/readdir.c), such as Go's own.
func (f Brief) EachName(limit int, yield func(name []byte)) error {
	const head = 19 // of struct linux_dirent64
	var buf [folderText]byte
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_GETDENTS64, uintptr(f.fd), uintptr(unsafe.Pointer(&buf[0])), folderText)
		switch {
		case errno == unix.EINTR:
			continue
		case errno != 0:
			return &os.PathError{Op: "read", Path: f.path, Err: errno}
		case n == 0:
			return nil
		}
		for rest := buf[:n]; len(rest) > head; {
			length := int(binary.NativeEndian.Uint16(rest[16:]))
			if length <= head || length > len(rest) {
				return &os.PathError{Op: "read", Path: f.path, Err: unix.EIO}
			}
			name := rest[head:length]
			if end := bytes.IndexByte(name, 0); end >= 0 {
				name = name[:end]
			}
			if rest = rest[length:]; string(name) == "." || string(name) == ".." {
				continue
			}
			if limit--; limit < 0 {
				return nil
			}
			yield(name)
		}
	}
}

// Link returns what a link in the folder points to, up to len(buf) bytes. It is in buf.
func (f Brief) Link(name, buf []byte) ([]byte, error) {
	var text [briefName]byte
	if len(name) >= len(text) || len(buf) == 0 {
		return nil, unix.ENAMETOOLONG
	}
	copy(text[:], name)
	n, _, errno := unix.RawSyscall6(unix.SYS_READLINKAT, uintptr(f.fd), uintptr(unsafe.Pointer(&text[0])),
		uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), 0, 0)
	if errno != 0 {
		return nil, errno
	}
	return buf[:n], nil
}

// FD is the folder's descriptor, for other calls.
func (f Brief) FD() int { return f.fd }

// ReadPiece returns the text of a file, by its path from the folder, that the kernel prints in one piece, up to
// len(buf) bytes. It is in buf.
func (f Brief) ReadPiece(path string, buf []byte) ([]byte, error) {
	return readPieceBrief(f.fd, path, buf)
}

// ReadPieceBrief is ReadPiece for a file whose text the kernel makes at once: see OpenBrief.
func ReadPieceBrief(path string, buf []byte) ([]byte, error) {
	return readPieceBrief(unix.AT_FDCWD, path, buf)
}

func readPieceBrief(folder int, path string, buf []byte) ([]byte, error) {
	fd, err := openBrief(folder, path, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	n, err := preadBrief(fd, buf, 0)
	closeBrief(fd)
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: path, Err: err}
	}
	return buf[:n], nil
}

func openBrief(folder int, path string, flags int) (fd int, err error) {
	var text [2 * briefName]byte
	at := text[:]
	if len(path) >= len(at) {
		at = make([]byte, len(path)+1)
	}
	copy(at, path)
	n, _, errno := unix.RawSyscall6(unix.SYS_OPENAT, uintptr(folder), uintptr(unsafe.Pointer(&at[0])),
		uintptr(unix.O_RDONLY|unix.O_CLOEXEC|flags), 0, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

func closeBrief(fd int) { _, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }
